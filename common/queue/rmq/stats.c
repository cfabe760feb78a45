/*
 * The rmq layout: what is in the queues, and how long it has been waiting.
 *
 * There may be thousands of them, so only what the answers so far leave open
 * is asked: first how many keys they have, then what these are, and the ages of the
 * messages there are.
 */
#include "rmq.h"

#include <sys/param.h>

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "message/envelope.h"
#include "message/headers.h"
#include "queue/layout.h"
#include "queue/stats.h"
#include "redis/connection.h"
#include "redis/ask.h"

/* Queues in one command, and for their keys in the other form; and how many keys one call
 * of a script looks at: on a cluster one, as they may be anywhere. */
#define TOGETHER	25
#define OTHERS_TOGETHER 100
#define AGES_TOGETHER	50

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
	OUTGOING, /* of clusters only, and so is the right to it */
	NOW	  /* the time of its node, for ages */
};

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
    [OUTGOING] = {"HLEN", "outgoing"},
    [NOW] = {"TIME", NULL}};

struct known {
	int left;    /* keys that are ours, and not asked about */
	bool sorted; /* it has messages of a priority */
	/* How far the clock of its node is before out->now_ms: what is found is told by
	 * the latter. */
	int64_t ahead;
};

struct gather {
	struct mq_stats *out;
	int wanted;
	unsigned char *keys; /* of each queue, an enum rmq_keys, ... */
	struct known *known; /* ... and what else is known */
	int *row;	     /* the queues that are asked about */
	size_t rows;
	int first; /* of the questions about each */
	size_t questions;
	size_t batch; /* for ages, queues in one command */
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
list_rows(
    struct mq_redis *r, const char *const *queues, int count, struct gather *g)
{
	struct mq_stats *out = g->out;
	struct mq_names found = {0};
	const char **names;
	redisReply *all;
	size_t i;
	int rv = 0;

	if (count > 0) {
		/* Where there is no answer, a queue counts as known. */
		mq_rows_make(out, queues, (size_t)count, true);
		return mq_ask_all(r, (size_t)count, ask_known, take_known, g);
	}
	all = rmq_stats_members(r, RMQ_QUEUES, &out->part);
	if (all == NULL)
		return -1;
	if (out->part) {
		rv = rmq_find_queues(r, &found);
		names = mq_xcalloc(found.n + 1, sizeof(*names));
		for (i = 0; i < found.n; i++)
			names[i] = found.list[i].name;
		mq_rows_make(out, names, found.n, true);
		free(names);
		mq_names_free(&found);
	} else if (!(g->wanted & MQ_STATS_FEW) ||
	    all->elements <= MQ_FEW_QUEUES) {
		mq_rows_list(out, all);
	}
	freeReplyObject(all);
	return rv;
}

/* What only these tools make; of a scattered queue, there is nothing of it. */
static void
add_ours(struct mq_command *c, const char *queue)
{
	if (rmq_is_scattered(c, queue))
		rmq_key_queue(c, queue, "counters");
	else
		rmq_key_queue(c, queue,
		    c->cluster ?
			"priority delayed clock paused counters outgoing" :
			"priority delayed clock paused counters");
}

/* --- which have anything ------------------------------------------------------- */

static void
add_keys(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_stats *out = arg;

	rmq_key_queue(c, out->queues[i].name, "ready rejected");
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
	const struct mq_stats *out = arg;
	const char *queue = out->queues[c->cluster ? i / 2 : i].name;

	if (!c->cluster || i % 2 == 0)
		rmq_key_queue_other(c, queue, "ready");
	if (!c->cluster || i % 2 == 1)
		rmq_key_queue_other(c, queue, "rejected");
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
take_row(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	int question = g->first + (int)(i % g->questions);
	int row = g->row[i / g->questions], rv;
	struct mq_queue_stats *q = &g->out->queues[row];
	long long n = reply->integer;

	if (question == COUNTS) {
		rv = mq_counts_take(reply, g->out->now_ms, q);
		g->known[row].left -= q->counted;
		return rv;
	}
	if (question == CLOCK && reply->type == REDIS_REPLY_STRING)
		q->tick = strtoll(reply->str, NULL, 10);
	else if (question == CLOCK)
		return reply->type == REDIS_REPLY_NIL ? 0 : -1;
	else if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	else if (question == READY)
		q->ready = n;
	else if (question == REJECTED)
		q->rejected = n;
	else if (question == OURS)
		g->known[row].left = (int)n;
	else if (question == PRIORITY)
		q->ready += n;
	else if (question == DELAYED)
		q->delayed = n;
	else if (question == OUTGOING)
		q->leaving = n;
	else if (n >= -1)
		q->paused_ms = n >= 0 ? g->out->now_ms + n : -1;
	g->known[row].sorted |= question == PRIORITY && n > 0;
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
		if (first == READY ? g->keys[i] != RMQ_NONE :
				     g->known[i].left > 0)
			g->row[g->rows++] = i;
	return mq_ask_all(r, g->rows * g->questions, ask_row, take_row, g);
}

/* --- ages ---------------------------------------------------------------------- */

/* A batch of keys as the arguments of a script. */
static void
ask_ages(void *arg, size_t i, struct mq_command *c)
{
	const struct gather *g = arg;
	size_t at = i * g->batch, end = MIN(at + g->batch, g->rows);
	const char *key = asked[g->first].key;

	if (g->first == NOW) {
		mq_command_plain(c, "TIME");
		rmq_beside_queue(c, g->out->queues[g->row[at]].name);
		return;
	}
	mq_command_script(
	    c, g->first == DELAYED ? &rmq_script_due : &rmq_script_oldest);
	for (; at < end; at++)
		rmq_key_queue(c, g->out->queues[g->row[at]].name, key);
	if (g->first != DELAYED)
		mq_command_str(c, key);
}

static int64_t
since_ms(const redisReply *header)
{
	struct mq_envelope e;
	const char *why;
	int64_t ms;

	if (mq_envelope_parse(header->str, header->len, &e, &why) == -1)
		return -1;
	ms = mq_message_since_ms(&e);
	mq_envelope_free(&e);
	return ms > 0 ? ms : -1;
}

/* Any number can be a score; ours are unix milliseconds.  What is known is at least 1,
 * however far ahead the clock is that it is of. */
static int64_t
score_ms(const char *score, int64_t ahead)
{
	double ms = strtod(score, NULL) - (double)ahead;

	return ms >= 9e15 ? INT64_C(9000000000000000) :
	    ms >= 1	  ? (int64_t)ms :
			    1;
}

/* The elements of the reply that one row has. */
static int
take_age(const struct gather *g, int row, redisReply *const *e)
{
	struct mq_queue_stats *q = &g->out->queues[row];
	int64_t ahead = g->known[row].ahead, ms;
	bool there = e[0]->type == REDIS_REPLY_STRING;

	if (!there && e[0]->type != REDIS_REPLY_NIL)
		return -1;
	if (g->first == READY) {
		q->oldest_ms = there ? since_ms(e[0]) : -1;
		if (q->oldest_ms > ahead)
			q->oldest_ms -= ahead;
		return 0;
	}
	ms = there ? score_ms(e[0]->str, ahead) : 0;
	if (g->first == DELAYED) {
		if (e[1]->type != REDIS_REPLY_INTEGER)
			return -1;
		q->in_line = e[1]->integer;
		if (there)
			q->next_due_ms = ms;
		there &= q->next_due_ms <= g->out->now_ms;
	}
	/* Of two that are known, the older one counts. */
	if (there && (q->oldest_ms <= 0 || ms < q->oldest_ms))
		q->oldest_ms = ms;
	return 0;
}

static int
take_ages(void *arg, size_t i, redisReply *reply)
{
	const struct gather *g = arg;
	size_t each = g->first == DELAYED ? 2 : 1, at = i * g->batch, k;
	size_t n = MIN(g->batch, g->rows - at);
	int64_t now;

	if (g->first == NOW) {
		if (mq_reply_time(reply, &now) == -1)
			return -1;
		g->known[g->row[i]].ahead = now - g->out->now_ms;
		return 0;
	}
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != each * n)
		return -1;
	for (k = 0; k < n; k++)
		if (take_age(g, g->row[at + k], reply->element + k * each) ==
		    -1)
			return -1;
	return 0;
}

/* When messages are due, and since when they have been claimable, in the rows
 * whose numbers of messages are known. */
static int
find_ages(struct mq_redis *r, struct gather *g)
{
	static const int questions[] = {NOW, READY, PRIORITY, DELAYED};
	bool cluster = mq_redis_command(r).cluster, has;
	const struct mq_queue_stats *q;
	size_t k;
	int i, rv = 0;

	g->batch = cluster ? 1 : AGES_TOGETHER;
	for (k = cluster ? 0 : 1; k < 4 && rv == 0; k++) {
		g->first = questions[k];
		g->rows = 0;
		for (i = 0; i < g->out->count; i++) {
			q = &g->out->queues[i];
			has = g->first == PRIORITY ? g->known[i].sorted :
			    g->first == READY	   ? q->ready > 0 :
			    g->first == DELAYED ?
						q->delayed > 0 :
						q->ready > 0 || q->delayed > 0;
			if (has)
				g->row[g->rows++] = i;
		}
		rv = mq_ask_all(r, (g->rows + g->batch - 1) / g->batch,
		    ask_ages, take_ages, g);
	}
	return rv;
}

static int
ask_queues(struct mq_redis *r, struct gather *g)
{
	bool cluster = mq_redis_command(r).cluster;
	size_t n = (size_t)g->out->count + 1;
	int rv;

	g->keys = mq_xcalloc(n, sizeof(*g->keys));
	g->row = mq_xcalloc(n, sizeof(*g->row));
	g->known = mq_xcalloc(n, sizeof(*g->known));
	rv = find_empty(r, g);
	if (rv == 0)
		rv = ask_rows(r, g, READY, COUNTS);
	if (rv == 0)
		rv = ask_rows(r, g, COUNTS, PRIORITY);
	/* Most queues of ours have counts and nothing else. */
	if (rv == 0)
		rv = ask_rows(r, g, PRIORITY, cluster ? NOW : OUTGOING);
	if (rv == 0)
		rv = find_ages(r, g);
	if (rv == 0 && (g->wanted & MQ_STATS_UNLISTED))
		rv = find_others(r, g->out);
	free(g->keys);
	free(g->row);
	free(g->known);
	return rv;
}

/* On a cluster: sets the nodes of the rows; and what is not known, as a node is lost. */
static void
find_nodes(const struct mq_redis *r, struct mq_stats *out)
{
	struct mq_command c = mq_redis_command(r);
	struct mq_queue_stats *q;
	int i;

	for (i = 0; i < out->count && c.cluster; i++) {
		q = &out->queues[i];
		mq_command_plain(&c, "LLEN");
		rmq_key_queue(&c, q->name, "ready");
		q->node = mq_partial_node(r, &c);
		q->scattered = rmq_is_scattered(&c, q->name);
		if (!mq_partial_missed(r, &c))
			continue;
		q->ready = q->delayed = q->unacked = q->rejected = -1;
		q->consumers = q->dead_consumers = q->connections = -1;
		q->in_line = q->oldest_ms = -1;
		q->counted = false;
	}
	mq_command_free(&c);
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
		rv = list_rows(r, queues, count, &g);
	if (rv == 0)
		rv = ask_queues(r, &g);
	if (rv == 0)
		rv = rmq_stats_connections(r, wanted, count > 0, out);
	if (rv == 0 && count > 0)
		mq_rows_order(out, queues, count);
	if (rv == 0)
		find_nodes(r, out);
	if (rv == -1)
		mq_stats_free(out);
	return rv;
}
