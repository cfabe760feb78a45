/*
 * The rsmq layout: the connections of our own consumers, what they have of the
 * queues, and what runs there.
 */
#include "rsmq.h"

#include <stdlib.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "queue/layout.h"

struct gather {
	struct mq_redis *r;
	struct mq_links links;
	const char *anywhere;
};

/* --- about each connection ------------------------------------------------------ */

enum { LEASE, INFO, ABOUT };

static void
ask_about(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;

	mq_command_plain(c, i % ABOUT == LEASE ? "PTTL" : "HMGET");
	rsmq_key_lease(
	    c, g->links.out->connections[i / ABOUT].name, g->anywhere);
	if (i % ABOUT == LEASE)
		return;
	mq_command_words(c, "host pid queues");
}

static void
take_queues(struct gather *g, struct mq_connection_stats *c, const char *text)
{
	json_t *list = json_loads(text, 0, NULL);
	size_t i, n = json_array_size(list);
	const char *bare;
	char *queue;

	c->consumed = mq_xcalloc(n + 1, sizeof(*c->consumed));
	for (i = 0; i < n; i++) {
		bare = json_string_value(json_array_get(list, i));
		if (bare == NULL)
			continue;
		queue = rsmq_name(g->r, bare);
		mq_links_add(&g->links, c, queue, 1);
		free(queue);
	}
	json_decref(list);
}

static int
take_about(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	struct mq_connection_stats *c = &g->links.out->connections[i / ABOUT];
	redisReply *const *e = reply->element;

	if (i % ABOUT == LEASE) {
		c->ttl_ms = reply->integer;
		return reply->type == REDIS_REPLY_INTEGER ? 0 : -1;
	}
	if (!rsmq_is(reply, "***"))
		return -1;
	mq_links_about(c, e[0], e[1]);
	if (e[2]->type == REDIS_REPLY_STRING)
		take_queues(g, c, e[2]->str);
	return 0;
}

/* --- about each queue that one consumes ----------------------------------------- */

static void
ask_link(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_links *l = arg;

	rsmq_ask_holding(
	    c, l->list[i].connection->name, l->list[i].consumed->queue);
}

/* The messages of a row have been counted already, whoever has them. */
static int
take_link(void *arg, size_t i, redisReply *reply)
{
	const struct mq_links *l = arg;

	if (!rsmq_is(reply, ""))
		return -1;
	l->list[i].consumed->unacked = (long)reply->elements;
	if (l->list[i].row != NULL)
		l->list[i].row->consumers++;
	return 0;
}

static int
list_connections(struct gather *g)
{
	redisReply *all = rsmq_connections(g->r, g->anywhere);

	if (all == NULL)
		return -1;
	mq_rows_connections(g->links.out, all, NULL);
	freeReplyObject(all);
	return 0;
}

int
rsmq_stats_connections(
    struct mq_redis *r, int wanted, bool named, struct mq_stats *out)
{
	char *anywhere = rsmq_anywhere(r);
	struct gather g = {.r = r,
	    .links = {out, wanted & MQ_STATS_CONNECTIONS, named, NULL, 0},
	    .anywhere = anywhere};
	int rv = list_connections(&g);

	if (rv == 0)
		rv = mq_ask_all(r, ABOUT * (size_t)out->connection_count,
		    ask_about, take_about, &g);
	if (rv == 0) {
		mq_links_list(&g.links);
		rv = mq_ask_all(r, g.links.n, ask_link, take_link, &g.links);
	}
	mq_links_end(&g.links);
	free(anywhere);
	return rv;
}

/* --- what runs ------------------------------------------------------------------ */

static void
ask_run(struct mq_command *c, enum mq_run_fact fact, const char *connection,
    const char *anywhere)
{
	if (fact == MQ_RUN_HOST) {
		mq_command_plain(c, "HGET");
		rsmq_key_lease(c, connection, anywhere);
		mq_command_str(c, "host");
	} else {
		mq_command_plain(c, "GET");
		rsmq_key_running(c, connection, anywhere);
	}
}

int
rsmq_running(struct mq_redis *r, struct mq_runs *out)
{
	static const struct mq_run_source source = {
	    ask_run, {MQ_RUN_HOST, MQ_RUN_TEXT}, 2};
	char *anywhere = rsmq_anywhere(r);
	int rv = mq_runs_ask(
	    r, rsmq_connections(r, anywhere), &source, anywhere, out);

	free(anywhere);
	return rv;
}
