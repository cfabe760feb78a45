/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* mq-pause: pause and resume queues. */
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
	struct mq_shared shared;
	struct mq_server server;
	struct mq_redis redis;
	int64_t ms;	   /* -1: until resumed */
	const char *until; /* argument of --for */
	bool resume, all;
};

static void
take_for(void *into, const struct mq_given *given)
{
	struct options *o = into;

	o->until = given->arg;
	o->ms = mq_option_duration(given->name, given->arg);
	forbid(o->ms == 0, "%s: %s: must be greater than 0", given->name,
	    given->arg);
}

static const struct mq_option rows[] = {
    {0, "--for", "DUR", "+resume after DUR (default: at --resume)",
	.take = take_for},
    {0, "--resume", NULL, "+resume the queues",
	MQ_FLAG(struct options, resume)},
    {0, "--all", NULL, "+all queues, and those that are made later",
	MQ_FLAG(struct options, all)},
    {0},
};

static void
parse_options(struct options *o, int argc, char *argv[])
{
	const struct mq_options tables[] = {
	    {rows, o}, {mq_shared_options, &o->shared}, {0}};
	const char *queue;
	int64_t ms;
	int i;

	mq_option_read(&o->shared, tables, argc, argv);
	forbid(o->resume && o->until != NULL,
	    "--for and --resume cannot be used together");
	mq_option_rights(&o->shared,
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

/* Pauses or resumes a queue, or with --all the namespace of any queue name.  what: its name
 * for people.  False: there was nothing to change, which is reported. */
static bool
change_queue(struct options *o, const char *queue, const char *what)
{
	const struct mq_layout *layout = o->shared.layout;
	bool known = true, paused = true;
	int rv = o->all ? 0 : mq_queue_known(&o->redis, layout, queue, &known);

	if (rv == 0 && known)
		rv = mq_queue_pause(&o->redis, layout, queue, o->all,
		    o->resume ? 0 : o->ms, &paused);
	mq_option_must(&o->redis, rv);
	if (!known)
		mq_option_unknown(&o->redis, layout, queue);
	else if (!paused)
		mq_say("%s: not paused", what);
	else if (o->shared.verbose)
		mq_say("%s: %s%s%s", what, o->resume ? "resumed" : "paused",
		    o->until != NULL ? " for " : "",
		    o->until != NULL ? o->until : "");
	return known && paused;
}

int
main(int argc, char *argv[])
{
	struct options o = {.shared = {.usage = usage}, .ms = -1};
	bool changed = true;
	int i;

	mq_option_begin();
	parse_options(&o, argc, argv);
	(void)mq_option_server(&o.shared, &o.server);
	mq_option_queues(&o.shared, &o.server, argv + optind, argc - optind);
	mq_option_must(&o.redis, mq_redis_open(&o.redis, &o.server));
	if (o.all)
		changed = change_queue(&o,
		    mq_option_queue(&o.shared, &o.server, "any"), "all queues");
	for (i = optind; i < argc; i++)
		changed &= change_queue(&o, argv[i], argv[i]);
	mq_option_end(&o.shared, &o.server, &o.redis);
	return changed ? MQ_EXIT_OK : MQ_EXIT_NO;
}
