/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rmq layout: numbers, counts and ages of messages, connections and their messages, and
 * runs.
 *
 * Most of thousands of queues may have no keys, and one command finds that for many.  For
 * each other queue, one script reads all.
 *
 * On a cluster, all messages of a queue, unacked ones, too, are on one node, but a
 * connection's queues and heartbeat can be on any; if a node is lost, its numbers are
 * unknown.
 */
#include "rmq.h"

/* Queues in one EXISTS, for all keys and for keys in the other form.  On a cluster, a command
 * asks about one key in the other form. */
#define TOGETHER	25
#define OTHERS_TOGETHER 100
/* Queues in one script, on a cluster 1: in 2 ms, it can look at all scores that it may. */
#define READ_TOGETHER 10

/* A scan of this many keys takes 3 ms of the server's time.  On a server with more keys, only
 * cleaners scan, and list connections and queues again that are not listed. */
#define MANY_KEYS 2000
/* For MQ_STATS_FEW: if there are more connections, or more queues that they consume, their
 * messages and consumers are not counted. */
#define FEW_CONNECTIONS 100
#define FEW_LINKS	500
/* If more queues are named, each connection is asked which queues it has. */
#define NAMED 4

struct gather {
	struct mq_stats *out;
	int wanted;
	struct mq_queue_stats **row; /* the queues that are asked about */
	size_t rows;		     /* length of row */
	size_t together;	     /* rows that one call of a script reads */
	size_t questions;	     /* about each connection */
	struct mq_links links;
	struct mq_names lists; /* unacked lists that a scan has found */
	bool other; /* links are asked about keys in the other form */
};

static int
list_rows(
    struct mq_redis *r, const char *const *queues, int count, struct gather *g)
{
	struct mq_stats *out = g->out;
	struct mq_names names = {0};
	int i, rv = 0;

	for (i = 0; i < count; i++)
		mq_names_add(&names, queues[i], NULL);
	if (count == 0) {
		rv = rmq_call_names(r, RMQ_QUEUES, &names, &out->odd);
		out->incomplete =
		    rv == -1 && rmq_missed(r, "GET A:" RMQ_QUEUES, NULL, NULL);
		if (out->incomplete)
			rv = rmq_find_names(r, false, 0, &names);
		else if (g->wanted & MQ_STATS_FEW && names.n > MQ_FEW_QUEUES)
			mq_names_free(&names);
	}
	/* A queue about which no node answers counts as known. */
	mq_rows_make(out, &names, true);
	return rv;
}

/* --- keys that exist ----------------------------------------------------------- */

static void
add_keys(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_stats *out = arg;

	rmq_key_queue(c, out->queues[i].name, rmq_script_stats.keys[1]);
}

/* On a cluster, no command asks about several keys in the other form. */
static void
add_others(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_stats *out = arg;
	const char *queue = out->queues[c->cluster ? i / 2 : i].name;

	rmq_keys(c, NULL, queue,
	    !c->cluster	   ? "O:ready O:rejected" :
		i % 2 == 0 ? "O:ready" :
			     "O:rejected");
}

/* Nearly no queue has any keys in the other form.  On a cluster, only queues without any
 * messages and counts are asked about.  A user without the right to look is told nothing. */
static int
find_others(struct mq_redis *r, struct mq_stats *out)
{
	size_t each = mq_redis_command(r).cluster ? 2 : 1, i;
	size_t n = each * (size_t)out->count;
	struct rmq_exists look = {.r = r,
	    .add = add_others,
	    .arg = out,
	    .keys = mq_xcalloc(n + 1, 1)};
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

/* --- queues -------------------------------------------------------------------- */

/* The reply of lua/stats.lua; from COUNTS on, the counts. */
enum { READY, PRIORITY, REJECTED, DELAYED, IN_LINE, OUTGOING, TAKEN, SLOTS };
enum { PAUSED = SLOTS + 1, NOW, CLOCK, HEADER, SINCE, DUE, COUNTS };
#define FACTS "##########$$$$ *"

static void
ask_rows(void *arg, size_t i, struct mq_command *c)
{
	const struct gather *g = arg;
	size_t at = i * g->together, end = MIN(at + g->together, g->rows);

	mq_command_script(c, &rmq_script_stats);
	for (; at < end; at++)
		rmq_key_queue(c, g->row[at]->name, rmq_script_stats.keys[1]);
	if (c->cluster)
		rmq_key_queue(c, g->row[i]->name, "outgoing");
	mq_counts_ask(c, g->wanted);
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

/* A score as unix milliseconds by the clock that gave now_ms; the clock of the queue's node
 * is ahead of that.  Any number can be a score, and gives at least 1; an empty text gives
 * 0. */
static int64_t
score_ms(const redisReply *score, int64_t ahead)
{
	double ms = strtod(score->str, NULL) - (double)ahead;

	return score->len == 0 ? 0 :
	    ms >= 9e15	       ? INT64_C(9000000000000000) :
	    ms >= 1	       ? (int64_t)ms :
				 1;
}

/* Sets the age of the oldest message, of the ages that are known. */
static void
parse_ages(struct mq_queue_stats *q, redisReply *const *fact, int64_t now_ms)
{
	int64_t at_ms = fact[NOW]->integer,
		ahead = at_ms > 0 ? at_ms - now_ms : 0;
	int64_t ms[] = {score_ms(fact[SINCE], ahead), 0};
	int i;

	if (q->ready > 0)
		q->oldest_ms =
		    fact[HEADER]->len > 0 ? since_ms(fact[HEADER]) : -1;
	if (q->oldest_ms > ahead)
		q->oldest_ms -= ahead;
	q->next_due_ms = score_ms(fact[DUE], ahead);
	if (q->next_due_ms <= now_ms)
		ms[1] = q->next_due_ms;
	for (i = 0; i < 2; i++)
		if (ms[i] > 0 && (q->oldest_ms <= 0 || ms[i] < q->oldest_ms))
			q->oldest_ms = ms[i];
}

static int
parse_row(
    struct mq_stats *out, struct mq_queue_stats *q, const redisReply *reply)
{
	redisReply *const *fact = reply->element;
	long long pause;

	if (reply->type == REDIS_REPLY_INTEGER)
		return 0;
	q->wrong = mq_reply_is(reply, "");
	if (q->wrong) {
		mq_rows_list(&out->wrong, reply, NULL);
		return 0;
	}
	if (!mq_reply_is(reply, FACTS))
		return -1;
	pause = fact[PAUSED]->integer;
	q->ready = fact[READY]->integer + fact[PRIORITY]->integer;
	q->rejected = fact[REJECTED]->integer;
	q->delayed = fact[DELAYED]->integer;
	q->in_line = fact[IN_LINE]->integer;
	q->leaving = fact[OUTGOING]->integer;
	q->slots_taken = fact[TAKEN]->integer;
	q->slots_shared = fact[SLOTS]->integer;
	q->tick = strtoll(fact[CLOCK]->str, NULL, 10);
	if (pause >= -1)
		q->paused_ms = pause >= 0 ? out->now_ms + pause : -1;
	parse_ages(q, fact, out->now_ms);
	return mq_counts_parse(reply, COUNTS, out->now_ms, q);
}

static int
parse_rows(void *arg, size_t i, redisReply *reply)
{
	const struct gather *g = arg;
	size_t k, at = i * g->together;
	int rv = reply->type == REDIS_REPLY_ARRAY &&
		reply->elements == MIN(g->together, g->rows - at) ?
	    0 :
	    -1;

	for (k = 0; rv == 0 && k < reply->elements; k++)
		rv = parse_row(g->out, g->row[at + k], reply->element[k]);
	return rv;
}

/* The keys of a queue with such a name are in several slots, so no script reads them. */
static int
ask_scattered(struct mq_redis *r, struct mq_queue_stats *q)
{
	return rmq_call_number(r, "LLEN Q:ready", q->name, NULL, &q->ready) ==
		-1 ?
	    -1 :
	    rmq_call_number(r, "LLEN Q:rejected", q->name, NULL, &q->rejected);
}

static void
ask_known(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_stats *out = arg;

	rmq_ask(c, "SISMEMBER A:" RMQ_QUEUES " %n", out->queues[i].name, NULL);
}

static int
parse_known(void *arg, size_t i, redisReply *reply)
{
	struct mq_queue_stats *q = &((struct mq_stats *)arg)->queues[i];

	q->wrong = reply->type == REDIS_REPLY_ERROR;
	q->known = q->wrong || reply->integer != 0;
	return 0;
}

static int
ask_queues(struct mq_redis *r, struct gather *g)
{
	const struct mq_command c = mq_redis_command(r);
	struct mq_stats *out = g->out;
	size_t i, n = (size_t)out->count;
	bool many = n > TOGETHER && !c.cluster;
	struct rmq_exists look = {
	    .r = r, .add = add_keys, .arg = out, .keys = mq_xcalloc(n + 1, 1)};
	int rv = 0;

	g->row = mq_xcalloc(n + 1, sizeof(struct mq_queue_stats *));
	g->together = c.cluster ? 1 : READ_TOGETHER;
	if (g->links.named)
		rv = mq_ask_typed(
		    r, n, ask_known, parse_known, out, &out->wrong);
	/* Most of many queues may have no keys.  If none of the first ones has any, the
	 * others are asked about together, too.  The cleaner, which asks every minute, always
	 * does that. */
	if (rv == 0 && many)
		rv = rmq_exists(&look, RMQ_ANY, TOGETHER, TOGETHER);
	if (rv == 0 && many &&
	    (look.keys[0] == RMQ_NONE || (g->wanted & MQ_STATS_FEW)))
		rv = rmq_exists(&look, RMQ_ANY, n, TOGETHER);
	for (i = 0; rv == 0 && i < n; i++)
		if (rmq_is_scattered(&c, out->queues[i].name))
			rv = ask_scattered(r, &out->queues[i]);
		else if (!out->queues[i].wrong && look.keys[i] != RMQ_NONE)
			g->row[g->rows++] = &out->queues[i];
	if (rv == 0)
		rv = mq_ask_all(r, (g->rows + g->together - 1) / g->together,
		    ask_rows, parse_rows, g);
	if (rv == 0 && (g->wanted & MQ_STATS_UNLISTED))
		rv = find_others(r, out);
	free(look.keys);
	free(g->row);
	return rv;
}

/* --- connections --------------------------------------------------------------- */

/* The most heartbeats that one EXISTS looks at. */
#define HOLDERS 1000

/* The connections that consume the queues; NULL: there may be others than lua/holders.lua
 * finds.  If somebody has deleted a heartbeat, another cleaner may have been there. */
static redisReply *
ask_holders(struct mq_redis *r, const struct mq_stats *out)
{
	struct mq_command c = mq_redis_command(r);
	redisReply *names;
	long long alive = 0;
	size_t i, n;

	if (c.cluster)
		return NULL;
	rmq_start(&c, &rmq_script_holders, NULL, NULL);
	rmq_keys(&c, NULL, NULL, "A:" RMQ_CONNECTIONS " A:" RMQ_HOLDERS);
	for (i = 0; i < (size_t)out->count; i++)
		rmq_key_queue(&c, out->queues[i].name, "holders");
	names = mq_call(r, &c, MQ_STRINGS);
	n = names != NULL ? names->elements : 0;
	if (n > 0 && n <= HOLDERS) {
		mq_command_plain(&c, "EXISTS");
		for (i = 0; i < n; i++)
			rmq_keys(
			    &c, names->element[i]->str, NULL, "C:heartbeat");
		(void)mq_call_number(r, &c, &alive);
	}
	if (alive == (long long)n)
		return names;
	freeReplyObject(names);
	return NULL;
}

static int
list_connections(struct mq_redis *r, struct gather *g)
{
	struct mq_stats *out = g->out;
	bool cluster = mq_redis_command(r).cluster;
	redisReply none = {.type = REDIS_REPLY_ARRAY}, *names = &none;
	/* If only queues are to be shown, connections that have nothing of the named ones
	 * are not asked any further. */
	bool few = g->links.named && !g->links.wanted;
	/* Other tools than mq-stats have no rights for holders. */
	redisReply *all =
	    few && g->wanted & MQ_STATS_UNLISTED ? ask_holders(r, out) : NULL;
	const char *queues[NAMED];
	int i, rv = 0;

	few &= all == NULL;
	if (all == NULL)
		all = mq_call_members(r, RMQ_CONNECTIONS);
	if (all != NULL)
		names = all;
	else if (!rmq_missed(r, "GET A:" RMQ_CONNECTIONS, NULL, NULL))
		return -1;
	if (few && out->count <= (cluster ? 1 : NAMED)) {
		for (i = 0; i < out->count; i++)
			queues[i] = out->queues[i].name;
		rv = rmq_keep_holders(r, queues, out->count, !cluster, names);
	}
	if (rv == 0 && (g->wanted & MQ_STATS_UNLISTED))
		rv = rmq_find_names(r, true, MANY_KEYS, &g->lists);
	mq_rows_connections(out, names, &g->lists);
	freeReplyObject(all);
	return rv;
}

enum { QUEUES, LEASE, INFO };

static void
ask_about(void *arg, size_t i, struct mq_command *c)
{
	static const char *const asked[] = {[QUEUES] = "SMEMBERS C:queues",
	    [LEASE] = "PTTL C:heartbeat",
	    [INFO] = "HMGET C:info host pid lease"};
	struct gather *g = arg;
	const char *name = g->out->connections[i / g->questions].name;

	rmq_ask(c, asked[i % g->questions], name, NULL);
}

static int
parse_about(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	struct mq_connection_stats *c = &g->out->connections[i / g->questions];
	int question = (int)(i % g->questions);
	struct mq_names queues = {0};
	const struct mq_name *list;
	size_t k, n;

	if (reply->type == REDIS_REPLY_ERROR)
		return 0;
	if (question == LEASE) {
		c->ttl_ms = reply->integer;
		return reply->type == REDIS_REPLY_INTEGER ? 0 : -1;
	}
	if (question == INFO) {
		if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
			return -1;
		mq_links_about(c, reply->element);
		if (c->by_receipt)
			c->ttl_ms = MAX(c->ttl_ms - RMQ_CUT_MS, 0);
		return 0;
	}
	/* A scan may have found messages of further queues, in which the connection is not
	 * listed as a consumer. */
	if (!mq_reply_is(reply, ""))
		return -1;
	mq_rows_list(&queues, reply, &g->out->odd);
	list = mq_names_find(&g->lists, c->name, &n);
	for (k = 0; k < n; k++)
		mq_names_add(&queues, list[k].queue, NULL);
	mq_names_sort(&queues);
	c->consumed = mq_xcalloc(queues.n + 1, sizeof(*c->consumed));
	for (k = 0; k < queues.n; k++)
		mq_links_add(&g->links, c, queues.list[k].name, 0);
	mq_names_free(&queues);
	return 0;
}

/* Two questions about each link: its unacked messages, then its consumers. */
static void
ask_link(void *arg, size_t i, struct mq_command *c)
{
	static const char *const questions[][2] = {
	    {"LLEN B:unacked", "SCARD B:consumers"},
	    {"EXISTS O:unacked", "EXISTS O:consumers"}};
	const struct gather *g = arg;
	const struct mq_consuming *link = &g->links.list[i / 2];

	rmq_ask(c, questions[g->other][i % 2], link->connection->name,
	    link->consumed->queue);
}

static int
parse_link(void *arg, size_t i, redisReply *reply)
{
	const struct gather *g = arg;
	const struct mq_consuming *link = &g->links.list[i / 2];
	struct mq_queue_stats *row = link->row;
	long long n = reply->integer;
	bool unacked = i % 2 == 0;

	if (row != NULL)
		row->wrong |= reply->type == REDIS_REPLY_ERROR;
	if (reply->type == REDIS_REPLY_ERROR)
		n = -1;
	else if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	if (g->other) {
		if (n > 0)
			mq_names_add(
			    &g->out->cluster, link->connection->name, NULL);
		return 0;
	}
	*(unacked ? &link->consumed->unacked : &link->consumed->consumers) = n;
	if (row != NULL)
		*(unacked			     ? &row->unacked :
			link->connection->ttl_ms > 0 ? &row->consumers :
						       &row->dead_consumers) +=
		    n;
	return 0;
}

/* On a cluster, sets the nodes of connections and of the queues that they consume, and marks
 * as unknown what a lost node has. */
static void
find_link_nodes(const struct mq_redis *r, struct mq_links *l)
{
	struct mq_queue_stats *q = l->out->queues;
	struct mq_connection_stats *of = l->out->connections;
	struct mq_consuming *link;
	bool unknown; /* queues of some connections are unknown */

	if (!mq_redis_command(r).cluster)
		return;
	unknown = rmq_missed(r, "GET A:" RMQ_CONNECTIONS, NULL, NULL);
	for (int i = 0; i < l->out->connection_count; i++, of++) {
		unknown |= rmq_missed(r, "GET C:queues", of->name, NULL);
		of->unknown =
		    rmq_missed(r, "GET C:heartbeat", of->name, &of->node);
	}
	for (link = l->list; link < l->list + l->n; link++) {
		if (rmq_missed(r, "GET Q:ready", link->consumed->queue,
			&link->consumed->node))
			link->consumed->unacked = link->consumed->consumers =
			    -1;
		if (link->row != NULL && link->connection->unknown)
			link->row->consumers = link->row->dead_consumers =
			    link->row->connections = -1;
	}
	for (int i = 0; unknown && i < l->out->count; i++, q++)
		q->unacked = q->consumers = q->dead_consumers = q->connections =
		    -1;
}

static int
ask_connections(struct mq_redis *r, struct gather *g)
{
	struct mq_stats *out = g->out;
	struct mq_links *l = &g->links;
	const struct mq_consumed *consumed;
	bool few = g->wanted & MQ_STATS_FEW, many;
	size_t k, n = 0;
	int i, rv = list_connections(r, g);

	many = few && out->connection_count > FEW_CONNECTIONS;
	/* If only queues are to be shown, a connection's queues and lease are enough. */
	g->questions = l->wanted ? 3 : 2;
	if (rv == 0 && !many) {
		rv = mq_ask_typed(r,
		    g->questions * (size_t)out->connection_count, ask_about,
		    parse_about, g, &out->wrong);
		mq_links_list(l);
		many = few && l->n > FEW_LINKS;
	}
	if (rv == 0 && !many)
		rv = mq_ask_typed(
		    r, 2 * l->n, ask_link, parse_link, g, &out->wrong);
	if (rv == 0 && !many) {
		find_link_nodes(r, l);
		/* A program that uses the other form of the keys seems to have no
		 * consumers and no messages: links without any are asked about again. */
		for (k = 0; k < l->n; k++) {
			consumed = l->list[k].consumed;
			if (consumed->unacked == 0 && consumed->consumers == 0)
				l->list[n++] = l->list[k];
		}
		l->n = n;
		g->other = true;
		rv = mq_ask_all(r, 2 * l->n, ask_link, parse_link, g);
		mq_names_sort(&out->cluster);
		mq_names_sort(&out->odd);
	}
	for (i = 0; many && i < out->count; i++)
		out->queues[i].unacked = out->queues[i].consumers = -1;
	mq_links_end(l);
	mq_names_free(&g->lists);
	return rv;
}

int
rmq_stats(struct mq_redis *r, const char *const *queues, int count, int wanted,
    struct mq_stats *out)
{
	struct gather g = {.out = out,
	    .wanted = wanted,
	    .links = {.out = out,
		.wanted = wanted & MQ_STATS_CONNECTIONS,
		.named = count > 0}};
	const struct mq_command c = mq_redis_command(r);
	int rv;

	*out = (struct mq_stats){0};
	mq_partial_begin(r);
	rv = mq_server_time(r, &out->now_ms) == -1 ||
		list_rows(r, queues, count, &g) == -1 ||
		ask_queues(r, &g) == -1 || ask_connections(r, &g) == -1 ?
	    -1 :
	    0;
	if (rv == 0 && count > 0)
		mq_rows_order(out, queues, count);
	if (rv == -1)
		mq_stats_free(out);
	/* On a cluster, rows have the node of their queue; a lost node leaves them
	 * unknown. */
	for (int i = 0; c.cluster && i < out->count; i++) {
		struct mq_queue_stats *q = &out->queues[i];

		q->scattered = rmq_is_scattered(&c, q->name);
		if (rmq_missed(r, "GET Q:ready", q->name, &q->node))
			mq_rows_unknown(q);
	}
	return rv;
}

/* --- runs --------------------------------------------------------------------- */

int
rmq_running(struct mq_redis *r, struct mq_runs *out)
{
	static const struct mq_run_source source = {rmq_ask,
	    {{MQ_RUN_LEASE, "PTTL C:heartbeat"}, {MQ_RUN_TEXT, "GET C:running"},
		{MQ_RUN_HOST, "HGET C:info host"}},
	    3};

	mq_partial_begin(r);
	return mq_runs_ask(
	    r, mq_call_members(r, RMQ_CONNECTIONS), &source, NULL, out);
}
