/*
 * mq-pause: consumers take nothing from a queue for a while.
 */
#include "base/duration.h"
#include "shared/options.h"

static const char usage[] =
    "usage: mq-pause [options] QUEUE... | --all\n"
    "\n"
    "Pauses queues: within a second, mq-consume starts nothing more from them.\n"
    "Scripts that run end as usual, and messages can still be published.\n"
    "Exit status 1: a queue does not exist, or was not paused.\n"
    "\n"
    "  mq-pause --for 10m mails\n"
    "  mq-pause --resume mails\n"
    "\n";

struct options {
	int64_t ms;	   /* -1: until resumed */
	const char *until; /* --for as it was given */
	bool resume, all;
};

static const struct mq_option rows[] = {
    {0, "--for", "DUR", "+resume after DUR (default: at --resume)",
	MQ_TEXT(struct options, until)},
    {0, "--resume", NULL, "+resume the queues",
	MQ_FLAG(struct options, resume)},
    {0, "--all", NULL, "+all queues, and those that are made later",
	MQ_FLAG(struct options, all)},
    {0},
};

static void
parse_options(
    struct options *o, struct mq_shared *shared, int argc, char *argv[])
{
	const struct mq_options tables[] = {
	    {rows, o}, {mq_shared_options, shared}, {0}};
	const char *queue;
	int64_t ms;
	int i;

	mq_option_read(shared, tables, argc, argv);
	if (o->until != NULL)
		o->ms = mq_option_duration("--for", o->until);
	forbid(o->ms == 0, "--for: %s: must be greater than 0", o->until);
	forbid(o->resume && o->until != NULL,
	    "--for and --resume cannot be used together");
	mq_option_rights(shared,
	    (o->all ? MQ_PAUSES_ALL : MQ_PAUSES) | (o->resume ? MQ_RESUMES : 0),
	    argv + optind, argc - optind);
	forbid(o->all && optind < argc, "%s: cannot be used with --all",
	    argv[optind]);
	forbid(!o->all && optind == argc, "no queue given (try --help)");
	/* Without --for, "jobs 10m" would pause jobs for ever. */
	for (i = optind; i < argc && strcmp(argv[optind - 1], "--") != 0; i++) {
		queue = argv[i];
		forbid(mq_duration_parse(queue, &ms) == 0 &&
			strspn(queue, "0123456789") < strlen(queue),
		    "%s: use --for %s for a duration, or -- %s for a queue",
		    queue, queue, queue);
	}
}

/*
 * Whether there was anything to change; says why not.  queue: with --all, any name in
 * the namespace; what: that which is changed, for people.
 */
static bool
change_queue(const struct options *o, const struct mq_shared *shared,
    struct mq_redis *redis, const char *queue, const char *what)
{
	bool known = true, paused = true;
	int rv =
	    o->all ? 0 : mq_queue_known(redis, shared->layout, queue, &known);

	if (rv == 0 && known)
		rv = mq_queue_pause(redis, shared->layout, queue, o->all,
		    o->resume ? 0 : o->ms, &paused);
	mq_option_must(redis, rv);
	if (!known)
		mq_option_unknown(redis, shared->layout, queue);
	else if (!paused)
		mq_say("%s: not paused", what);
	else if (shared->verbose)
		mq_say("%s: %s%s%s", what, o->resume ? "resumed" : "paused",
		    o->until != NULL ? " for " : "",
		    o->until != NULL ? o->until : "");
	return known && paused;
}

int
main(int argc, char *argv[])
{
	struct options o = {.ms = -1};
	struct mq_shared shared = {.usage = usage};
	struct mq_server server;
	struct mq_redis redis;
	bool changed = true;
	int i;

	mq_option_begin();
	parse_options(&o, &shared, argc, argv);
	(void)mq_option_server(&shared, &server);
	mq_option_queues(&shared, &server, argv + optind, argc - optind);
	mq_option_must(&redis, mq_redis_open(&redis, &server));
	if (o.all)
		changed = change_queue(&o, &shared, &redis,
		    mq_option_queue(&shared, &server, "any"), "all queues");
	for (i = optind; i < argc; i++)
		changed &= change_queue(&o, &shared, &redis, argv[i], argv[i]);
	mq_option_end(&shared, &server, &redis);
	return changed ? MQ_EXIT_OK : MQ_EXIT_NO;
}
