/*
 * The rmq layout on a cluster: which node has what, and what is not known as its node is
 * lost.
 *
 * A queue's messages are on one node.  What connections hold is on those of the queues,
 * but which queues a connection has, and its heartbeat, can be on any.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "queue/layout.h"
#include "redis/connection.h"
#include "redis/ask.h"
#include "rmq.h"

static void
forget_consumers(struct mq_queue_stats *q)
{
	q->consumers = q->dead_consumers = q->connections = -1;
}

static void
forget_queue(struct mq_queue_stats *q)
{
	q->ready = q->delayed = q->unacked = q->rejected = q->in_line = -1;
	forget_consumers(q);
	q->oldest_ms = -1;
	q->counted = false;
}

/* --- names ---------------------------------------------------------------------- */

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
note_queues(void *arg, const redisReply *keys)
{
	struct mq_names *queues = arg;
	const char *queue;
	char *name;
	size_t i, n;

	for (i = 0; i < keys->elements; i++) {
		if (!rmq_key_of(keys->element[i]->str, keys->element[i]->len,
			&queue, &n))
			continue;
		name = mq_xstrndup(queue, n);
		if (rmq_queue_error(name) == NULL)
			mq_names_add(queues, name, NULL);
		free(name);
	}
	return 0;
}

int
rmq_find_queues(struct mq_redis *r, struct mq_names *found)
{
	struct mq_round round = {.r = r};
	struct mq_sweep sweep = {.round = &round,
	    .pattern = "rmq::queue::{*}::*",
	    .take = note_queues,
	    .arg = found};
	int rv = mq_sweep_keys(&sweep);

	mq_names_sort(found);
	return rv;
}

int
rmq_stats_list_found(struct mq_redis *r, struct mq_stats *out)
{
	struct mq_names found = {0};
	const char **names;
	size_t i;
	int rv = rmq_find_queues(r, &found);

	names = mq_xcalloc(found.n + 1, sizeof(*names));
	for (i = 0; i < found.n; i++)
		names[i] = found.list[i].name;
	mq_rows_make(out, names, found.n, true);
	free(names);
	mq_names_free(&found);
	return rv;
}

/* --- nodes ---------------------------------------------------------------------- */

void
rmq_stats_nodes(const struct mq_redis *r, struct mq_stats *out)
{
	struct mq_command c = mq_redis_command(r);
	int i;

	for (i = 0; i < out->count && c.cluster; i++) {
		mq_command_plain(&c, "LLEN");
		rmq_key_queue(&c, out->queues[i].name, "ready");
		out->queues[i].node = mq_partial_node(r, &c);
		out->queues[i].scattered =
		    rmq_is_scattered(&c, out->queues[i].name);
		if (mq_partial_missed(r, &c))
			forget_queue(&out->queues[i]);
	}
	mq_command_free(&c);
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

/* Returns whether the queues of all connections are known. */
static bool
look_at_connections(
    const struct mq_redis *r, struct mq_command *c, struct mq_stats *out)
{
	struct mq_connection_stats *of;
	bool whole;
	int i;

	mq_command_plain(c, "SSCAN");
	rmq_key_all(c, RMQ_CONNECTIONS);
	whole = !mq_partial_missed(r, c);
	for (i = 0; i < out->connection_count; i++) {
		of = &out->connections[i];
		whole &= is_answered(r, c, of, "queues");
		of->unsure = !is_answered(r, c, of, "heartbeat");
		of->node = mq_partial_node(r, c);
	}
	return whole;
}

void
rmq_stats_missed(const struct mq_redis *r, struct mq_links *l)
{
	struct mq_command c = mq_redis_command(r);
	bool whole = !c.cluster || look_at_connections(r, &c, l->out);
	struct mq_link *link;
	int i;

	for (link = l->list; c.cluster && link < l->list + l->n; link++) {
		mq_command_plain(&c, "LLEN");
		rmq_key_queue(&c, link->consumed->queue, "ready");
		link->consumed->node = mq_partial_node(r, &c);
		if (mq_partial_missed(r, &c))
			link->consumed->unacked = link->consumed->consumers =
			    -1;
		if (link->row != NULL && link->connection->unsure)
			forget_consumers(link->row);
	}
	for (i = 0; !whole && i < l->out->count; i++) {
		forget_consumers(&l->out->queues[i]);
		l->out->queues[i].unacked = -1;
	}
	mq_command_free(&c);
}
