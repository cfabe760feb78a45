/*
 * The rmq layout: which of many connections or queues have anything.
 *
 * Peers keep no list of them, and most of thousands may have nothing.  One EXISTS asks
 * about many: 5,000 connections cost the server 3 ms, and only those found are asked for
 * more.
 */
#include "rmq.h"

#include <stdlib.h>

#include "base/xalloc.h"

/* How many keys are in one command, which takes the server some 0.1 ms. */
#define KEYS_MAX 200

struct asking {
	struct rmq_exists *look;
	size_t *item, n; /* what is asked about, ... */
	size_t together; /* ...so many in a command */
};

static void
ask_keys(void *arg, size_t i, struct mq_command *c)
{
	const struct asking *a = arg;
	size_t at = i * a->together, end = at + a->together;

	mq_command_plain(c, "EXISTS");
	for (; at < end && at < a->n; at++)
		a->look->add(a->look->arg, a->item[at], c);
}

static int
take_keys(void *arg, size_t i, redisReply *reply)
{
	const struct asking *a = arg;
	size_t at = i * a->together, end = at + a->together;

	for (; at < end && at < a->n; at++)
		a->look->keys[a->item[at]] =
		    reply->type != REDIS_REPLY_INTEGER ? RMQ_ANY :
		    reply->integer == 0		       ? RMQ_NONE :
							 RMQ_SOME;
	return 0;
}

int
rmq_exists(struct rmq_exists *look, enum rmq_keys of, size_t n, size_t together)
{
	struct asking a = {
	    look, mq_xcalloc(n + 1, sizeof(*a.item)), 0, together};
	size_t i;
	int rv;

	for (i = 0; i < n; i++)
		if (look->keys[i] == of)
			a.item[a.n++] = i;
	rv = mq_ask_each(
	    look->r, (a.n + together - 1) / together, ask_keys, take_keys, &a);
	free(a.item);
	return rv;
}

/* --- connections ---------------------------------------------------------------- */

struct held {
	const char *const *queues;
	int count;
	bool cluster;
	redisReply **connection;
};

static void
add_held(void *arg, size_t i, struct mq_command *c)
{
	const struct held *h = arg;
	const char *connection = h->connection[i]->str;
	int k;

	for (k = 0; k < h->count; k++) {
		rmq_key_both(c, connection, h->queues[k], "unacked consumers");
		if (h->cluster)
			rmq_key_other(
			    c, connection, h->queues[k], "consumers unacked");
	}
}

int
rmq_keep_holders(struct mq_redis *r, const char *const *queues, int count,
    bool cluster, redisReply *connections)
{
	struct held h = {queues, count, cluster, connections->element};
	size_t n = connections->elements, kept = 0, i;
	struct rmq_exists look = {r, add_held, &h, mq_xcalloc(n + 1, 1)};
	int rv = rmq_exists(&look, RMQ_ANY, n,
	    (size_t)(KEYS_MAX / (count * (cluster ? 4 : 2))));

	for (i = 0; i < n; i++)
		kept += look.keys[i] != RMQ_NONE;
	/* Few have something, and others stood beside them. */
	if (rv == 0 && kept < n / 2)
		rv = rmq_exists(&look, RMQ_SOME, n, 1);
	for (kept = i = 0; i < n; i++)
		if (look.keys[i] == RMQ_NONE)
			freeReplyObject(h.connection[i]);
		else
			h.connection[kept++] = h.connection[i];
	connections->elements = kept;
	free(look.keys);
	return rv;
}
