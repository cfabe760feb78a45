/*
 * The rmq layout: the connections, what they have of the queues, and what runs there.
 *
 * On a cluster, a queue's messages are on one node.  What connections hold is on those of
 * the queues, but which queues a connection has, and its heartbeat, can be on any; what is
 * not known, as a node is lost, is told.
 */
#include "rmq.h"

#include <string.h>

#include "base/xalloc.h"
#include "queue/layout.h"
#include "redis/ask.h"
#include "redis/connection.h"

/* To scan this many keys takes 3 ms of the server's time.  With more keys, only
 * the cleaners scan, and list again what is not listed. */
#define MANY_KEYS 20000
/* For MQ_STATS_FEW: with more connections, or queues that they consume, what they have is
 * not known. */
#define FEW_CONNECTIONS 100
#define FEW_LINKS	500
/* With more names of queues, each connection is asked which queues it has. */
#define NAMED 4

struct gather {
	struct mq_links links;
	bool unlisted;
	struct mq_names lists; /* unacked lists, as far as they were found */
	bool other;	       /* the keys in the other form are asked about */
};

redisReply *
rmq_stats_members(struct mq_redis *r, const char *set, bool *missed)
{
	struct mq_command c = mq_redis_command(r);
	redisReply *all = mq_call_members(r, set);

	mq_command_plain(&c, "SSCAN");
	rmq_key_all(&c, set);
	*missed = all == NULL && mq_partial_missed(r, &c);
	if (*missed) {
		all = mq_xcalloc(1, sizeof(*all));
		all->type = REDIS_REPLY_ARRAY;
	}
	mq_command_free(&c);
	return all;
}

static int
list_connections(struct mq_redis *r, struct gather *g)
{
	struct mq_stats *out = g->links.out;
	bool cluster = mq_redis_command(r).cluster, missed;
	redisReply *all = rmq_stats_members(r, RMQ_CONNECTIONS, &missed);
	const char *names[NAMED];
	int i, rv = 0;

	if (all == NULL)
		return -1;
	/* Unless connections are to be shown, those that have nothing of some named
	 * queues change nothing. */
	if (g->links.named && !g->links.wanted &&
	    out->count <= (cluster ? 1 : NAMED)) {
		for (i = 0; i < out->count; i++)
			names[i] = out->queues[i].name;
		rv = rmq_keep_holders(r, names, out->count, !cluster, all);
	}
	if (rv == 0 && g->unlisted)
		rv = rmq_unacked_lists(r, MANY_KEYS, &g->lists);
	mq_rows_connections(out, all, &g->lists);
	freeReplyObject(all);
	return rv;
}

/* --- about each connection ---------------------------------------------------- */

enum { QUEUES, LEASE, INFO, ABOUT };

/* Without rows for connections, their queues and leases are enough. */
static size_t
questions(const struct gather *g)
{
	return g->links.wanted ? ABOUT : INFO;
}

static void
ask_about(void *arg, size_t i, struct mq_command *c)
{
	static const char *const asked[ABOUT][2] = {
	    [QUEUES] = {"SMEMBERS", "queues"},
	    [LEASE] = {"PTTL", "heartbeat"},
	    [INFO] = {"HMGET", "info"}};
	struct gather *g = arg;
	size_t n = questions(g);

	mq_command_plain(c, asked[i % n][0]);
	rmq_key_connection(
	    c, g->links.out->connections[i / n].name, asked[i % n][1]);
	if (i % n == INFO)
		mq_command_words(c, "host pid");
}

static bool
has_string(const redisReply *all, const char *text)
{
	size_t i;

	for (i = 0; i < all->elements; i++)
		if (strcmp(all->element[i]->str, text) == 0)
			return true;
	return false;
}

/* With the queues of which the connection holds messages without being listed as their
 * consumer. */
static int
take_queues(
    struct gather *g, struct mq_connection_stats *c, const redisReply *reply)
{
	const struct mq_name *list;
	size_t i, n;

	if (!mq_reply_strings(reply))
		return -1;
	list = mq_names_find(&g->lists, c->name, &n);
	c->consumed = mq_xcalloc(reply->elements + n + 1, sizeof(*c->consumed));
	for (i = 0; i < reply->elements; i++)
		if (strlen(reply->element[i]->str) ==
		    (size_t)reply->element[i]->len)
			mq_links_add(&g->links, c, reply->element[i]->str, 0);
	for (i = 0; i < n; i++)
		if (!has_string(reply, list[i].queue))
			mq_links_add(&g->links, c, list[i].queue, 0);
	return 0;
}

static int
take_about(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	size_t n = questions(g);
	struct mq_connection_stats *c = &g->links.out->connections[i / n];

	if (i % n == QUEUES)
		return take_queues(g, c, reply);
	if (i % n == LEASE) {
		c->ttl_ms = reply->integer;
		return reply->type == REDIS_REPLY_INTEGER ? 0 : -1;
	}
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
		return -1;
	mq_links_about(c, reply->element[0], reply->element[1]);
	return 0;
}

/* --- about each queue that one consumes ---------------------------------------- */

/* By turns about its unacked messages and its consumers there; those of the other form the
 * other way round. */
static bool
is_unacked(const struct gather *g, size_t i)
{
	return (i % 2 == 0) != g->other;
}

static void
ask_link(void *arg, size_t i, struct mq_command *c)
{
	const struct gather *g = arg;
	const struct mq_link *link = &g->links.list[i / 2];
	const char *connection = link->connection->name;
	const char *queue = link->consumed->queue;
	bool unacked = is_unacked(g, i);
	const char *what = unacked ? "unacked" : "consumers";

	if (g->other) {
		mq_command_plain(c, "EXISTS");
		rmq_key_both_other(c, connection, queue, what);
	} else {
		mq_command_plain(c, unacked ? "LLEN" : "SCARD");
		rmq_key_both(c, connection, queue, what);
	}
}

static int
take_link(void *arg, size_t i, redisReply *reply)
{
	const struct gather *g = arg;
	const struct mq_link *link = &g->links.list[i / 2];
	struct mq_queue_stats *row = link->row;
	long long n = reply->integer;
	bool unacked = is_unacked(g, i);

	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	if (g->other) {
		if (n > 0)
			mq_names_add(&g->links.out->cluster,
			    link->connection->name, NULL);
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

/* Whether there was an answer about a key of a connection. */
static bool
is_answered(const struct mq_redis *r, struct mq_command *c,
    const struct mq_connection_stats *of, const char *what)
{
	mq_command_plain(c, "GET");
	rmq_key_connection(c, of->name, what);
	return !mq_partial_missed(r, c);
}

/* On a cluster: sets the nodes of connections and what they consume; and what is not
 * known, as a node is lost. */
static void
find_nodes(const struct mq_redis *r, struct mq_links *l)
{
	struct mq_command c = mq_redis_command(r);
	struct mq_queue_stats *q = l->out->queues;
	struct mq_connection_stats *of = l->out->connections;
	struct mq_link *link;
	bool whole; /* the queues of all connections are known */

	if (!c.cluster)
		return;
	mq_command_plain(&c, "SSCAN");
	rmq_key_all(&c, RMQ_CONNECTIONS);
	whole = !mq_partial_missed(r, &c);
	for (; of < l->out->connections + l->out->connection_count; of++) {
		whole &= is_answered(r, &c, of, "queues");
		of->unsure = !is_answered(r, &c, of, "heartbeat");
		of->node = mq_partial_node(r, &c);
	}
	for (link = l->list; link < l->list + l->n; link++) {
		mq_command_plain(&c, "LLEN");
		rmq_key_queue(&c, link->consumed->queue, "ready");
		link->consumed->node = mq_partial_node(r, &c);
		if (mq_partial_missed(r, &c))
			link->consumed->unacked = link->consumed->consumers =
			    -1;
		if (link->row != NULL && link->connection->unsure)
			link->row->consumers = link->row->dead_consumers =
			    link->row->connections = -1;
	}
	for (; !whole && q < l->out->queues + l->out->count; q++)
		q->unacked = q->consumers = q->dead_consumers = q->connections =
		    -1;
	mq_command_free(&c);
}

/* A program that uses the other form of the keys seems to have no consumers and messages:
 * asks about those links again. */
static int
ask_links(struct mq_redis *r, struct gather *g)
{
	struct mq_links *l = &g->links;
	const struct mq_consumed *consumed;
	size_t i, n = 0;
	int rv = mq_ask_all(r, 2 * l->n, ask_link, take_link, g);

	if (rv == -1)
		return -1;
	find_nodes(r, l);
	for (i = 0; i < l->n; i++) {
		consumed = l->list[i].consumed;
		if (consumed->unacked == 0 && consumed->consumers == 0)
			l->list[n++] = l->list[i];
	}
	l->n = n;
	g->other = true;
	rv = mq_ask_all(r, 2 * l->n, ask_link, take_link, g);
	mq_names_sort(&l->out->cluster);
	return rv;
}

int
rmq_stats_connections(
    struct mq_redis *r, int wanted, bool named, struct mq_stats *out)
{
	struct gather g = {
	    .links = {out, wanted & MQ_STATS_CONNECTIONS, named, NULL, 0},
	    .unlisted = wanted & MQ_STATS_UNLISTED};
	bool few = wanted & MQ_STATS_FEW, many;
	int i, rv = list_connections(r, &g);

	many = few && out->connection_count > FEW_CONNECTIONS;
	if (rv == 0 && !many) {
		rv =
		    mq_ask_all(r, questions(&g) * (size_t)out->connection_count,
			ask_about, take_about, &g);
		mq_links_list(&g.links);
		many = few && g.links.n > FEW_LINKS;
	}
	if (rv == 0 && !many)
		rv = ask_links(r, &g);
	for (i = 0; many && i < out->count; i++)
		out->queues[i].unacked = out->queues[i].consumers = -1;
	mq_links_end(&g.links);
	mq_names_free(&g.lists);
	return rv;
}

/* --- what runs there ---------------------------------------------------------- */

static void
ask_run(struct mq_command *c, enum mq_run_fact fact, const char *connection,
    const char *anywhere)
{
	static const char *const asked[MQ_RUN_FACTS][2] = {
	    [MQ_RUN_LEASE] = {"PTTL", "heartbeat"},
	    [MQ_RUN_TEXT] = {"GET", "running"},
	    [MQ_RUN_HOST] = {"HGET", "info"}};

	(void)anywhere;
	mq_command_plain(c, asked[fact][0]);
	rmq_key_connection(c, connection, asked[fact][1]);
	if (fact == MQ_RUN_HOST)
		mq_command_str(c, "host");
}

int
rmq_running(struct mq_redis *r, struct mq_runs *out)
{
	static const struct mq_run_source source = {
	    ask_run, {MQ_RUN_LEASE, MQ_RUN_TEXT, MQ_RUN_HOST}, 3};

	mq_partial_begin(r);
	return mq_runs_ask(
	    r, mq_call_members(r, RMQ_CONNECTIONS), &source, NULL, out);
}
