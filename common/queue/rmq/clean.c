/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rmq layout: one round of cleaning up, step by step.
 */
#include "base/proc.h"
#include "rmq.h"

/* Live consumers renew their heartbeats every 15 s, so one with less than 43 s to live will
 * end. */
#define RENEWED_MS 43000
/* A consumer whose own heartbeat has ended notices and reports that within 1 s; only then
 * can its cleaner tell dead connections from lapsed ones. */
#define LAPSED_MS 1000
/* Steps under way at the same time copy about 2 MiB, and the log has the same once more. */
#define STEP_BYTES ((size_t)4 << 20)
/* A question, to which the largest number of messages to promote is added; 0: the answer is
 * the number of due messages. */
#define PROMOTE                                                                \
	"$promote Q:ready Q:priority Q:delayed Q:locks Q:clock Q:result::"

/* --- killed ------------------------------------------------------------------ */

/*
 * Consumers of this host that were killed.
 *
 * The server cannot tell a process that has ended from one that is cut off, but the kernel can.
 * If the process that the info of a connection names has ended, its lease ends now.  So a
 * consumer that comes back on its host has its messages at once.
 */

/* If there are more connections, consumers that start leave this to the rounds. */
#define CONNECTIONS_MAX 1000

struct look {
	struct rmq_cleaner *w;
	const struct mq_names *names;
};

static void
ask_process(void *arg, size_t i, struct mq_command *c)
{
	const struct look *all = arg;

	rmq_ask(c, "HGET C:info process", all->names->list[i].name, NULL);
}

/* Errors are ignored: the lease ends by itself. */
static int
parse_process(void *arg, size_t i, redisReply *reply)
{
	const struct look *all = arg;

	if (reply->type == REDIS_REPLY_STRING && mq_proc_ended(reply->str))
		mq_names_add(
		    &all->w->killed, all->names->list[i].name, reply->str);
	return 0;
}

/* The names are of connections with a lease. */
static int
find_killed(struct rmq_cleaner *w, const struct mq_names *names)
{
	struct look all = {w, names};
	struct mq_names ended;
	long long *fenced;
	size_t i, n;
	int rv =
	    mq_ask_each(w->round.r, names->n, ask_process, parse_process, &all);

	n = w->killed.n;
	mq_proc_drop_unfinished(&w->killed);
	w->out->unfinished = w->killed.n < n;
	if (rv == -1 || w->how->dry_run)
		return rv;
	ended = w->killed;
	w->killed = (struct mq_names){0};
	rv = rmq_cleaner_ask(w, &ended,
	    mq_redis_command(w->round.r).cluster ?
		"DEL C:heartbeat" :
		"$fence C:heartbeat C:info %q",
	    &fenced);
	for (i = 0; i < ended.n; i++)
		if (fenced[i] > 0)
			mq_names_add(&w->killed, ended.list[i].name, NULL);
	mq_names_free(&ended);
	free(fenced);
	return rv;
}

/* --- dead -------------------------------------------------------------------- */

static void
sort_out(
    struct rmq_cleaner *w, const struct mq_names *names, const long long *ttl)
{
	const char *name;
	bool killed;
	size_t i;

	mq_names_sort(&w->killed);
	for (i = 0; i < names->n; i++) {
		name = names->list[i].name;
		if (*name == '\0' || ttl[i] == RMQ_NO_ANSWER)
			continue;
		killed = mq_names_have(&w->killed, name);
		/* A lease by receipt ends RMQ_CUT_MS before its key; lua/reclaim_dead.lua
		 * looks whether the connection has one. */
		mq_names_add(
		    ttl[i] >= RMQ_CUT_MS && !killed ? &w->live : &w->dead, name,
		    NULL);
		if (ttl[i] > 0 && ttl[i] < RENEWED_MS && !killed &&
		    (w->out->next_ms == -1 || ttl[i] < w->out->next_ms))
			w->out->next_ms = ttl[i];
	}
	mq_names_sort(&w->live);
	mq_names_sort(&w->dead);
}

static int
find_dead(struct rmq_cleaner *w)
{
	struct mq_names names = {0}, others = {0};
	const char *self = w->how->self != NULL ? w->how->self : "", *name;
	long long *ttl = NULL;
	size_t i;
	int rv = rmq_call_names(
	    w->round.r, RMQ_CONNECTIONS, &names, w->how->cluster);

	if (rv == 0)
		rv = rmq_cleaner_ask(w, &names, "PTTL C:heartbeat", &ttl);
	for (i = 0; i < names.n && rv == 0; i++) {
		name = names.list[i].name;
		if (*name != '\0' && ttl[i] >= RMQ_CUT_MS &&
		    strcmp(name, self) != 0)
			mq_names_add(&others, name, NULL);
	}
	if (rv == 0)
		rv = find_killed(w, &others);
	if (rv == 0)
		sort_out(w, &names, ttl);
	mq_names_free(&names);
	mq_names_free(&others);
	free(ttl);
	return rv;
}

/* --- lapsed ------------------------------------------------------------------ */

/*
 * Heartbeats of live consumers that ended.
 *
 * When the server's clock is set forward, or the server was stopped, all
 * heartbeats end at once.  A consumer whose heartbeat is gone takes a new name,
 * and notes there when its last heartbeat was; see lua/lapsed.lua.  Dead
 * connections whose last heartbeat was at that time lapsed, too, and
 * their messages do not count as crashed.  The last heartbeat of a connection that
 * really died was at another time.
 */

/* Heartbeats come every 15 s, or up to 4 s later on a busy machine. */
#define TOGETHER_MS 19000

static int
find_lapsed(struct rmq_cleaner *w)
{
	long long *ends = NULL, *reports = NULL;
	int64_t now;
	bool any = false;
	size_t i, j;
	int rv;

	/* Only live connections have reported. */
	if (w->dead.n == 0 || w->live.n == 0)
		return 0;
	rv = mq_server_time(w->round.r, &now);
	if (rv == 0)
		rv = rmq_cleaner_ask(w, &w->dead, "PTTL C:info", &ends);
	for (i = 0; rv == 0 && i < w->dead.n; i++) {
		ends[i] = ends[i] > 0 ? ends[i] + now : 0;
		any |= ends[i] > 0;
	}
	if (rv == 0 && any)
		rv = rmq_cleaner_ask(
		    w, &w->live, "?HGET C:info lapsed", &reports);
	for (i = 0; reports != NULL && i < w->live.n; i++)
		for (j = 0; j < w->dead.n; j++)
			if (reports[i] != RMQ_NO_ANSWER && ends[j] > 0 &&
			    llabs(ends[j] - reports[i]) <= TOGETHER_MS)
				mq_names_add(
				    &w->lapsed, w->dead.list[j].name, NULL);
	mq_names_sort(&w->lapsed);
	free(ends);
	free(reports);
	return rv;
}

/* --- due messages -------------------------------------------------------------- */

/* Other clients wait while a step moves messages, so the steps of a queue go one by one, and
 * only to queues with due messages. */
static int
make_ready(struct rmq_cleaner *w)
{
	struct mq_command c = mq_redis_command(w->round.r);
	struct mq_names queues = {0};
	long long *due = NULL, left;
	size_t i;
	long moved;
	int rv = rmq_busy_queues(w, &queues);

	/* In a dry run, queues count that would be known by now. */
	for (i = 0; i < w->known.n; i++)
		mq_names_add(&queues, w->known.list[i].name, NULL);
	mq_names_sort(&queues);
	if (rv == 0)
		rv = rmq_cleaner_ask(w, &queues, PROMOTE " 0", &due);
	for (i = 0; i < queues.n && rv == 0; i++) {
		if (w->how->dry_run)
			w->out->due += MAX((long)due[i], 0);
		moved = !w->how->dry_run;
		for (left = due[i]; left > 0 && moved > 0 && rv == 0;
		     left -= moved) {
			moved = 0;
			rmq_ask(&c, PROMOTE " 250", queues.list[i].name, NULL);
			rv = mq_round_add(&w->round, &c, &moved);
			w->out->due += moved;
		}
	}
	free(due);
	mq_names_free(&queues);
	return rv;
}

/* --- the round ----------------------------------------------------------------- */

static void
ask_to_count(void *arg, size_t i, struct mq_command *c)
{
	const struct rmq_cleaner *w = arg;

	mq_extra_count(&rmq_extra_keys, c, w->counts[i].queue, &w->counts[i].n);
}

/* Steps after those of dead connections. */
static int
tidy_up(struct rmq_cleaner *w)
{
	struct mq_redis *r = w->round.r;
	int rv = rmq_orphans(w);

	if (rv == -1)
		return -1;
	/* If a node is lost, the messages of locks, marks and attachments may be there. */
	if (mq_redis_command(r).cluster && mq_partial_lost(r, 0) == NULL)
		rv = rmq_underway(w);
	if (rv == 0 && w->how->all)
		rv = make_ready(w);
	if (rv == 0 && mq_partial_lost(r, 0) == NULL)
		rv = rmq_repair(w);
	if (rv == 0)
		rv = rmq_trim(w);
	if (rv == 0 && w->how->all && mq_partial_lost(r, 0) == NULL)
		rv = rmq_attach_sweep(w);
	return rv;
}

/* Dead connections come first, which leaves fewer keys to look through, and makes their queues
 * known. */
static int
run_steps(struct rmq_cleaner *w)
{
	struct mq_redis *r = w->round.r;
	int rv = 0;

	/* Returned messages are copied, and a private server ends if its disk is full. */
	if (!w->how->dry_run && (w->dead.n > 0 || w->how->all))
		rv = mq_redis_room(r, STEP_BYTES);
	if (rv == -1 || find_lapsed(w) == -1 ||
	    rmq_reclaim(w, w->dead.list, w->dead.n) == -1)
		return -1;
	if (!w->how->killed)
		rv = tidy_up(w);
	if (rv == 0 && !w->how->dry_run)
		/* Errors of counts are ignored. */
		rv = mq_ask_each(r, w->count_n, ask_to_count, NULL, w);
	return rv == 0 ? mq_round_end(&w->round) : rv;
}

int
rmq_clean(
    struct mq_redis *r, const struct mq_clean *how, struct mq_cleaned *out)
{
	struct rmq_cleaner w = {.round.r = r, .how = how, .out = out};
	long long n = 0;
	size_t i;
	int rv;

	*out = (struct mq_cleaned){.next_ms = -1};
	if (how->killed &&
	    (rmq_call_number(r, "SCARD A:" RMQ_CONNECTIONS, NULL, NULL, &n) ==
		    -1 ||
		n > CONNECTIONS_MAX))
		return mq_redis_lost(r) ? -1 : 0;
	mq_partial_begin(r);
	rv = how->only_trims ? rmq_trim(&w) : find_dead(&w);
	if (rv == 0 && how->only_trims)
		rv = mq_round_end(&w.round);
	else if (rv == 0 && how->self != NULL &&
	    mq_names_have(&w.dead, how->self))
		out->next_ms = LAPSED_MS;
	else if (rv == 0)
		rv = run_steps(&w);
	if (how->cluster != NULL)
		mq_names_sort(how->cluster);
	if (how->scattered != NULL)
		mq_names_sort(how->scattered);
	out->refused = w.round.refused;
	mq_names_free(&w.live);
	mq_names_free(&w.dead);
	mq_names_free(&w.lapsed);
	mq_names_free(&w.killed);
	mq_names_free(&w.known);
	mq_names_free(&w.busy);
	mq_names_free(&w.ruled);
	for (i = 0; i < w.count_n; i++)
		free(w.counts[i].queue);
	free(w.counts);
	return rv;
}
