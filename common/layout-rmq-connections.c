/*
 * The rmq layout: the connections, and what they have of the queues.
 */
#include "layout-rmq.h"

#include <stdlib.h>
#include <string.h>

#include "rmq-ask.h"
#include "rmq-keys.h"
#include "rows.h"
#include "xalloc.h"

/* A queue that a connection consumes, and its row, if it has one. */
struct link {
	int connection, consumed;
	struct mq_queue_stats *row;
};

struct gather {
	struct mq_stats *out;
	bool wanted, named;
	struct link *link;
	size_t links;
};

static int
by_queue(const void *a, const void *b)
{
	const struct mq_consumed *x = a, *y = b;

	return strcmp(x->queue, y->queue);
}

static int
list(struct mq_redis *r, bool sorted, struct mq_stats *out)
{
	redisReply *all = rmq_connections(r);

	if (all == NULL)
		return -1;
	mq_rows_connections(out, all, sorted);
	freeReplyObject(all);
	return 0;
}

/* --- about each connection ---------------------------------------------------- */

enum { QUEUES, LEASE, INFO, ABOUT };

/* Who does not want connections wants no more than their queues. */
static int
questions(const struct gather *g)
{
	return g->wanted ? ABOUT : 1;
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

static int
take_queues(
    struct gather *g, struct mq_connection_stats *c, const redisReply *reply)
{
	size_t i;

	if (!mq_reply_strings(reply))
		return -1;
	c->consumed = mq_xcalloc(reply->elements + 1, sizeof(*c->consumed));
	for (i = 0; i < reply->elements; i++)
		if (strlen(reply->element[i]->str) ==
		    (size_t)reply->element[i]->len)
			add_consumed(g, c, reply->element[i]->str);
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
take_about(void *arg, size_t i, const redisReply *reply)
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
take_link(void *arg, size_t i, const redisReply *reply)
{
	struct gather *g = arg;
	const struct link *link = &g->link[i / 2];
	struct mq_consumed *consumed =
	    &g->out->connections[link->connection].consumed[link->consumed];
	bool unacked = i % 2 == 0;

	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	*(unacked ? &consumed->unacked : &consumed->consumers) = reply->integer;
	if (link->row != NULL)
		*(unacked ? &link->row->unacked : &link->row->consumers) +=
		    reply->integer;
	return 0;
}

int
rmq_stats_connections(
    struct mq_redis *r, int wanted, bool named, struct mq_stats *out)
{
	struct gather g = {.out = out,
	    .wanted = wanted & MQ_STATS_CONNECTIONS,
	    .named = named};
	const struct mq_questions about = {ask_about, take_about, &g};
	const struct mq_questions links = {ask_link, take_link, &g};
	int rv = list(r, g.wanted, out);

	if (rv == 0)
		rv = mq_ask_all(r, &about,
		    (size_t)questions(&g) * (size_t)out->connection_count);
	if (rv == 0) {
		make_links(&g);
		rv = mq_ask_all(r, &links, 2 * g.links);
		free(g.link);
	}
	if (rv == 0 && (named || !g.wanted))
		mq_rows_forget(out, g.wanted);
	return rv;
}
