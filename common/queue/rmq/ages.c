/*
 * The rmq layout: how long messages have been waiting.
 */
#include "layout.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "keys.h"
#include "message/envelope.h"
#include "message/headers.h"
#include "scripts.h"

/* How many keys one call of a script looks at. */
#define BATCH 50

struct gather {
	struct mq_stats *out;
	int *row, rows; /* the queues that the questions are about */
};

/* A batch of keys as the arguments of a script. */
static void
ask_batch(struct gather *g, size_t i, const struct mq_script *script,
    const char *what, struct mq_command *c)
{
	int at = (int)i * BATCH;
	int n = g->rows - at < BATCH ? g->rows - at : BATCH, k;

	mq_command_script(c, script, n);
	for (k = at; k < at + n; k++)
		rmq_key_queue(c, g->out->queues[g->row[k]].name, what);
}

static void
ask_since(void *arg, size_t i, struct mq_command *c)
{
	ask_batch(arg, i, &rmq_script_oldest, "ready", c);
	mq_command_str(c, "ready");
}

static void
ask_sorted(void *arg, size_t i, struct mq_command *c)
{
	ask_batch(arg, i, &rmq_script_oldest, "priority", c);
	mq_command_str(c, "priority");
}

static void
ask_due(void *arg, size_t i, struct mq_command *c)
{
	ask_batch(arg, i, &rmq_script_due, "delayed", c);
}

/* Whether there are so many elements for each key of the batch. */
static bool
is_whole(const struct gather *g, size_t i, size_t each, const redisReply *reply)
{
	size_t left = (size_t)g->rows - i * BATCH;

	return reply->type == REDIS_REPLY_ARRAY &&
	    reply->elements == each * (left < BATCH ? left : BATCH);
}

/* The row of key k in batch i, of which text tells; NULL: that is none. */
static struct mq_queue_stats *
row_of(const struct gather *g, size_t i, size_t k, const redisReply *text)
{
	if (text->type != REDIS_REPLY_STRING && text->type != REDIS_REPLY_NIL)
		return NULL;
	return &g->out->queues[g->row[i * BATCH + k]];
}

static int64_t
since_ms(const redisReply *header)
{
	struct mq_envelope e;
	const char *why;
	int64_t ms;

	if (header->type != REDIS_REPLY_STRING ||
	    mq_envelope_parse(header->str, (size_t)header->len, &e, &why) == -1)
		return -1;
	ms = mq_message_since_ms(&e);
	mq_envelope_free(&e);
	return ms > 0 ? ms : -1;
}

static int
take_since(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	struct mq_queue_stats *q;
	size_t k;

	if (!is_whole(g, i, 1, reply))
		return -1;
	for (k = 0; k < reply->elements; k++) {
		q = row_of(g, i, k, reply->element[k]);
		if (q == NULL)
			return -1;
		q->oldest_ms = since_ms(reply->element[k]);
	}
	return 0;
}

/* Any number can be a score; ours are unix milliseconds. */
static int64_t
score_ms(const char *score)
{
	double ms = strtod(score, NULL);

	return ms >= 9e15 ? INT64_C(9000000000000000) :
	    ms >= 1	  ? (int64_t)ms :
			    1;
}

/* Of two that are known, the older one counts. */
static void
older(struct mq_queue_stats *q, int64_t ms)
{
	if (q->oldest_ms <= 0 || ms < q->oldest_ms)
		q->oldest_ms = ms;
}

static int
take_sorted(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	struct mq_queue_stats *q;
	size_t k;

	if (!is_whole(g, i, 1, reply))
		return -1;
	for (k = 0; k < reply->elements; k++) {
		q = row_of(g, i, k, reply->element[k]);
		if (q == NULL)
			return -1;
		if (reply->element[k]->type == REDIS_REPLY_STRING)
			older(q, score_ms(reply->element[k]->str));
	}
	return 0;
}

static int
take_due(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	redisReply **e = reply->element;
	struct mq_queue_stats *q;
	size_t k;

	if (!is_whole(g, i, 2, reply))
		return -1;
	for (k = 0; k < reply->elements; k += 2) {
		q = row_of(g, i, k / 2, e[k]);
		if (q == NULL || e[k + 1]->type != REDIS_REPLY_INTEGER)
			return -1;
		q->in_line = e[k + 1]->integer;
		if (e[k]->type == REDIS_REPLY_NIL)
			continue;
		q->next_due_ms = score_ms(e[k]->str);
		if (q->next_due_ms <= g->out->now_ms)
			older(q, q->next_due_ms);
	}
	return 0;
}

static size_t
batches(int n)
{
	return ((size_t)n + BATCH - 1) / BATCH;
}

/* Asks about the rows that are chosen. */
static int
ask_rows(struct mq_redis *r, struct gather *g,
    void (*build)(void *, size_t, struct mq_command *),
    int (*take)(void *, size_t, redisReply *))
{
	int rv = mq_ask_all(r, batches(g->rows), build, take, g);

	g->rows = 0;
	return rv;
}

int
rmq_stats_ages(struct mq_redis *r, struct mq_stats *out, const bool *sorted)
{
	struct gather g = {
	    .out = out, .row = mq_xcalloc((size_t)out->count + 1, sizeof(int))};
	int rv, i;

	for (i = 0; i < out->count; i++)
		if (out->queues[i].ready > 0)
			g.row[g.rows++] = i;
	rv = ask_rows(r, &g, ask_since, take_since);
	for (i = 0; i < out->count && rv == 0; i++)
		if (sorted[i])
			g.row[g.rows++] = i;
	if (rv == 0)
		rv = ask_rows(r, &g, ask_sorted, take_sorted);
	for (i = 0; i < out->count && rv == 0; i++)
		if (out->queues[i].delayed > 0)
			g.row[g.rows++] = i;
	if (rv == 0)
		rv = ask_rows(r, &g, ask_due, take_due);
	free(g.row);
	return rv;
}
