/*
 * The rmq layout: which connections have something of a queue.
 *
 * Peers keep no list of them, so all connections are asked, and thousands of these may
 * be other queues' or dead.  One EXISTS asks about many: 5,000 connections cost the
 * server 3 ms, and only those found are asked for more.
 */
#include "rmq.h"

/* How many keys are in one command, which takes the server some 0.1 ms. */
#define KEYS_MAX 200

struct look {
	const char *const *queues;
	int count;
	bool cluster;
	redisReply *connections;
	size_t together; /* connections in one command */
	size_t seen, kept;
};

static size_t
last_of(const struct look *l, size_t command)
{
	size_t last = (command + 1) * l->together;

	return last < l->connections->elements ? last :
						 l->connections->elements;
}

static void
ask_keys(void *arg, size_t i, struct mq_command *c)
{
	const struct look *l = arg;
	const char *connection;
	size_t at;
	int queue;

	mq_command_plain(c, "EXISTS");
	for (at = i * l->together; at < last_of(l, i); at++)
		for (queue = 0; queue < l->count; queue++) {
			connection = l->connections->element[at]->str;
			rmq_key_both(
			    c, connection, l->queues[queue], "unacked");
			rmq_key_both(
			    c, connection, l->queues[queue], "consumers");
			if (l->cluster) {
				rmq_key_both_other(c, connection,
				    l->queues[queue], "consumers");
				rmq_key_both_other(
				    c, connection, l->queues[queue], "unacked");
			}
		}
}

/* All that are in one command are kept, or none.  A refusal tells nothing. */
static int
take_keys(void *arg, size_t i, redisReply *reply)
{
	struct look *l = arg;
	bool none = reply->type == REDIS_REPLY_INTEGER && reply->integer == 0;
	redisReply **e = l->connections->element;
	size_t at;

	for (at = i * l->together; at < last_of(l, i); at++)
		if (none)
			freeReplyObject(e[at]);
		else
			e[l->kept++] = e[at];
	l->seen = at;
	return 0;
}

static int
keep_some(struct mq_redis *r, struct look *l)
{
	size_t n = l->connections->elements;
	int rv;

	l->seen = l->kept = 0;
	rv = mq_ask_each(
	    r, (n + l->together - 1) / l->together, ask_keys, take_keys, l);
	while (l->seen < n)
		l->connections->element[l->kept++] =
		    l->connections->element[l->seen++];
	l->connections->elements = l->kept;
	return rv;
}

int
rmq_keep_holders(struct mq_redis *r, const char *const *queues, int count,
    bool cluster, redisReply *connections)
{
	struct look l = {queues, count, cluster, connections, 0, 0, 0};
	size_t n = connections->elements;
	int rv;

	l.together = (size_t)(KEYS_MAX / (count * (cluster ? 4 : 2)));
	rv = keep_some(r, &l);
	/* Few have something, and others stood beside them. */
	if (rv == 0 && l.kept > 0 && l.kept < n / 2) {
		l.together = 1;
		rv = keep_some(r, &l);
	}
	return rv;
}
