/*
 * The rmq layout: what is in the queues.
 *
 * There may be thousands of them, so only what the answers so far leave open
 * is asked: first the lists that every queue has, and whether there is anything
 * of ours; then that, and the ages of the messages there are.
 */
#include "rmq.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "queue/layout.h"
#include "queue/stats.h"
#include "redis/connection.h"
#include "redis/ask.h"

struct gather {
	struct mq_stats *out;
	int wanted;
	/* The rows with keys of ours, and how many each has. */
	int *row, rows;
	unsigned char *keys;
	bool *sorted;  /* rows with messages of a priority */
	size_t extras; /* questions about a row */
};

static void
ask_known(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;

	mq_command_plain(c, "SISMEMBER");
	rmq_key_all(c, RMQ_QUEUES);
	mq_command_str(c, g->out->queues[i].name);
}

static int
take_known(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;

	g->out->queues[i].known = reply->integer != 0;
	return reply->type == REDIS_REPLY_INTEGER ? 0 : -1;
}

static int
list_named(
    struct mq_redis *r, const char *const *queues, int count, struct gather *g)
{
	/* Where there is no answer, a queue counts as known. */
	mq_rows_make(g->out, queues, (size_t)count, true);
	return mq_ask_all(r, (size_t)count, ask_known, take_known, g);
}

static int
list_all(struct mq_redis *r, struct mq_stats *out)
{
	redisReply *names = rmq_stats_members(r, RMQ_QUEUES, &out->part);
	int rv = 0;

	if (names == NULL)
		return -1;
	if (out->part)
		rv = rmq_stats_list_found(r, out);
	else
		mq_rows_list(out, names);
	freeReplyObject(names);
	return rv;
}

/* --- what every queue has -------------------------------------------------- */

enum { READY, REJECTED, OURS, LENGTHS };

static void
ask_lengths(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;
	const char *queue = g->out->queues[i / LENGTHS].name;

	if (i % LENGTHS != OURS) {
		mq_command_plain(c, "LLEN");
		rmq_key_queue(
		    c, queue, i % LENGTHS == READY ? "ready" : "rejected");
		return;
	}
	mq_command_plain(c, "EXISTS");
	/* Of which there is nothing of ours. */
	if (rmq_is_scattered(c, queue)) {
		rmq_key_queue(c, queue, "counters");
		return;
	}
	rmq_key_queue(c, queue, "priority");
	rmq_key_queue(c, queue, "delayed");
	rmq_key_queue(c, queue, "clock");
	rmq_key_queue(c, queue, "paused");
	rmq_key_queue(c, queue, "counters");
	if (c->cluster)
		rmq_key_queue(c, queue, "outgoing");
}

static int
take_lengths(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	struct mq_queue_stats *q = &g->out->queues[i / LENGTHS];

	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	if (i % LENGTHS != OURS) {
		*(i % LENGTHS == READY ? &q->ready : &q->rejected) =
		    reply->integer;
		return 0;
	}
	if (reply->integer > 0)
		g->row[g->rows++] = (int)(i / LENGTHS);
	g->keys[i / LENGTHS] = (unsigned char)reply->integer;
	return 0;
}

/* --- what only some have ---------------------------------------------------- */

static void
ask_counts(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;

	mq_command_plain(c, "HMGET");
	rmq_key_queue(c, g->out->queues[g->row[i]].name, "counters");
	mq_counts_ask(c, g->wanted);
}

static int
take_counts(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;

	return mq_counts_take(
	    reply, g->out->now_ms, &g->out->queues[g->row[i]]);
}

/* The last is of clusters only, and so is the right to it. */
enum { PRIORITY, DELAYED, CLOCK, PAUSED, OUTGOING, EXTRAS };

static void
ask_extras(void *arg, size_t i, struct mq_command *c)
{
	static const struct {
		const char *verb, *key;
	} asked[EXTRAS] = {[PRIORITY] = {"ZCARD", "priority"},
	    [DELAYED] = {"ZCARD", "delayed"},
	    [CLOCK] = {"GET", "clock"},
	    [PAUSED] = {"PTTL", "paused"},
	    [OUTGOING] = {"HLEN", "outgoing"}};
	struct gather *g = arg;

	mq_command_plain(c, asked[i % g->extras].verb);
	rmq_key_queue(c, g->out->queues[g->row[i / g->extras]].name,
	    asked[i % g->extras].key);
}

static int
take_clock(struct mq_queue_stats *q, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_STRING)
		q->tick = strtoll(reply->str, NULL, 10);
	return reply->type == REDIS_REPLY_STRING ||
		reply->type == REDIS_REPLY_NIL ?
	    0 :
	    -1;
}

static int
take_extras(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	struct mq_queue_stats *q = &g->out->queues[g->row[i / g->extras]];

	if (i % g->extras == CLOCK)
		return take_clock(q, reply);
	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	if (i % g->extras == PRIORITY) {
		q->ready += reply->integer;
		g->sorted[g->row[i / g->extras]] = reply->integer > 0;
	} else if (i % g->extras == DELAYED) {
		q->delayed = reply->integer;
	} else if (i % g->extras == OUTGOING) {
		q->leaving = reply->integer;
	} else if (reply->integer >= 0) {
		q->paused_ms = g->out->now_ms + reply->integer;
	} else if (reply->integer == -1) {
		q->paused_ms = -1;
	}
	return 0;
}

/* Most queues of ours have counts and nothing else. */
static int
ask_ours(struct mq_redis *r, struct gather *g)
{
	int i, rows = 0;

	if (mq_ask_all(r, (size_t)g->rows, ask_counts, take_counts, g) == -1)
		return -1;
	for (i = 0; i < g->rows; i++)
		if (g->keys[g->row[i]] > g->out->queues[g->row[i]].counted)
			g->row[rows++] = g->row[i];
	g->rows = rows;
	g->extras = mq_redis_command(r).cluster ? EXTRAS : OUTGOING;
	return mq_ask_all(
	    r, g->extras * (size_t)g->rows, ask_extras, take_extras, g);
}

/* --- what is there in the other form ---------------------------------------------- */

/* Nearly no queue has any: on one server, many are asked about in one command, and those
 * of them that must be, one by one. */
#define TOGETHER 100

struct others {
	struct mq_stats *out;
	int *row, rows, kept;
	int together; /* rows in a command; 0: a key */
};

static void
ask_others(void *arg, size_t i, struct mq_command *c)
{
	const struct others *o = arg;
	int at = (int)i * o->together, end = at + o->together;
	const char *queue;

	mq_command_plain(c, "EXISTS");
	if (o->together == 0) {
		queue = o->out->queues[o->row[i / 2]].name;
		rmq_key_queue_other(
		    c, queue, i % 2 == 0 ? "ready" : "rejected");
		return;
	}
	for (; at < end && at < o->rows; at++) {
		queue = o->out->queues[o->row[at]].name;
		rmq_key_queue_other(c, queue, "ready");
		rmq_key_queue_other(c, queue, "rejected");
	}
}

/* A user without the right to look is told nothing. */
static int
take_others(void *arg, size_t i, redisReply *reply)
{
	struct others *o = arg;
	int at = (int)i * o->together, end = at + o->together;

	if (reply->type != REDIS_REPLY_INTEGER || reply->integer == 0)
		return 0;
	if (o->together == 0)
		o->out->queues[o->row[i / 2]].other = true;
	for (; at < end && at < o->rows; at++)
		if (o->together == 1)
			o->out->queues[o->row[at]].other = true;
		else
			o->row[o->kept++] = o->row[at];
	return 0;
}

/* On a cluster, those that have nothing else. */
static bool
may_have_others(const struct mq_queue_stats *q, bool cluster)
{
	return !cluster || (q->ready == 0 && q->rejected == 0 && !q->counted);
}

static int
find_others(struct mq_redis *r, struct mq_stats *out)
{
	bool cluster = mq_redis_command(r).cluster;
	struct others o = {.out = out, .together = cluster ? 0 : TOGETHER};
	size_t n;
	int i, rv;

	o.row = mq_xcalloc((size_t)out->count + 1, sizeof(*o.row));
	for (i = 0; i < out->count; i++)
		if (may_have_others(&out->queues[i], cluster))
			o.row[o.rows++] = i;
	n = cluster ? 2 * (size_t)o.rows :
		      ((size_t)o.rows + TOGETHER - 1) / TOGETHER;
	rv = mq_ask_each(r, n, ask_others, take_others, &o);
	o.rows = o.kept;
	o.together = 1;
	if (rv == 0)
		rv =
		    mq_ask_each(r, (size_t)o.rows, ask_others, take_others, &o);
	free(o.row);
	return rv;
}

static int
ask_queues(struct mq_redis *r, struct gather *g)
{
	struct mq_stats *out = g->out;
	int rv;

	g->row = mq_xcalloc((size_t)out->count + 1, sizeof(*g->row));
	g->keys = mq_xcalloc((size_t)out->count + 1, sizeof(*g->keys));
	g->sorted = mq_xcalloc((size_t)out->count + 1, sizeof(*g->sorted));
	rv = mq_ask_all(
	    r, LENGTHS * (size_t)out->count, ask_lengths, take_lengths, g);
	if (rv == 0)
		rv = ask_ours(r, g);
	if (rv == 0)
		rv = rmq_stats_ages(r, out, g->sorted);
	if (rv == 0 && (g->wanted & MQ_STATS_UNLISTED))
		rv = find_others(r, out);
	free(g->row);
	free(g->keys);
	free(g->sorted);
	return rv;
}

int
rmq_stats(struct mq_redis *r, const char *const *queues, int count, int wanted,
    struct mq_stats *out)
{
	struct gather g = {.out = out, .wanted = wanted};
	int rv;

	*out = (struct mq_stats){0};
	mq_partial_begin(r);
	rv = mq_server_time(r, &out->now_ms);
	if (rv == 0)
		rv = count == 0 ? list_all(r, out) :
				  list_named(r, queues, count, &g);
	if (rv == 0)
		rv = ask_queues(r, &g);
	if (rv == 0)
		rv = rmq_stats_connections(r, wanted, count > 0, out);
	if (rv == 0 && count > 0)
		mq_rows_order(out, queues, count);
	if (rv == 0)
		rmq_stats_nodes(r, out);
	if (rv == -1)
		mq_stats_free(out);
	return rv;
}
