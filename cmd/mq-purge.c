/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* mq-purge: remove messages, or a whole queue. */
#include <ctype.h>
#include <signal.h>

#include "shared/options.h"

static const char usage[] =
    "usage: mq-purge [options] QUEUE...\n"
    "\n"
    "Removes messages for good, and prints how many.  On a terminal it asks\n"
    "before; elsewhere it needs --force.  Of several filters, all must match.\n"
    "Exit status 1: no message matched, or the answer was no.\n"
    "\n"
    "  mq-purge --rejected jobs\n"
    "  mq-purge --force --rejected --older-than 30d jobs\n"
    "\n";

struct options {
	const char *queue;
	struct mq_filter filter;
	bool state[MQ_STATES]; /* states to purge */
	bool queue_too, running, force, json;
	bool found; /* the queue to delete existed */
};

/* Order of the purge with a limit, and of outputs. */
static const enum mq_state states[] = {MQ_READY, MQ_DELAYED, MQ_REJECTED};
#define STATES (sizeof(states) / sizeof(states[0]))

static void
take_all(void *into, const struct mq_given *given)
{
	struct options *o = into;
	size_t i;

	o->queue_too |= given->option->which;
	for (i = 0; i < STATES; i++)
		o->state[states[i]] = true;
}

static const struct mq_option places[] = {
    {0, "--ready", NULL, "+messages that a consumer could have now",
	MQ_FLAG(struct options, state[MQ_READY])},
    {0, "--rejected", NULL, "+messages that failed for good",
	MQ_FLAG(struct options, state[MQ_REJECTED])},
    {0, "--delayed", NULL, "+messages that become ready later",
	MQ_FLAG(struct options, state[MQ_DELAYED])},
    {0, "--all", NULL, "+these three", .take = take_all},
    {0, "--running", NULL, "the one message of --id, whose script is ended",
	MQ_FLAG(struct options, running)},
    {0, "--delete-queue", NULL,
	"+everything, and the queue, unless it is in use", .take = take_all,
	.which = true},
    {0},
};
static const struct mq_option ways[] = {
    {'f', "--force", NULL, "+do not ask", MQ_FLAG(struct options, force)},
    {0, "--json", NULL, "print the result as JSON",
	MQ_FLAG(struct options, json)},
    {0},
};

static void
parse_options(struct options *o, struct selection *s, struct mq_shared *shared,
    int argc, char *argv[])
{
	const struct mq_options tables[] = {{places, o},
	    {mq_filter_options, &o->filter}, {selection_options, s}, {ways, o},
	    {mq_shared_options, shared}, {0}};
	bool any = false;
	size_t i;

	mq_option_read(shared, tables, argc, argv);
	mq_option_rights(shared,
	    MQ_PURGES | (o->queue_too ? MQ_DELETES : 0) |
		(o->running ? MQ_STOPS : 0),
	    argv + optind, argc - optind);
	forbid(optind == argc, "no queue given (try --help)");
	for (i = 0; i < STATES; i++)
		any |= o->state[states[i]];
	if (o->running)
		selection_check_running(
		    s, argc - optind, any ? "another state" : NULL);
	forbid(!any && !o->running,
	    "no state given; use --ready, --rejected, --delayed, --all, "
	    "--delete-queue or --running");
	forbid(o->queue_too &&
		(mq_filter_given(&o->filter) || s->limit != LONG_MAX),
	    "--delete-queue: cannot be used with a filter or --limit");
	forbid(!o->force && !s->dry_run && !o->running &&
		(!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)),
	    "no terminal to ask for confirmation; use --force or --dry-run");
	if (o->filter.id != NULL)
		s->limit = 1;
}

/* Purges the states, and counts messages.  Without a limit, delayed goes first: a message in
 * line could become ready after the ready ones were purged. */
static void
purge_states(const struct options *o, struct selection *s, long *count)
{
	static const enum mq_state all[] = {MQ_DELAYED, MQ_READY, MQ_REJECTED};
	const enum mq_state *order = s->limit == LONG_MAX ? all : states;
	struct mq_place place = {.queue = o->queue};
	size_t i;

	for (i = 0; i < STATES; i++) {
		place.state = order[i];
		if (o->state[place.state] && s->done < s->limit)
			count[place.state] = selection_place(s, &place);
	}
}

/* Ends the program, as the queue has consumers: with their names, or, if the user may not
 * read these, their number. */
static void
refuse_used(const struct options *o, struct selection *s, long consumers)
{
	const struct mq_connection_stats *c;
	struct mq_stats all;

	if (s->layout->stats(
		s->redis, &o->queue, 1, MQ_STATS_CONNECTIONS, &all) == -1)
		all.connection_count = 0;
	for (c = all.connections; all.connection_count-- > 0; c++)
		if (c->by_receipt && c->ttl_ms > 0)
			mq_die(MQ_EXIT_AGAIN,
			    "%s: messages are handed out by mq-lease until the "
			    "lease %s ends, in %lld s; settle them, or wait",
			    o->queue, c->name, (long long)c->ttl_ms / 1000 + 1);
	mq_die(MQ_EXIT_AGAIN, "%s: the queue has %ld consumer%s; stop %s first",
	    o->queue, consumers, consumers == 1 ? "" : "s",
	    consumers == 1 ? "it" : "them");
}

static void
call_delete(const struct options *o, struct selection *s, struct mq_deletion *d)
{
	mq_option_must(
	    s->redis, s->layout->delete_queue(s->redis, o->queue, d));
	if (d->consumers > 0)
		refuse_used(o, s, d->consumers);
	if (d->unacked > 0)
		mq_die(MQ_EXIT_AGAIN,
		    s->layout->has & MQ_HAS_CLAIMS ?
			"%s: %ld message%s unacked; wait until their leases "
			"end" :
			"%s: dead consumers hold %ld message%s; run mq-clean "
			"first",
		    o->queue, d->unacked, d->unacked == 1 ? "" : "s");
	if (d->cluster)
		mq_die(MQ_EXIT_WRONGTYPE,
		    "%s: Go programs have keys of this queue in rmq's %s "
		    "layout; destroy the queue with one of these programs "
		    "first",
		    o->queue,
		    s->redis->server->url.kind == MQ_URL_CLUSTER ? "plain" :
								   "cluster");
}

/* Asks the user, and ends the program unless they agree.  Returns the number of messages that
 * may be removed.  If there are none, does not ask: later ones must not be removed. */
static long
ask_user(const struct options *o, struct selection *s)
{
	struct mq_deletion d = {.dry_run = true};
	long n[MQ_STATES] = {0};
	const char *between =
	    o->queue_too ? "delete the queue, with " : "remove ";
	char *name, line[16] = "";
	size_t i;
	int c;

	/* --running names a single message. */
	if (o->force || s->dry_run || o->running)
		return s->limit;
	if (o->queue_too) {
		call_delete(o, s, &d);
		n[MQ_READY] = d.ready;
		n[MQ_DELAYED] = d.delayed;
		n[MQ_REJECTED] = d.rejected;
	} else {
		s->dry_run = true;
		purge_states(o, s, n);
		s->dry_run = false;
		if (n[MQ_READY] + n[MQ_DELAYED] + n[MQ_REJECTED] == 0)
			return 0;
	}
	name = mq_visible(o->queue, strlen(o->queue));
	fprintf(stderr, "%s: ", name);
	for (i = 0; i < STATES; i++)
		if (o->state[states[i]]) {
			fprintf(stderr, "%s%ld %s", between, n[states[i]],
			    mq_state_name(states[i]));
			between = ", ";
		}
	fputs("? [y/N] ", stderr);
	free(name);
	for (i = 0; (c = getchar()) != EOF && c != '\n';)
		if (i < sizeof(line) - 1)
			line[i++] = (char)tolower(c);
	if (strcmp(line, "y") == 0 || strcmp(line, "yes") == 0)
		return s->limit;
	mq_say("nothing was removed");
	exit(MQ_EXIT_NO);
}

/* Deletes the queue.  If publishers wait for results, or messages may have attachments, first
 * removes messages one by one. */
static void
delete_queue(struct options *o, struct selection *s, long *count)
{
	struct mq_deletion d = {.dry_run = true};

	call_delete(o, s, &d);
	if (!s->dry_run && (d.awaited || s->files))
		purge_states(o, s, count);
	d.dry_run = s->dry_run;
	if (!s->dry_run)
		call_delete(o, s, &d);
	count[MQ_READY] += d.ready;
	count[MQ_DELAYED] += d.delayed;
	count[MQ_REJECTED] += d.rejected;
	s->done += d.ready + d.delayed + d.rejected;
	o->found = d.known || s->done > 0;
}

static void
print_json(
    const struct options *o, const struct selection *s, const long *count)
{
	json_t *v = json_pack("{s:o, s:I, s:I, s:I, s:I, s:b, s:b}", "queue",
	    mq_json_name(o->queue), "purged", (json_int_t)s->done, "ready",
	    (json_int_t)count[MQ_READY], "delayed",
	    (json_int_t)count[MQ_DELAYED], "rejected",
	    (json_int_t)count[MQ_REJECTED], "deleted", o->found && !s->dry_run,
	    "dry_run", s->dry_run);

	if (o->running)
		mq_json_set(v, "running", json_integer((json_int_t)s->done));
	output_json_line(v);
}

/* Purges one queue; false: there was nothing to remove. */
static bool
purge_queue(struct options *o, struct selection *s, bool quiet)
{
	const struct mq_attachments *files = s->layout->attachments;
	long count[MQ_STATES] = {0};
	long long n = 0;

	o->found = false;
	s->word = "purged";
	selection_begin(s, quiet);
	/* If the node that counts attachments is away, there may be some.  After another
	 * error, mq-clean removes them. */
	if (files != NULL && !s->dry_run && !o->running &&
	    files->count(s->redis, &n) == -1) {
		mq_option_must(s->redis, mq_redis_lost(s->redis) ? -1 : 0);
		n = s->redis->status == MQ_EXIT_UNAVAILABLE;
	}
	s->files = n > 0;
	if (o->running)
		selection_stop(s, o->queue, MQ_STOP_PURGE);
	else if (o->queue_too)
		delete_queue(o, s, count);
	else
		purge_states(o, s, count);
	if (!o->found)
		selection_unknown(s, o->queue);
	if (o->queue_too && o->found)
		s->word = "purged, and the queue deleted";
	if (o->json)
		print_json(o, s, count);
	else
		selection_print(s);
	return s->done > 0 || o->found;
}

/* Purges all queues, after the questions about all. */
static bool
purge_all(struct options *o, struct selection *s, char *const queues[], int n,
    bool quiet)
{
	long *most = mq_xcalloc((size_t)n, sizeof(*most)), left = s->limit;
	bool any = false;
	int i;

	for (i = 0; i < n; i++) {
		selection_begin(s, quiet);
		o->queue = queues[i];
		most[i] = ask_user(o, s);
	}
	interrupt_catch(SA_RESTART);
	for (i = 0; i < n && left > 0; i++) {
		o->queue = queues[i];
		s->queue = n > 1 ? queues[i] : NULL;
		s->limit = most[i] < left ? most[i] : left;
		any |= purge_queue(o, s, quiet);
		left -= left != LONG_MAX ? s->done : 0;
	}
	free(most);
	return any;
}

int
main(int argc, char *argv[])
{
	struct mq_shared shared = {.usage = usage, .names_server = true};
	struct options options = {0};
	struct mq_server server;
	struct mq_redis redis;
	struct selection selection = {
	    .redis = &redis, .filter = &options.filter, .limit = LONG_MAX};
	bool any;

	mq_option_begin();
	parse_options(&options, &selection, &shared, argc, argv);
	mq_option_prints(true);
	selection.layout = mq_option_server(&shared, &server);
	mq_filter_check(&options.filter, selection.layout);
	mq_option_queues(&shared, &server, argv + optind, argc - optind);
	mq_option_must(&redis, mq_redis_open(&redis, &server));
	any = purge_all(
	    &options, &selection, argv + optind, argc - optind, shared.quiet);
	mq_filter_free(&options.filter);
	mq_option_end(&shared, &server, &redis);
	mq_close_stdout();
	return any ? MQ_EXIT_OK : MQ_EXIT_NO;
}
