/*
 * The rmq layout: how long messages have been waiting.
 */
#include "rmq.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "message/envelope.h"
#include "message/headers.h"

/* How many keys one call of a script looks at; on a cluster, they may be anywhere. */
#define BATCH 50

/* The questions, which are asked one after the other. */
enum question { NOW, READY, PRIORITY, DELAYED, QUESTIONS };

struct gather {
	struct mq_stats *out;
	enum question question;
	int *row, rows; /* the queues that it is about */
	int batch;
	/* Of each row, how far the clock of its node is before out->now_ms: what is
	 * found is told by the latter. */
	int64_t *ahead;
};

/* A batch of keys as the arguments of a script. */
static void
ask_batch(void *arg, size_t i, struct mq_command *c)
{
	static const char *const keys[] = {
	    NULL, "ready", "priority", "delayed"};
	const struct gather *g = arg;
	const char *key = keys[g->question];
	int at = (int)i * g->batch, k;
	int n = g->rows - at < g->batch ? g->rows - at : g->batch;

	if (g->question == NOW) {
		mq_command_plain(c, "TIME");
		rmq_beside_queue(c, g->out->queues[g->row[at]].name);
		return;
	}
	mq_command_script(
	    c, g->question == DELAYED ? &rmq_script_due : &rmq_script_oldest);
	for (k = at; k < at + n; k++)
		rmq_key_queue(c, g->out->queues[g->row[k]].name, key);
	if (g->question != DELAYED)
		mq_command_str(c, key);
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

/* Of two that are known, the older one counts. */
static void
older(struct mq_queue_stats *q, int64_t ms)
{
	if (q->oldest_ms <= 0 || ms < q->oldest_ms)
		q->oldest_ms = ms;
}

/* The elements of the reply that one row has. */
static int
take_row(const struct gather *g, int row, redisReply *const *e)
{
	struct mq_queue_stats *q = &g->out->queues[row];
	int64_t ahead = g->ahead[row];
	bool there = e[0]->type == REDIS_REPLY_STRING;

	if (!there && e[0]->type != REDIS_REPLY_NIL)
		return -1;
	if (g->question == READY) {
		q->oldest_ms = since_ms(e[0]);
		if (q->oldest_ms > ahead)
			q->oldest_ms -= ahead;
		return 0;
	}
	if (g->question == DELAYED) {
		if (e[1]->type != REDIS_REPLY_INTEGER)
			return -1;
		q->in_line = e[1]->integer;
		if (there)
			q->next_due_ms = score_ms(e[0]->str, ahead);
		there &= q->next_due_ms <= g->out->now_ms;
	}
	if (there)
		older(q, score_ms(e[0]->str, ahead));
	return 0;
}

static int
take_batch(void *arg, size_t i, redisReply *reply)
{
	const struct gather *g = arg;
	size_t each = g->question == DELAYED ? 2 : 1, k;
	int64_t now;
	size_t batch = (size_t)g->batch, left = (size_t)g->rows - i * batch;

	if (g->question == NOW) {
		if (mq_reply_time(reply, &now) == -1)
			return -1;
		g->ahead[g->row[i]] = now - g->out->now_ms;
		return 0;
	}
	if (reply->type != REDIS_REPLY_ARRAY ||
	    reply->elements != each * (left < batch ? left : batch))
		return -1;
	for (k = 0; k < reply->elements; k += each)
		if (take_row(g, g->row[i * batch + k / each],
			reply->element + k) == -1)
			return -1;
	return 0;
}

static bool
is_asked(const struct gather *g, int i, const bool *sorted)
{
	const struct mq_queue_stats *q = &g->out->queues[i];

	return g->question == NOW   ? q->ready > 0 || q->delayed > 0 :
	    g->question == READY    ? q->ready > 0 :
	    g->question == PRIORITY ? sorted[i] :
				      q->delayed > 0;
}

int
rmq_stats_ages(struct mq_redis *r, struct mq_stats *out, const bool *sorted)
{
	bool cluster = mq_redis_command(r).cluster;
	struct gather g = {.out = out,
	    .question = cluster ? NOW : READY,
	    .ahead = mq_xcalloc((size_t)out->count + 1, sizeof(*g.ahead)),
	    .row = mq_xcalloc((size_t)out->count + 1, sizeof(int)),
	    .batch = cluster ? 1 : BATCH};
	int rv = 0, i;

	for (; rv == 0 && g.question < QUESTIONS; g.question++) {
		g.rows = 0;
		for (i = 0; i < out->count; i++)
			if (is_asked(&g, i, sorted))
				g.row[g.rows++] = i;
		rv = mq_ask_all(r, (size_t)((g.rows + g.batch - 1) / g.batch),
		    ask_batch, take_batch, &g);
	}
	free(g.row);
	free(g.ahead);
	return rv;
}
