/*
 * The rsmq layout: the connections of our own consumers, what they have of the
 * queues, and what runs there.
 */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "ask.h"
#include "base/xalloc.h"
#include "keys.h"
#include "queue/rows.h"
#include "queue/running.h"

struct gather {
	struct mq_redis *r;
	struct mq_stats *out;
	bool wanted, named;
	const char *anywhere;
	/* What each connection has of each queue is asked about in this order. */
	struct link {
		const char *connection;
		struct mq_consumed *consumed;
		struct mq_queue_stats *row;
	} * link;
	size_t links;
};

/* --- about each connection ------------------------------------------------------ */

enum { LEASE, INFO, ABOUT };

static void
ask_about(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;

	mq_command_plain(c, i % ABOUT == LEASE ? "PTTL" : "HMGET");
	rsmq_key_lease(c, g->out->connections[i / ABOUT].name, g->anywhere);
	if (i % ABOUT == LEASE)
		return;
	mq_command_str(c, "host");
	mq_command_str(c, "pid");
	mq_command_str(c, "queues");
}

/* A queue that it consumes, if that is of interest. */
static void
add_consumed(struct gather *g, struct mq_connection_stats *c, const char *bare)
{
	char *queue = rsmq_name(g->r, bare);

	if (mq_rows_find(g->out, queue) == NULL && (g->named || !g->wanted)) {
		free(queue);
		return;
	}
	c->consumed[c->count++] =
	    (struct mq_consumed){.queue = queue, .consumers = 1};
	g->links++;
}

static int
by_queue(const void *a, const void *b)
{
	const struct mq_consumed *x = a, *y = b;

	return strcmp(x->queue, y->queue);
}

static void
take_queues(struct gather *g, struct mq_connection_stats *c, const char *text)
{
	json_t *list = json_loads(text, 0, NULL);
	size_t i, n = json_array_size(list);

	c->consumed = mq_xcalloc(n + 1, sizeof(*c->consumed));
	for (i = 0; i < n; i++)
		if (json_is_string(json_array_get(list, i)))
			add_consumed(
			    g, c, json_string_value(json_array_get(list, i)));
	qsort(c->consumed, (size_t)c->count, sizeof(*c->consumed), by_queue);
	json_decref(list);
}

static int
take_about(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	struct mq_connection_stats *c = &g->out->connections[i / ABOUT];
	redisReply *const *e = reply->element;

	if (i % ABOUT == LEASE) {
		c->ttl_ms = reply->integer;
		return reply->type == REDIS_REPLY_INTEGER ? 0 : -1;
	}
	if (!rsmq_is(reply, "***"))
		return -1;
	if (e[0]->type == REDIS_REPLY_STRING && e[0]->len > 0)
		c->host = mq_xstrdup(e[0]->str);
	if (e[1]->type == REDIS_REPLY_STRING)
		c->pid = strtol(e[1]->str, NULL, 10);
	if (c->pid < 0)
		c->pid = 0;
	if (e[2]->type == REDIS_REPLY_STRING)
		take_queues(g, c, e[2]->str);
	return 0;
}

/* --- about each queue that one consumes ----------------------------------------- */

static void
make_links(struct gather *g)
{
	struct mq_connection_stats *c;
	int i, k;

	g->link = mq_xcalloc(g->links + 1, sizeof(*g->link));
	g->links = 0;
	for (i = 0; i < g->out->connection_count; i++) {
		c = &g->out->connections[i];
		for (k = 0; k < c->count; k++)
			g->link[g->links++] =
			    (struct link){c->name, &c->consumed[k],
				mq_rows_find(g->out, c->consumed[k].queue)};
	}
}

static void
ask_link(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;

	mq_command_plain(c, "HLEN");
	rsmq_key_held(c, g->link[i].connection, g->link[i].consumed->queue);
}

/* The messages of a row have been counted already, whoever has them. */
static int
take_link(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;

	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	g->link[i].consumed->unacked = reply->integer;
	if (g->link[i].row != NULL)
		g->link[i].row->consumers++;
	return 0;
}

static int
list(struct gather *g)
{
	redisReply *all = rsmq_connections(g->r, g->anywhere);

	if (all == NULL)
		return -1;
	mq_rows_connections(g->out, all, NULL);
	freeReplyObject(all);
	return 0;
}

int
rsmq_stats_connections(
    struct mq_redis *r, int wanted, bool named, struct mq_stats *out)
{
	char *anywhere = rsmq_anywhere(r);
	struct gather g = {.r = r,
	    .out = out,
	    .wanted = wanted & MQ_STATS_CONNECTIONS,
	    .named = named,
	    .anywhere = anywhere};
	int rv = list(&g);

	if (rv == 0)
		rv = mq_ask_all(r, ABOUT * (size_t)out->connection_count,
		    ask_about, take_about, &g);
	if (rv == 0) {
		make_links(&g);
		rv = mq_ask_all(r, g.links, ask_link, take_link, &g);
		free(g.link);
	}
	if (rv == 0 && (named || !g.wanted))
		mq_rows_forget(out, g.wanted);
	free(anywhere);
	return rv;
}
