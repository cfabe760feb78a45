/*
 * The rmq layout: the connections, and what they have of the queues.
 */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "keys.h"
#include "listed.h"
#include "queue/rows.h"
#include "unlisted.h"

/* To scan this many keys takes 3 ms of the server's time.  With more keys, only
 * the cleaners scan, and list again what is not listed. */
#define MANY_KEYS 20000

/* A queue that a connection consumes, and its row, if it has one. */
struct link {
	int connection, consumed;
	struct mq_queue_stats *row;
};

struct gather {
	struct mq_stats *out;
	bool wanted, named, unlisted;
	struct link *link;
	size_t links;
	struct mq_names lists; /* unacked lists, as far as they were found */
};

static int
by_queue(const void *a, const void *b)
{
	const struct mq_consumed *x = a, *y = b;

	return strcmp(x->queue, y->queue);
}

static int
list(struct mq_redis *r, struct gather *g)
{
	redisReply *all = rmq_listed(r, RMQ_CONNECTIONS);
	int rv;

	if (all == NULL)
		return -1;
	rv = g->unlisted ? rmq_unacked_lists(r, MANY_KEYS, &g->lists) : 0;
	mq_rows_connections(g->out, all, &g->lists);
	freeReplyObject(all);
	return rv;
}

/* --- about each connection ---------------------------------------------------- */

enum { QUEUES, LEASE, INFO, ABOUT };

/* Without rows for connections, their queues and leases are enough. */
static int
questions(const struct gather *g)
{
	return g->wanted ? ABOUT : INFO;
}

static void
ask_about(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;
	size_t n = (size_t)questions(g);
	const char *name = g->out->connections[i / n].name;

	switch (i % n) {
	case QUEUES:
		mq_command_plain(c, "SMEMBERS");
		rmq_key_connection(c, name, "queues");
		break;
	case LEASE:
		mq_command_plain(c, "PTTL");
		rmq_key_connection(c, name, "heartbeat");
		break;
	case INFO:
		mq_command_plain(c, "HMGET");
		rmq_key_connection(c, name, "info");
		mq_command_str(c, "host");
		mq_command_str(c, "pid");
		break;
	}
}

static void
add_consumed(struct gather *g, struct mq_connection_stats *c, const char *queue)
{
	struct mq_queue_stats *row = mq_rows_find(g->out, queue);

	if (row == NULL && (g->named || !g->wanted))
		return;
	c->consumed[c->count++].queue = mq_xstrdup(queue);
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

/* Adds queues of which the connection holds messages without being listed as
 * their consumer. */
static void
add_unlisted(
    struct gather *g, struct mq_connection_stats *c, const redisReply *listed)
{
	size_t i, n = mq_names_count(&g->lists, c->name);
	const struct mq_name *name = mq_names_first(&g->lists, c->name);

	for (i = 0; i < n; i++)
		if (!has_string(listed, name[i].queue))
			add_consumed(g, c, name[i].queue);
}

static int
take_queues(
    struct gather *g, struct mq_connection_stats *c, const redisReply *reply)
{
	size_t i;

	if (!mq_reply_strings(reply))
		return -1;
	c->consumed =
	    mq_xcalloc(reply->elements + mq_names_count(&g->lists, c->name) + 1,
		sizeof(*c->consumed));
	for (i = 0; i < reply->elements; i++)
		if (strlen(reply->element[i]->str) ==
		    (size_t)reply->element[i]->len)
			add_consumed(g, c, reply->element[i]->str);
	add_unlisted(g, c, reply);
	qsort(c->consumed, (size_t)c->count, sizeof(*c->consumed), by_queue);
	g->links += (size_t)c->count;
	return 0;
}

static int
take_info(struct mq_connection_stats *c, const redisReply *reply)
{
	const redisReply *host, *pid;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
		return -1;
	host = reply->element[0];
	pid = reply->element[1];
	if (host->type == REDIS_REPLY_STRING && host->str[0] != '\0')
		c->host = mq_xstrdup(host->str);
	if (pid->type == REDIS_REPLY_STRING)
		c->pid = strtol(pid->str, NULL, 10);
	if (c->pid < 0)
		c->pid = 0;
	return 0;
}

static int
take_about(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	size_t n = (size_t)questions(g);
	struct mq_connection_stats *c = &g->out->connections[i / n];

	switch (i % n) {
	case QUEUES:
		return take_queues(g, c, reply);
	case LEASE:
		c->ttl_ms = reply->integer;
		return reply->type == REDIS_REPLY_INTEGER ? 0 : -1;
	default:
		return take_info(c, reply);
	}
}

/* --- about each queue that one consumes ---------------------------------------- */

static void
make_links(struct gather *g)
{
	const struct mq_connection_stats *c;
	int i, k;

	g->link = mq_xcalloc(g->links + 1, sizeof(*g->link));
	g->links = 0;
	for (i = 0; i < g->out->connection_count; i++) {
		c = &g->out->connections[i];
		for (k = 0; k < c->count; k++)
			g->link[g->links++] = (struct link){
			    i, k, mq_rows_find(g->out, c->consumed[k].queue)};
	}
}

static void
ask_link(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;
	const struct link *link = &g->link[i / 2];
	const struct mq_connection_stats *connection =
	    &g->out->connections[link->connection];
	bool unacked = i % 2 == 0;

	mq_command_plain(c, unacked ? "LLEN" : "SCARD");
	rmq_key_both(c, connection->name,
	    connection->consumed[link->consumed].queue,
	    unacked ? "unacked" : "consumers");
}

static int
take_link(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	const struct link *link = &g->link[i / 2];
	struct mq_connection_stats *c = &g->out->connections[link->connection];
	struct mq_consumed *consumed = &c->consumed[link->consumed];
	struct mq_queue_stats *row = link->row;

	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	if (i % 2 == 0)
		consumed->unacked = reply->integer;
	else
		consumed->consumers = reply->integer;
	if (row == NULL)
		return 0;
	*(i % 2 == 0	      ? &row->unacked :
		c->ttl_ms > 0 ? &row->consumers :
				&row->dead_consumers) += reply->integer;
	return 0;
}

/* --- about connections that seem to hold nothing ------------------------------ */

static const struct mq_consumed *
consumed_of(const struct gather *g, const struct link *link)
{
	return &g->out->connections[link->connection].consumed[link->consumed];
}

/* Keeps the links without consumers and messages: a program that uses the keys
 * for a cluster has them there. */
static void
keep_bare(struct gather *g)
{
	const struct mq_consumed *consumed;
	size_t i, n = 0;

	for (i = 0; i < g->links; i++) {
		consumed = consumed_of(g, &g->link[i]);
		if (consumed->unacked == 0 && consumed->consumers == 0)
			g->link[n++] = g->link[i];
	}
	g->links = n;
}

static void
ask_cluster(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;
	const struct link *link = &g->link[i];

	mq_command_plain(c, "EXISTS");
	rmq_key_cluster(c, g->out->connections[link->connection].name,
	    consumed_of(g, link)->queue);
}

static int
take_cluster(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;

	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	if (reply->integer > 0)
		mq_names_add(&g->out->cluster,
		    g->out->connections[g->link[i].connection].name, NULL);
	return 0;
}

int
rmq_stats_connections(
    struct mq_redis *r, int wanted, bool named, struct mq_stats *out)
{
	struct gather g = {.out = out,
	    .wanted = wanted & MQ_STATS_CONNECTIONS,
	    .named = named,
	    .unlisted = wanted & MQ_STATS_UNLISTED};
	int rv = list(r, &g);

	if (rv == 0)
		rv = mq_ask_all(r,
		    (size_t)questions(&g) * (size_t)out->connection_count,
		    ask_about, take_about, &g);
	if (rv == 0) {
		make_links(&g);
		rv = mq_ask_all(r, 2 * g.links, ask_link, take_link, &g);
		keep_bare(&g);
		if (rv == 0)
			rv = mq_ask_all(
			    r, g.links, ask_cluster, take_cluster, &g);
		mq_names_sort(&out->cluster);
		free(g.link);
	}
	if (rv == 0 && (named || !g.wanted))
		mq_rows_forget(out, g.wanted);
	mq_names_free(&g.lists);
	return rv;
}
