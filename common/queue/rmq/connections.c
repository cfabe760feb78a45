/*
 * The rmq layout: the connections, what they have of the queues, and what runs there.
 */
#include "rmq.h"

#include <string.h>

#include "base/xalloc.h"
#include "queue/layout.h"
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
};

/* Unless connections are to be shown, those that have nothing of some named queues
 * change nothing. */
static int
keep_needed(struct mq_redis *r, const struct gather *g, redisReply *all)
{
	const struct mq_stats *out = g->links.out;
	int i, most = mq_redis_command(r).cluster ? 1 : NAMED;
	const char *names[NAMED];

	if (!g->links.named || g->links.wanted || out->count > most)
		return 0;
	for (i = 0; i < out->count; i++)
		names[i] = out->queues[i].name;
	return rmq_keep_holders(
	    r, names, out->count, !mq_redis_command(r).cluster, all);
}

static int
list_connections(struct mq_redis *r, struct gather *g)
{
	bool missed;
	redisReply *all = rmq_stats_members(r, RMQ_CONNECTIONS, &missed);
	int rv;

	if (all == NULL)
		return -1;
	rv = keep_needed(r, g, all);
	if (rv == 0 && g->unlisted)
		rv = rmq_unacked_lists(r, MANY_KEYS, &g->lists);
	mq_rows_connections(g->links.out, all, &g->lists);
	freeReplyObject(all);
	return rv;
}

/* --- about each connection ---------------------------------------------------- */

enum { QUEUES, LEASE, INFO, ABOUT };

/* Without rows for connections, their queues and leases are enough. */
static int
questions(const struct gather *g)
{
	return g->links.wanted ? ABOUT : INFO;
}

static void
ask_about(void *arg, size_t i, struct mq_command *c)
{
	struct gather *g = arg;
	size_t n = (size_t)questions(g);
	const char *name = g->links.out->connections[i / n].name;

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
		mq_command_words(c, "host pid");
		break;
	}
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
take_info(struct mq_connection_stats *c, const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
		return -1;
	mq_links_about(c, reply->element[0], reply->element[1]);
	return 0;
}

static int
take_about(void *arg, size_t i, redisReply *reply)
{
	struct gather *g = arg;
	size_t n = (size_t)questions(g);
	struct mq_connection_stats *c = &g->links.out->connections[i / n];

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
ask_link(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_links *l = arg;
	const struct mq_link *link = &l->list[i / 2];
	bool unacked = i % 2 == 0;

	mq_command_plain(c, unacked ? "LLEN" : "SCARD");
	rmq_key_both(c, link->connection->name, link->consumed->queue,
	    unacked ? "unacked" : "consumers");
}

static int
take_link(void *arg, size_t i, redisReply *reply)
{
	const struct mq_links *l = arg;
	const struct mq_link *link = &l->list[i / 2];
	struct mq_queue_stats *row = link->row;

	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	if (i % 2 == 0)
		link->consumed->unacked = reply->integer;
	else
		link->consumed->consumers = reply->integer;
	if (row == NULL)
		return 0;
	*(i % 2 == 0			     ? &row->unacked :
		link->connection->ttl_ms > 0 ? &row->consumers :
					       &row->dead_consumers) +=
	    reply->integer;
	return 0;
}

/* --- about connections that seem to hold nothing ------------------------------ */

/* Keeps the links without consumers and messages: a program that uses the other form of
 * the keys has them there. */
static void
keep_bare(struct mq_links *l)
{
	const struct mq_consumed *consumed;
	size_t i, n = 0;

	for (i = 0; i < l->n; i++) {
		consumed = l->list[i].consumed;
		if (consumed->unacked == 0 && consumed->consumers == 0)
			l->list[n++] = l->list[i];
	}
	l->n = n;
}

static void
ask_other(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_links *l = arg;
	const struct mq_link *link = &l->list[i / 2];

	mq_command_plain(c, "EXISTS");
	rmq_key_both_other(c, link->connection->name, link->consumed->queue,
	    i % 2 == 0 ? "consumers" : "unacked");
}

static int
take_other(void *arg, size_t i, redisReply *reply)
{
	const struct mq_links *l = arg;

	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	if (reply->integer > 0)
		mq_names_add(
		    &l->out->cluster, l->list[i / 2].connection->name, NULL);
	return 0;
}

static int
leave_unknown(struct mq_stats *out)
{
	int i;

	for (i = 0; i < out->count; i++)
		out->queues[i].unacked = out->queues[i].consumers = -1;
	return 0;
}

static int
ask_links(struct mq_redis *r, struct mq_links *l, bool few)
{
	int rv;

	mq_links_list(l);
	if (few && l->n > FEW_LINKS)
		return leave_unknown(l->out);
	rv = mq_ask_all(r, 2 * l->n, ask_link, take_link, l);
	if (rv == 0)
		rmq_stats_missed(r, l);
	keep_bare(l);
	if (rv == 0)
		rv = mq_ask_all(r, 2 * l->n, ask_other, take_other, l);
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
	bool few = wanted & MQ_STATS_FEW;
	int rv = list_connections(r, &g);

	if (rv == 0 && few && out->connection_count > FEW_CONNECTIONS) {
		mq_names_free(&g.lists);
		return leave_unknown(out);
	}
	if (rv == 0)
		rv = mq_ask_all(r,
		    (size_t)questions(&g) * (size_t)out->connection_count,
		    ask_about, take_about, &g);
	if (rv == 0)
		rv = ask_links(r, &g.links, few);
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
