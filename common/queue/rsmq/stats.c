/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The rsmq layout: numbers and counts of queues, connections and their messages, and runs. */
#include "rsmq.h"

struct gather {
	struct mq_redis *r;
	struct mq_stats *out;
	int wanted;
	struct rsmq_hidden *hidden; /* for each row */
	struct mq_links links;
	const char *anywhere;
};

static int
list_rows(struct mq_redis *r, const char *const *queues, int count, int wanted,
    struct mq_stats *out)
{
	struct mq_names names = {0};
	int i, rv = count == 0 ? rsmq_add_listed(r, &names) : 0;

	for (i = 0; i < count; i++)
		mq_names_add(&names, queues[i], NULL);
	if (rv == 0 &&
	    (count > 0 || !(wanted & MQ_STATS_FEW) || names.n <= MQ_FEW_QUEUES))
		mq_rows_make(out, &names, count == 0);
	mq_names_free(&names);
	return rv;
}

/* --- queues -------------------------------------------------------------------- */

/* The reply of lua/stats.lua: hidden messages, attributes, other numbers, counts. */
enum { WAITS, HELD, NEXT, LEFT, SCORE, ID, READY, VT };
enum { DELAY = VT + 1, MAXSIZE, SENT, RECEIVED, CREATED, MODIFIED };
enum { REJECTED = MODIFIED + 1, PAUSED, TAKEN, SLOTS, OLDEST, COUNTS };
#define HIDDEN "##$#$$#"
#define FORM   HIDDEN "*******####$ *"

static void
add_hidden(struct rsmq_hidden *h, redisReply *const *e)
{
	h->waits += e[WAITS]->integer;
	h->held += e[HELD]->integer;
	if (h->next_ms == 0)
		h->next_ms = rsmq_ms(e[NEXT]);
	h->left = e[LEFT]->integer;
	mq_buf_set(&h->score, e[SCORE]->str, e[SCORE]->len);
	mq_buf_set(&h->id, e[ID]->str, e[ID]->len);
	h->ready = e[READY]->integer;
}

int
rsmq_count_hidden(struct mq_redis *r, const char *queue, struct rsmq_hidden *h)
{
	size_t i, n = h->spared != NULL ? h->spared->elements : 0;
	struct mq_command c = {0};
	redisReply *reply;
	int rv = 0;

	do {
		rsmq_start(&c, &rsmq_script_stats, NULL, queue);
		for (i = 0; i < n; i++)
			rsmq_keys(
			    &c, h->spared->element[i]->str, queue, "held");
		MQ_COMMAND_ARGV(&c, rsmq_stats_argv,
		    .looks = mq_int(RSMQ_LOOKS),
		    .score = mq_bytes(h->score.data, h->score.len),
		    .id = mq_bytes(h->id.data, h->id.len));
		reply = mq_call_form(r, &c, HIDDEN);
		if (reply == NULL) {
			rv = -1;
			break;
		}
		add_hidden(h, reply->element);
		freeReplyObject(reply);
	} while (h->left > 0);
	mq_buf_free(&h->score);
	mq_buf_free(&h->id);
	return rv;
}

static void
ask_queue(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;

	const char *queue = g->out->queues[i].name;

	rsmq_start(c, &rsmq_script_stats, NULL, queue);
	rsmq_keys(c, NULL, queue, RSMQ_REJECTED " paused counters slots");
	MQ_COMMAND_ARGV(c, rsmq_stats_argv, .looks = mq_int(RSMQ_LOOKS),
	    .score = mq_str(""), .id = mq_str(""));
	mq_counts_ask(c, g->wanted);
}

static long long
number(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING ?
	    strtoll(reply->str, NULL, 10) :
	    0;
}

/* A time in unix seconds; some ports of RSMQ write milliseconds. */
static int64_t
seconds(const redisReply *reply)
{
	long long at = number(reply);

	return at > 100000000000 ? at / 1000 : at;
}

static int
parse_queue(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	struct mq_queue_stats *q = &g->out->queues[i];
	struct rsmq_hidden *h = &g->hidden[i];
	redisReply *const *e = reply->element;

	if (mq_reply_is(reply, "")) {
		q->wrong = q->known = true;
		mq_rows_list(&g->out->wrong, reply, NULL);
		return 0;
	}
	if (!mq_reply_is(reply, FORM))
		return -1;
	q->attributed = e[VT]->type == REDIS_REPLY_STRING;
	if (q->attributed) {
		q->attributes.vt_s = (long)number(e[VT]);
		q->attributes.delay_s = (long)number(e[DELAY]);
		q->attributes.maxsize = (long)number(e[MAXSIZE]);
		q->created_s = seconds(e[CREATED]);
		q->modified_s = seconds(e[MODIFIED]);
		q->sent = number(e[SENT]);
		q->received = number(e[RECEIVED]);
	}
	q->ready = e[READY]->integer;
	q->rejected = e[REJECTED]->integer;
	if (e[PAUSED]->integer != -2)
		q->paused_ms = e[PAUSED]->integer == -1 ?
		    -1 :
		    g->out->now_ms + e[PAUSED]->integer;
	if (q->ready > 0)
		q->oldest_ms = e[OLDEST]->len == 0 ? -1 : rsmq_ms(e[OLDEST]);
	q->slots_taken = e[TAKEN]->integer;
	q->slots_shared = e[SLOTS]->integer;
	add_hidden(h, e);
	return mq_counts_parse(reply, COUNTS, g->out->now_ms, q);
}

/* If a queue hides more messages than one step looks at, further steps count the rest. */
static int
ask_queues(struct gather *g)
{
	const size_t suffix = strlen(RSMQ_REJECTED);
	size_t n = (size_t)g->out->count, len;
	char *base;
	struct mq_queue_stats *q = g->out->queues;
	struct rsmq_hidden *h = mq_xcalloc(n + 1, sizeof(*h));
	int rv;

	g->hidden = h;
	rv = mq_ask_all(g->r, n, ask_queue, parse_queue, g);
	for (; n > 0; n--, q++, h++) {
		if (rv == 0 && h->left > 0)
			rv = rsmq_count_hidden(g->r, q->name, h);
		q->delayed = h->waits;
		q->unacked = h->held;
		q->next_due_ms = h->next_ms;
		q->known |=
		    q->attributed || q->ready + q->delayed + q->unacked > 0;
		mq_buf_free(&h->score);
		mq_buf_free(&h->id);
		len = strlen(q->name);
		if (len <= suffix ||
		    strcmp(q->name + len - suffix, RSMQ_REJECTED) != 0)
			continue;
		base = mq_xstrndup(q->name, len - suffix);
		q->refuse = mq_rows_find(g->out, base) != NULL;
		free(base);
	}
	free(g->hidden);
	return rv;
}

/* --- connections ----------------------------------------------------------------- */

enum { LEASE, INFO, OF_CONNECTION };

static void
ask_connection(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;

	rsmq_ask(c,
	    i % OF_CONNECTION == LEASE ? "PTTL lease" :
					 "HMGET lease host pid receipts queues",
	    g->out->connections[i / OF_CONNECTION].name, g->anywhere);
}

static int
parse_connection(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	struct mq_connection_stats *c = &g->out->connections[i / OF_CONNECTION];
	redisReply *const *e = reply->element;
	json_t *list = NULL, *bare;
	char *queue;
	size_t k;

	if (i % OF_CONNECTION == LEASE) {
		c->ttl_ms = reply->integer;
		return reply->type == REDIS_REPLY_INTEGER ? 0 : -1;
	}
	if (reply->type == REDIS_REPLY_ERROR)
		return 0;
	if (!mq_reply_is(reply, "****"))
		return -1;
	mq_links_about(c, e);
	if (e[3]->type == REDIS_REPLY_STRING)
		list = json_loads(e[3]->str, 0, NULL);
	c->consumed =
	    mq_xcalloc(json_array_size(list) + 1, sizeof(*c->consumed));
	json_array_foreach(list, k, bare) {
		if (!json_is_string(bare))
			continue;
		queue = rsmq_name(g->r, json_string_value(bare));
		mq_links_add(&g->links, c, queue, 1);
		free(queue);
	}
	json_decref(list);
	return 0;
}

static void
ask_link(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_consuming *l = &((struct gather *)arg)->links.list[i];

	rsmq_start(
	    c, &rsmq_script_held, l->connection->name, l->consumed->queue);
}

/* Counts the row's consumers; its unacked messages were counted with the queue. */
static int
parse_link(void *arg, size_t i, redisReply *reply)
{
	const struct mq_consuming *l = &((struct gather *)arg)->links.list[i];

	if (l->row != NULL) {
		l->row->consumers++;
		l->row->wrong |= reply->type == REDIS_REPLY_ERROR;
	}
	l->consumed->unacked =
	    mq_reply_is(reply, "") ? (long)reply->elements : -1;
	return 0;
}

/* --- operations ------------------------------------------------------------------ */

/* The connections that may have something of the rows. */
static redisReply *
list_connections(struct gather *g)
{
	struct mq_command c = {0};
	redisReply *names = NULL;
	int i;

	/* Other tools than mq-stats have no rights for holders. */
	if (g->links.named && !g->links.wanted &&
	    g->wanted & MQ_STATS_UNLISTED) {
		rsmq_start(&c, &rsmq_script_holders, NULL, g->anywhere);
		for (i = 0; i < g->out->count; i++)
			rsmq_keys(&c, NULL, g->out->queues[i].name, "holders");
		names = mq_call(g->r, &c, MQ_STRINGS);
	}
	return names != NULL ? names : rsmq_connections(g->r, g->anywhere);
}

int
rsmq_stats(struct mq_redis *r, const char *const *queues, int count, int wanted,
    struct mq_stats *out)
{
	char *anywhere = rsmq_name(r, "");
	struct gather g = {.r = r,
	    .out = out,
	    .wanted = wanted,
	    .links = {out, wanted & MQ_STATS_CONNECTIONS, count > 0, NULL, 0},
	    .anywhere = anywhere};
	redisReply *all = NULL;
	int rv = -1;

	*out = (struct mq_stats){0};
	if (mq_server_time(r, &out->now_ms) == 0 &&
	    list_rows(r, queues, count, wanted, out) == 0 &&
	    ask_queues(&g) == 0)
		all = list_connections(&g);
	if (all != NULL) {
		mq_rows_connections(out, all, NULL);
		rv = mq_ask_typed(r,
		    OF_CONNECTION * (size_t)out->connection_count,
		    ask_connection, parse_connection, &g, &out->wrong);
	}
	freeReplyObject(all);
	if (rv == 0) {
		mq_links_list(&g.links);
		rv = mq_ask_typed(
		    r, g.links.n, ask_link, parse_link, &g, &out->wrong);
	}
	mq_links_end(&g.links);
	if (rv == 0 && count > 0)
		mq_rows_order(out, queues, count);
	if (rv == -1)
		mq_stats_free(out);
	free(anywhere);
	return rv;
}

/* Looks at all queues twice: a message may have moved to a queue that was passed before. */
int
rsmq_drained(
    struct mq_redis *r, const char *const *queues, int count, bool *drained)
{
	struct rsmq_hidden h;
	int look, i, rv = 0;

	*drained = true;
	for (look = 0; look < 2; look++)
		for (i = 0; i < count && *drained; i++) {
			h = (struct rsmq_hidden){0};
			rv = rsmq_count_hidden(r, queues[i], &h);
			*drained = rv == 0 && h.ready == 0 && h.held == 0;
		}
	return rv;
}

int
rsmq_running(struct mq_redis *r, struct mq_runs *out)
{
	static const struct mq_run_source source = {rsmq_ask,
	    {{MQ_RUN_HOST, "HGET lease host"}, {MQ_RUN_TEXT, "GET runs"}}, 2};
	char *anywhere = rsmq_name(r, "");
	int rv = mq_runs_ask(
	    r, rsmq_connections(r, anywhere), &source, anywhere, out);

	free(anywhere);
	return rv;
}
