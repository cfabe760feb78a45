/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* mq-clean: returns the messages of dead consumers, makes due ones ready, and removes
 * leftovers. */
#include "shared/options.h"

static const char usage[] =
    "usage: mq-clean [options]\n"
    "\n"
    "Returns messages of dead consumers to their queues, makes delayed messages\n"
    "ready that are due, and removes leftover keys.  Safe beside any number of\n"
    "consumers and other cleaners.\n"
    "\n";

struct cleaner {
	struct mq_shared shared;
	struct mq_server server;
	struct mq_redis redis;
	struct mq_clean how;
	struct mq_names cluster, scattered; /* for how */
	int64_t interval_ms;		    /* 0: a single round */
	bool json;
	/* From the last round: */
	int status;
	char said[512];
	long refused, incomplete;
	int64_t past_ms; /* steady time of the last mq_past_note() */
	size_t noted;	 /* scattered queues that were reported */
};

static const struct mq_option rows[] = {
    {0, "--attempts", "N",
	"+reject messages after N runs, unless the consumer\n"
	"set a number (15)",
	MQ_INT(struct cleaner, how.limit, 1, MQ_ATTEMPTS_MAX)},
    {0, "--interval", "DUR", "+go on: one round every DUR, until TERM or INT",
	MQ_DURATION(struct cleaner, interval_ms, 1)},
    {0, "--dry-run", NULL, "+only print what would be done",
	MQ_FLAG(struct cleaner, how.dry_run)},
    {0, "--json", NULL, "+print one JSON object for each round",
	MQ_FLAG(struct cleaner, json)},
    {.help = "+"},
    {0},
};

static void
print_json(const struct cleaner *c, const struct mq_cleaned *n)
{
	json_t *v = json_object();

	mq_json_set(v, "connections", json_integer(n->connections));
	mq_json_set(v, "returned", json_integer(n->returned));
	mq_json_set(v, "rejected", json_integer(n->rejected));
	mq_json_set(v, "due", json_integer(n->due));
	mq_json_set(v, "expired", json_integer(n->expired));
	mq_json_set(v, "adopted", json_integer(n->adopted));
	mq_json_set(v, "orphans", json_integer(n->orphans));
	if (n->transferred > 0)
		mq_json_set(v, "transferred", json_integer(n->transferred));
	mq_json_set(v, "locks", json_integer(n->locks));
	mq_json_set(v, "dropped", json_integer(n->dropped));
	mq_json_set(v, "left_alone", mq_json_names(&c->cluster));
	mq_json_set(v, "dry_run", json_boolean(c->how.dry_run));
	output_json_line(v);
}

static const char *
plural(long n)
{
	return n == 1 ? "" : "s";
}

static void
print_line(const struct cleaner *c, const struct mq_cleaned *n)
{
	printf("%s%ld dead connection%s, %ld message%s returned, %ld rejected, "
	       "%ld due, %ld expired, %ld adopted, %ld orphaned key%s removed, "
	       "%ld lock%s repaired",
	    c->how.dry_run ? "dry run: " : "", n->connections,
	    plural(n->connections), n->returned, plural(n->returned),
	    n->rejected, n->due, n->expired, n->adopted, n->orphans,
	    plural(n->orphans), n->locks, plural(n->locks));
	if (n->transferred > 0)
		printf(", %ld brought to another queue", n->transferred);
	if (n->dropped > 0)
		printf(", %ld dropped", n->dropped);
	if (c->cluster.n > 0)
		printf("; %zu dead connection%s of Go programs left alone",
		    c->cluster.n, plural((long)c->cluster.n));
	putchar('\n');
}

/* Prints a round; with --interval, only one that did something. */
static void
print_round(const struct cleaner *c, const struct mq_cleaned *n)
{
	bool nothing = (n->connections | n->returned | n->rejected | n->due |
			   n->expired | n->adopted | n->orphans |
			   n->transferred | n->locks | n->dropped) == 0;

	if (c->json)
		print_json(c, n);
	else if (!c->shared.quiet &&
	    (!nothing || c->interval_ms == 0 || c->shared.verbose))
		print_line(c, n);
	if (fflush(stdout) == EOF) {
		if (errno == EPIPE)
			exit(MQ_EXIT_IO);
		mq_die(MQ_EXIT_IO, "standard output: %s", strerror(errno));
	}
}

/* Reports each kind of work that could not be done, once. */
static void
report_left(struct cleaner *c, const struct mq_cleaned *done)
{
	if (c->shared.quiet)
		return;
	/* Forbidden keys usually belong to other programs. */
	if (done->refused > 0 && c->refused == 0)
		mq_say("%s: %ld step%s refused: no permission for the keys; "
		       "--print-acl prints the rights needed",
		    c->server.name, done->refused, plural(done->refused));
	if (done->incomplete > 0 && c->incomplete == 0)
		mq_say(
		    "%s: keys and groups of %ld queue%s not repaired: a "
		    "consumer died meanwhile, or the connection was too slow; "
		    "the next round tries again",
		    c->server.name, done->incomplete, plural(done->incomplete));
	c->refused = done->refused;
	c->incomplete = done->incomplete;
	for (; c->noted < c->scattered.n; c->noted++)
		mq_say(
		    "'%s': a name for which only Go programs find messages%s",
		    c->scattered.list[c->noted].name,
		    c->server.url.kind == MQ_URL_CLUSTER ? " on a cluster" :
							   "");
}

/* Does one round, and returns its exit status. */
static int
clean_round(struct cleaner *c)
{
	struct mq_redis *r = &c->redis;
	struct mq_cleaned done = {0};
	int status = MQ_EXIT_OK, i;
	const char *why;
	int64_t now;

	if (mq_redis_lost(r) && mq_redis_open(r, &c->server) == -1)
		return r->status;
	mq_names_free(&c->cluster);
	if (c->shared.layout->clean(r, &c->how, &done) == -1)
		status = r->status;
	if (status != MQ_EXIT_CONFIG)
		print_round(c, &done);
	report_left(c, &done);
	/* The first lost node of a cluster becomes the round's error; others are reported
	 * in the first round that loses them.  Each is tried again in the next round. */
	for (i = 0; (why = mq_partial_lost(r, i)) != NULL; i++)
		if (i == 0)
			mq_redis_fail(r, MQ_EXIT_UNAVAILABLE, "%s", why);
		else if (c->status == MQ_EXIT_OK)
			mq_say("%s: %s", c->server.name, why);
	if (i > 0)
		status = MQ_EXIT_UNAVAILABLE;
	now = mq_clock_steady_ms();
	/* Notes the lengths of queues once a minute; a failure does not count. */
	if (status == MQ_EXIT_OK && !c->how.dry_run &&
	    (c->past_ms == 0 || now >= c->past_ms + 60000)) {
		c->past_ms = now;
		mq_past_note(r, c->shared.layout, NULL, 0);
	}
	if (mq_redis_lost(r) || status == MQ_EXIT_UNAVAILABLE)
		mq_redis_close(r);
	return status;
}

/* Reports an error, unless the round before had the same. */
static void
report_status(struct cleaner *c, int status)
{
	/* The errors of a server that is away vary. */
	bool again = status == c->status &&
	    (status == MQ_EXIT_OK || status == MQ_EXIT_UNAVAILABLE ||
		strcmp(c->said, c->redis.error) == 0);

	if (status == MQ_EXIT_OK && !again && !c->shared.quiet)
		mq_say("%s: working again", c->server.name);
	else if (status != MQ_EXIT_OK && !again)
		mq_say("%s%s", c->redis.error,
		    c->interval_ms > 0 && status != MQ_EXIT_CONFIG ?
			"; trying again" :
			"");
	strlcpy(c->said, c->redis.error, sizeof(c->said));
	c->status = status;
}

/* Does rounds until a signal ends the program, even in a round: each step is atomic, and the
 * next cleaner goes on after it. */
static void
clean_forever(struct cleaner *c)
{
	double next = mq_clock_s(CLOCK_MONOTONIC), now;
	struct timespec until;

	for (;;) {
		report_status(c, clean_round(c));
		/* Another round would fail, too. */
		if (c->status == MQ_EXIT_CONFIG)
			exit(c->status);
		/* After a round longer than the interval, the next begins at once. */
		now = mq_clock_s(CLOCK_MONOTONIC);
		next = MAX(next + (double)c->interval_ms / 1000, now);
		until.tv_sec = (time_t)next;
		until.tv_nsec = (long)((next - (double)until.tv_sec) * 1e9);
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until,
			   NULL) == EINTR)
			;
	}
}

int
main(int argc, char *argv[])
{
	struct cleaner c = {.shared = {.usage = usage},
	    .how = {.limit = MQ_ATTEMPTS,
		.all = true,
		.cluster = &c.cluster,
		.scattered = &c.scattered}};
	const struct mq_options tables[] = {
	    {rows, &c}, {mq_shared_options, &c.shared}, {0}};

	mq_option_begin();
	mq_option_read(&c.shared, tables, argc, argv);
	mq_option_rights(&c.shared, MQ_CLEANS, argv + optind, argc - optind);
	forbid(optind < argc, "%s: unexpected operand; mq-clean takes none",
	    argv[optind]);
	mq_option_prints(c.json || !c.shared.quiet);
	(void)mq_option_server(&c.shared, &c.server);
	if (c.interval_ms > 0)
		clean_forever(&c);
	report_status(&c, clean_round(&c));
	mq_names_free(&c.cluster);
	mq_names_free(&c.scattered);
	mq_option_end(&c.shared, &c.server, &c.redis);
	mq_close_stdout();
	return c.status;
}
