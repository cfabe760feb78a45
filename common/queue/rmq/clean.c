/*
 * The rmq layout: one round of cleaning up, step by step.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "redis/connection.h"
#include "rmq.h"

/* A live heartbeat is renewed every 15 seconds at the latest; less than this is on its
 * way out. */
#define RENEWED_MS 43000
/* A consumer whose own heartbeat has ended finds that out within this time, and
 * reports it; only then can a cleaner tell the dead from the lapsed. */
#define LAPSED_MS 1000
/* Of a step, which copies about 1 MiB, and the log of that. */
#define STEP_BYTES ((size_t)2 << 20)

static int
find_dead(struct rmq_cleaner *w)
{
	struct mq_names names = {0};
	const char *name;
	long long *ttl;
	size_t i;
	int rv = rmq_call_names(w->round.r, RMQ_CONNECTIONS, &names);

	if (rv == -1)
		return -1;
	rv = rmq_cleaner_ask(w, &names, &rmq_heartbeat, 1, &ttl);
	for (i = 0; i < names.n; i++) {
		name = names.list[i].name;
		if (*name == '\0' || ttl[i] == RMQ_NO_ANSWER)
			continue;
		mq_names_add(ttl[i] > 0 ? &w->live : &w->dead, name, NULL);
		if (ttl[i] > 0 && ttl[i] < RENEWED_MS &&
		    (w->out->next_ms == -1 || ttl[i] < w->out->next_ms))
			w->out->next_ms = ttl[i];
	}
	mq_names_sort(&w->live);
	mq_names_sort(&w->dead);
	mq_names_free(&names);
	free(ttl);
	return rv;
}

/* --- lapsed ------------------------------------------------------------------ */

/*
 * Heartbeats that ended although nobody died.
 *
 * When the server's clock is set forward, or the server was stopped, all
 * heartbeats end at once.  A consumer that finds its own gone takes a new name,
 * and tells there when its last heartbeat was; see lua/lapsed.lua.  Dead
 * connections whose last heartbeat was at that time lapsed together with it, and
 * their messages do not count as crashed.  The last heartbeat of a connection that
 * really died was at another time.
 */

/* A heartbeat comes every 15 seconds, or a bit later on a busy machine. */
#define TOGETHER_MS 19000

static int
find_lapsed(struct rmq_cleaner *w)
{
	static const struct rmq_question end = {
	    "PTTL", "info", .of = RMQ_OF_CONNECTION};
	static const struct rmq_question report = {"HGET", "info",
	    .of = RMQ_OF_CONNECTION, .rest = "lapsed", .optional = true};
	long long *ends = NULL, *reports = NULL;
	int64_t now;
	bool any = false;
	size_t i, j;
	int rv;

	/* One that lives has to say so. */
	if (w->dead.n == 0 || w->live.n == 0)
		return 0;
	rv = rmq_cleaner_now(w, NULL, &now);
	if (rv == 0)
		rv = rmq_cleaner_ask(w, &w->dead, &end, 1, &ends);
	for (i = 0; rv == 0 && i < w->dead.n; i++) {
		ends[i] = ends[i] > 0 ? ends[i] + now : 0;
		any |= ends[i] > 0;
	}
	if (rv == 0 && any)
		rv = rmq_cleaner_ask(w, &w->live, &report, 1, &reports);
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

/* --- what is due --------------------------------------------------------------- */

/* Each queue has a tick, and a number of messages that are due. */
struct due {
	struct rmq_cleaner *w;
	struct mq_names queues;
	int64_t now;
	/* now, on a cluster by the clock of each node; a tick that another program has set
	 * may be anything. */
	long long *at, *tick, *count;
	bool by_tick; /* those are counted now that wait for a tick */
};

static void
ask_count(void *arg, size_t i, struct mq_command *c)
{
	const struct due *d = arg;
	int64_t tick = d->tick[i] <= 0 ? -1 :
	    d->tick[i] < MQ_TICK_MAX   ? d->tick[i] :
					 MQ_TICK_MAX;
	int64_t now =
	    d->at != NULL && d->at[i] != RMQ_NO_ANSWER ? d->at[i] : d->now;

	mq_command_plain(c, "ZCOUNT");
	rmq_key_queue(c, d->queues.list[i].name, "delayed");
	mq_command_int(c, d->by_tick ? RMQ_AT_TICK : -RMQ_AT_TICK);
	mq_command_int(c, d->by_tick ? RMQ_AT_TICK + tick : now);
}

static int
take_count(void *arg, size_t i, redisReply *reply)
{
	struct due *d = arg;

	if (mq_round_good(&d->w->round, reply, REDIS_REPLY_INTEGER))
		d->count[i] += reply->integer;
	return 0;
}

/* Moves one queue's due messages, slice by slice. */
static int
promote(struct rmq_cleaner *w, const char *queue)
{
	struct mq_command c = mq_redis_command(w->round.r);
	redisReply *reply;
	bool more = true;
	int rv = 0;

	while (more && rv == 0) {
		mq_command_script(&c, &rmq_script_promote);
		rmq_key_queue(&c, queue, RMQ_PLACES);
		rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &reply);
		more = false;
		if (reply == NULL)
			continue;
		if (reply->elements == 2) {
			w->out->due += (long)reply->element[0]->integer;
			more = reply->element[1]->integer != 0;
		}
		freeReplyObject(reply);
	}
	return rv;
}

static int
make_ready(struct rmq_cleaner *w)
{
	static const struct rmq_question clock = {
	    "GET", "clock", .optional = true};
	static const struct rmq_question time = {"TIME", .of = RMQ_OF_NODE};
	struct due d = {.w = w};
	struct mq_redis *r = w->round.r;
	size_t i;
	int rv = rmq_cleaner_now(w, NULL, &d.now);

	if (rv == 0)
		rv = rmq_busy_queues(w, &d.queues);
	/* In a dry run, those that would be known by now. */
	for (i = 0; i < w->known.n; i++)
		mq_names_add(&d.queues, w->known.list[i].name, NULL);
	mq_names_sort(&d.queues);
	d.count = mq_xcalloc(d.queues.n + 1, sizeof(*d.count));
	if (rv == 0 && mq_redis_command(r).cluster)
		rv = rmq_cleaner_ask(w, &d.queues, &time, 1, &d.at);
	if (rv == 0)
		rv = rmq_cleaner_ask(w, &d.queues, &clock, 1, &d.tick);
	if (rv == 0)
		rv = mq_ask_each(r, d.queues.n, ask_count, take_count, &d);
	d.by_tick = true;
	if (rv == 0)
		rv = mq_ask_each(r, d.queues.n, ask_count, take_count, &d);
	for (i = 0; i < d.queues.n && rv == 0; i++)
		if (w->how->dry_run)
			w->out->due += (long)d.count[i];
		else if (d.count[i] > 0)
			rv = promote(w, d.queues.list[i].name);
	free(d.at);
	free(d.tick);
	free(d.count);
	mq_names_free(&d.queues);
	return rv;
}

/* --- the round ----------------------------------------------------------------- */

/* What a lost node has may be what a lock or a mark is for. */
static bool
is_partial(const struct mq_redis *r)
{
	return mq_partial_lost(r, 0) != NULL;
}

static void
ask_to_count(void *arg, size_t i, struct mq_command *c)
{
	const struct rmq_cleaner *w = arg;
	const struct rmq_count *n = &w->counts[i];

	mq_side_count(&rmq_side, c, n->queue,
	    &(struct mq_counts){.runs = n->crashed,
		.crashed = n->crashed,
		.failed = n->rejected + n->expired,
		.expired = n->expired});
}

/*
 * The dead first: that leaves fewer keys to look through, and what they had
 * is known again then.
 */
static int
take_steps(struct rmq_cleaner *w)
{
	struct mq_redis *r = w->round.r;
	int rv = 0;

	/* What goes back is copied, and a full disk ends a private server. */
	if (!w->how->dry_run && (w->dead.n > 0 || w->how->all))
		rv = mq_redis_room(r, STEP_BYTES);
	if (rv == 0)
		rv = find_lapsed(w);
	if (rv == 0)
		rv = rmq_reclaim(w, w->dead.list, w->dead.n);
	if (rv == 0)
		rv = rmq_orphans(w);
	if (rv == 0 && mq_redis_command(r).cluster && !is_partial(r))
		rv = rmq_underway(w);
	if (rv == 0 && w->how->all)
		rv = make_ready(w);
	if (rv == 0 && !is_partial(r))
		rv = rmq_repair(w);
	if (rv == 0 && w->how->all && !is_partial(r))
		rv = rmq_attach_sweep(w);
	if (rv == 0 && !w->how->dry_run)
		/* A count that is missing is no reason to fail. */
		rv = mq_ask_each(r, w->count_n, ask_to_count, NULL, w);
	return rv == 0 ? mq_round_end(&w->round) : rv;
}

int
rmq_clean(
    struct mq_redis *r, const struct mq_clean *how, struct mq_cleaned *out)
{
	struct rmq_cleaner w = {.round.r = r, .how = how, .out = out};
	size_t i;
	int rv;

	*out = (struct mq_cleaned){.next_ms = -1};
	mq_partial_begin(r);
	rv = find_dead(&w);
	if (rv == 0 && how->self != NULL && mq_names_have(&w.dead, how->self))
		out->next_ms = LAPSED_MS;
	else if (rv == 0)
		rv = take_steps(&w);
	if (how->cluster != NULL)
		mq_names_sort(how->cluster);
	out->refused = w.round.refused;
	mq_names_free(&w.live);
	mq_names_free(&w.dead);
	mq_names_free(&w.lapsed);
	mq_names_free(&w.known);
	mq_names_free(&w.busy);
	for (i = 0; i < w.count_n; i++)
		free(w.counts[i].queue);
	free(w.counts);
	return rv;
}
