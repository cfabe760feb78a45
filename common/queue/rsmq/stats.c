/*
 * The rsmq layout: what is in the queues.
 */
#include "rsmq.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "queue/layout.h"
#include "queue/stats.h"

/* The names that RSMQ lists, in a namespace; others, which cannot be queues,
 * are left out. */
static void
add_listed(
    const struct mq_redis *r, struct mq_stats *out, const redisReply *all)
{
	const char **name = mq_xcalloc(all->elements + 1, sizeof(*name));
	char **own = mq_xcalloc(all->elements + 1, sizeof(*own));
	size_t i, n = 0;

	for (i = 0; i < all->elements; i++)
		if (rsmq_is_name(all->element[i])) {
			own[n] = rsmq_name(r, all->element[i]->str);
			name[n] = own[n];
			n++;
		}
	mq_rows_make(out, name, n, true);
	for (i = 0; i < n; i++)
		free(own[i]);
	free(own);
	free(name);
}

static int
list_all(struct mq_redis *r, int wanted, struct mq_stats *out)
{
	redisReply *names = rsmq_listed(r);

	if (names == NULL)
		return -1;
	if (!(wanted & MQ_STATS_FEW) || names->elements <= MQ_FEW_QUEUES)
		add_listed(r, out, names);
	freeReplyObject(names);
	return 0;
}

/* --- about each queue ---------------------------------------------------------- */

struct gather {
	struct mq_stats *out;
	int wanted;
	struct rsmq_hidden *hidden; /* of each row */
};

enum { STATE, COUNTS, ABOUT };

/* As lua/stats.lua has them. */
enum {
	VT,
	DELAY,
	MAXSIZE,
	SENT,
	RECEIVED,
	CREATED,
	MODIFIED,
	READY,
	WAITS,
	HELD,
	REJECTED,
	PAUSED,
	OLDEST,
	NEXT,
	LEFT,
	SCORE,
	ID
};
#define FORM "*******#####$$#$$"

static void
ask_state(const char *queue, struct mq_command *c)
{
	char *rejected = mq_xasprintf("%s" RSMQ_REJECTED, queue);

	mq_command_script(c, &rsmq_script_stats);
	rsmq_queue_keys(c, queue);
	rsmq_key(c, rejected, "");
	rsmq_key(c, queue, ":Xpaused");
	mq_command_int(c, RSMQ_LOOKS);
	free(rejected);
}

static void
ask_about(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;
	const char *queue = g->out->queues[i / ABOUT].name;

	if (i % ABOUT == STATE) {
		ask_state(queue, c);
		return;
	}
	mq_command_plain(c, "HMGET");
	rsmq_key(c, queue, ":Xcounters");
	mq_counts_ask(c, g->wanted);
}

static long long
number(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING ?
	    strtoll(reply->str, NULL, 10) :
	    0;
}

/* Of some ports it is in milliseconds. */
static int64_t
seconds(const redisReply *reply)
{
	long long at = number(reply);

	return at > 100000000000 ? at / 1000 : at;
}

static void
set_attributes(struct mq_queue_stats *q, redisReply *const *e)
{
	q->attributed = e[VT]->type == REDIS_REPLY_STRING;
	if (!q->attributed)
		return;
	q->attributes = (struct mq_attributes){.vt_s = (long)number(e[VT]),
	    .delay_s = (long)number(e[DELAY]),
	    .maxsize = (long)number(e[MAXSIZE])};
	q->created_s = seconds(e[CREATED]);
	q->modified_s = seconds(e[MODIFIED]);
	q->sent = number(e[SENT]);
	q->received = number(e[RECEIVED]);
}

static int
take_state(struct gather *g, size_t row, const redisReply *reply)
{
	struct mq_queue_stats *q = &g->out->queues[row];
	struct rsmq_hidden *h = &g->hidden[row];
	redisReply *const *e = reply->element;

	if (!rsmq_is(reply, FORM))
		return -1;
	set_attributes(q, e);
	q->ready = e[READY]->integer;
	q->rejected = e[REJECTED]->integer;
	if (e[PAUSED]->integer != -2)
		q->paused_ms = e[PAUSED]->integer == -1 ?
		    -1 :
		    g->out->now_ms + e[PAUSED]->integer;
	if (q->ready > 0)
		q->oldest_ms = e[OLDEST]->len == 0 ? -1 : rsmq_ms(e[OLDEST]);
	*h = (struct rsmq_hidden){.waits = e[WAITS]->integer,
	    .held = e[HELD]->integer,
	    .next_ms = rsmq_ms(e[NEXT]),
	    .left = e[LEFT]->integer};
	mq_buf_add(&h->score, e[SCORE]->str, e[SCORE]->len);
	mq_buf_add(&h->id, e[ID]->str, e[ID]->len);
	return 0;
}

static int
take_about(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;

	if (i % ABOUT == STATE)
		return take_state(g, i / ABOUT, reply);
	return mq_counts_take(
	    reply, g->out->now_ms, &g->out->queues[i / ABOUT]);
}

/* Where there are very many, the rest of them has to be counted, too. */
static int
count_rest(struct mq_redis *r, struct mq_queue_stats *q, struct rsmq_hidden *h)
{
	int rv = h->left > 0 ? rsmq_count_hidden(r, q->name, h) : 0;

	q->delayed = h->waits;
	q->unacked = h->held;
	q->next_due_ms = h->next_ms;
	q->known |= q->attributed || q->ready + q->delayed + q->unacked > 0;
	return rv;
}

static int
ask_queues(struct mq_redis *r, int wanted, struct mq_stats *out)
{
	struct gather g = {out, wanted,
	    mq_xcalloc((size_t)out->count + 1, sizeof(struct rsmq_hidden))};
	int rv = mq_ask_all(
		r, ABOUT * (size_t)out->count, ask_about, take_about, &g),
	    i;

	for (i = 0; i < out->count; i++) {
		if (rv == 0)
			rv = count_rest(r, &out->queues[i], &g.hidden[i]);
		rsmq_hidden_free(&g.hidden[i]);
	}
	free(g.hidden);
	return rv;
}

static void
mark_refuse(struct mq_stats *out)
{
	const size_t suffix = strlen(RSMQ_REJECTED);
	struct mq_queue_stats *q;
	char *base;
	size_t len;
	int i;

	for (i = 0; i < out->count; i++) {
		q = &out->queues[i];
		len = strlen(q->name);
		if (len <= suffix ||
		    strcmp(q->name + len - suffix, RSMQ_REJECTED) != 0)
			continue;
		base = mq_xstrndup(q->name, len - suffix);
		q->refuse = mq_rows_find(out, base) != NULL;
		free(base);
	}
}

int
rsmq_stats(struct mq_redis *r, const char *const *queues, int count, int wanted,
    struct mq_stats *out)
{
	int rv;

	*out = (struct mq_stats){0};
	rv = mq_server_time(r, &out->now_ms);
	if (rv == 0 && count == 0)
		rv = list_all(r, wanted, out);
	else if (rv == 0)
		mq_rows_make(out, queues, (size_t)count, false);
	if (rv == 0)
		rv = ask_queues(r, wanted, out);
	if (rv == 0)
		rv = rsmq_stats_connections(r, wanted, count > 0, out);
	if (rv == 0)
		mark_refuse(out);
	if (rv == 0 && count > 0)
		mq_rows_order(out, queues, count);
	if (rv == -1)
		mq_stats_free(out);
	return rv;
}

/* --- whether there is anything left to do ---------------------------------------- */

/* Whether one has nothing that is ready, or in anybody's hands. */
static int
is_empty(struct mq_redis *r, const char *queue, bool *empty)
{
	struct rsmq_hidden h = {0};
	int rv = rsmq_count_hidden(r, queue, &h);

	*empty = rv == 0 && h.ready == 0 && h.held == 0;
	rsmq_hidden_free(&h);
	return rv;
}

/* A message may go to where the first look has been already. */
int
rsmq_drained(
    struct mq_redis *r, const char *const *queues, int count, bool *drained)
{
	int look, i;

	*drained = true;
	for (look = 0; look < 2 && *drained; look++)
		for (i = 0; i < count && *drained; i++)
			if (is_empty(r, queues[i], drained) == -1)
				return -1;
	return 0;
}
