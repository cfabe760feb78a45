/*
 * The rmq layout: what is in the queues.
 *
 * There may be thousands of them, so only what the answers so far leave open
 * is asked: first how many keys they have, then what these are, and the ages of the
 * messages there are.
 */
#include "rmq.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "queue/layout.h"
#include "queue/stats.h"
#include "redis/connection.h"
#include "redis/ask.h"

/* Queues in one command, and for their keys in the other form. */
#define TOGETHER	25
#define OTHERS_TOGETHER 100

/* The questions about a queue that may have any. */
enum {
	READY,
	REJECTED,
	OURS,
	COUNTS,
	PRIORITY,
	DELAYED,
	CLOCK,
	PAUSED,
	OUTGOING,
	QUESTIONS
};

struct gather {
	struct mq_stats *out;
	int wanted;
	unsigned char *keys; /* of each queue, an enum rmq_keys */
	int *left;    /* how many of these are ours, and not asked about */
	bool *sorted; /* queues with messages of a priority */
	int *row;     /* the queues that are asked about */
	size_t rows;
	int first; /* of the questions about each */
	size_t questions;
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
list_all(struct mq_redis *r, int wanted, struct mq_stats *out)
{
	redisReply *names = rmq_stats_members(r, RMQ_QUEUES, &out->part);
	int rv = 0;

	if (names == NULL)
		return -1;
	if (out->part)
		rv = rmq_stats_list_found(r, out);
	else if (!(wanted & MQ_STATS_FEW) || names->elements <= MQ_FEW_QUEUES)
		mq_rows_list(out, names);
	freeReplyObject(names);
	return rv;
}

/* What only these tools make; of a scattered queue, there is nothing of it. */
static void
add_ours(struct mq_command *c, const char *queue)
{
	static const char *const keys[] = {
	    "priority", "delayed", "clock", "paused", "counters", "outgoing"};
	int i, n = c->cluster ? 6 : 5;

	if (rmq_is_scattered(c, queue))
		rmq_key_queue(c, queue, "counters");
	else
		for (i = 0; i < n; i++)
			rmq_key_queue(c, queue, keys[i]);
}

/* --- which have anything ------------------------------------------------------- */

static void
add_keys(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_stats *out = arg;

	rmq_key_queue(c, out->queues[i].name, "ready");
	rmq_key_queue(c, out->queues[i].name, "rejected");
	add_ours(c, out->queues[i].name);
}

/* Many queues may have nothing at all: if the first ones do not, the others are asked
 * about together, too; and always for whoever asks every minute. */
static int
find_empty(struct mq_redis *r, struct gather *g)
{
	size_t n = (size_t)g->out->count;
	struct rmq_exists look = {r, add_keys, g->out, g->keys};
	int rv;

	if (n <= TOGETHER || mq_redis_command(r).cluster)
		return 0;
	rv = rmq_exists(&look, RMQ_ANY, TOGETHER, TOGETHER);
	return rv == 0 &&
		(g->keys[0] == RMQ_NONE || (g->wanted & MQ_STATS_FEW)) ?
	    rmq_exists(&look, RMQ_ANY, n, TOGETHER) :
	    rv;
}

/* On a cluster, no command asks about several keys in the other form. */
static void
add_others(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_queue_stats *q = ((const struct mq_stats *)arg)->queues;

	if (!c->cluster || i % 2 == 0)
		rmq_key_queue_other(c, q[c->cluster ? i / 2 : i].name, "ready");
	if (!c->cluster || i % 2 == 1)
		rmq_key_queue_other(
		    c, q[c->cluster ? i / 2 : i].name, "rejected");
}

/* Nearly no queue has any keys in the other form; on a cluster, only those are asked about
 * that have nothing else.  A user without the right to look is told nothing. */
static int
find_others(struct mq_redis *r, struct mq_stats *out)
{
	size_t each = mq_redis_command(r).cluster ? 2 : 1, i;
	size_t n = each * (size_t)out->count;
	struct rmq_exists look = {r, add_others, out, mq_xcalloc(n + 1, 1)};
	struct mq_queue_stats *q;
	int rv;

	for (i = 0; i < n; i++) {
		q = &out->queues[i / each];
		if (each == 2 &&
		    (q->ready != 0 || q->rejected != 0 || q->counted))
			look.keys[i] = RMQ_NONE;
	}
	rv = rmq_exists(&look, RMQ_ANY, n, each == 2 ? 1 : OTHERS_TOGETHER);
	if (rv == 0 && each == 1)
		rv = rmq_exists(&look, RMQ_SOME, n, 1);
	for (i = 0; i < n; i++)
		out->queues[i / each].other |= look.keys[i] == RMQ_SOME;
	free(look.keys);
	return rv;
}

/* --- what each has ------------------------------------------------------------- */

/* The last is of clusters only, and so is the right to it. */
static const struct {
	const char *verb, *key;
} asked[] = {[READY] = {"LLEN", "ready"},
    [REJECTED] = {"LLEN", "rejected"},
    [OURS] = {"EXISTS", NULL},
    [COUNTS] = {"HMGET", "counters"},
    [PRIORITY] = {"ZCARD", "priority"},
    [DELAYED] = {"ZCARD", "delayed"},
    [CLOCK] = {"GET", "clock"},
    [PAUSED] = {"PTTL", "paused"},
    [OUTGOING] = {"HLEN", "outgoing"}};

static void
ask_row(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;
	int question = g->first + (int)(i % g->questions);
	const char *queue = g->out->queues[g->row[i / g->questions]].name;

	mq_command_plain(c, asked[question].verb);
	if (question == OURS)
		add_ours(c, queue);
	else
		rmq_key_queue(c, queue, asked[question].key);
	if (question == COUNTS)
		mq_counts_ask(c, g->wanted);
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

static void
take_number(struct gather *g, int row, int question, long long n)
{
	struct mq_queue_stats *q = &g->out->queues[row];

	if (question == READY)
		q->ready = n;
	else if (question == REJECTED)
		q->rejected = n;
	else if (question == OURS)
		g->left[row] = (int)n;
	else if (question == PRIORITY)
		q->ready += n;
	else if (question == DELAYED)
		q->delayed = n;
	else if (question == OUTGOING)
		q->leaving = n;
	else if (n >= -1)
		q->paused_ms = n >= 0 ? g->out->now_ms + n : -1;
	g->sorted[row] |= question == PRIORITY && n > 0;
}

static int
take_row(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	int question = g->first + (int)(i % g->questions);
	int row = g->row[i / g->questions], rv;
	struct mq_queue_stats *q = &g->out->queues[row];

	if (question == COUNTS) {
		rv = mq_counts_take(reply, g->out->now_ms, q);
		g->left[row] -= q->counted;
		return rv;
	}
	if (question == CLOCK)
		return take_clock(q, reply);
	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	take_number(g, row, question, reply->integer);
	return 0;
}

/* First those about every queue that may have anything, then those about keys of ours. */
static int
ask_rows(struct mq_redis *r, struct gather *g, int first, int end)
{
	int i;

	g->rows = 0;
	g->first = first;
	g->questions = (size_t)(end - first);
	for (i = 0; i < g->out->count; i++)
		if (first == READY ? g->keys[i] != RMQ_NONE : g->left[i] > 0)
			g->row[g->rows++] = i;
	return mq_ask_all(r, g->rows * g->questions, ask_row, take_row, g);
}

static int
ask_queues(struct mq_redis *r, struct gather *g)
{
	struct mq_stats *out = g->out;
	bool cluster = mq_redis_command(r).cluster;
	int rv;

	g->keys = mq_xcalloc((size_t)out->count + 1, sizeof(*g->keys));
	g->row = mq_xcalloc((size_t)out->count + 1, sizeof(*g->row));
	g->left = mq_xcalloc((size_t)out->count + 1, sizeof(*g->left));
	g->sorted = mq_xcalloc((size_t)out->count + 1, sizeof(*g->sorted));
	rv = find_empty(r, g);
	if (rv == 0)
		rv = ask_rows(r, g, READY, COUNTS);
	if (rv == 0)
		rv = ask_rows(r, g, COUNTS, PRIORITY);
	/* Most queues of ours have counts and nothing else. */
	if (rv == 0)
		rv = ask_rows(r, g, PRIORITY, cluster ? QUESTIONS : OUTGOING);
	if (rv == 0)
		rv = rmq_stats_ages(r, out, g->sorted);
	if (rv == 0 && (g->wanted & MQ_STATS_UNLISTED))
		rv = find_others(r, out);
	free(g->keys);
	free(g->row);
	free(g->left);
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
		rv = count == 0 ? list_all(r, wanted, out) :
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
