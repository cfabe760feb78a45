/*
 * The rmq layout: messages that are handed out by receipt, under a lease that
 * nobody renews.
 */
#include "layout-rmq.h"

#include <string.h>

#include "rmq-ask.h"
#include "rmq-keys.h"
#include "xalloc.h"

static void
build(struct mq_command *c, const char *connection, const char *queue,
    const char *id)
{
	mq_command_script(c, &mq_script_receipt, 2);
	rmq_key_both(c, connection, queue, "unacked");
	rmq_key_connection(c, connection, "info");
	mq_command_str(c, id);
}

void
rmq_receipts(
    const struct mq_session *s, const redisReply *claimed, struct mq_command *c)
{
	(void)claimed;
	build(c, s->connection, s->queues[0], "");
}

struct search {
	const char *queue, *id;
	const redisReply *connections;
	struct mq_receipt *out;
};

static void
ask(void *arg, size_t i, struct mq_command *c)
{
	const struct search *s = arg;

	build(c, s->connections->element[i]->str, s->queue, s->id);
}

static int
take(void *arg, size_t i, const redisReply *reply)
{
	struct search *s = arg;

	if (reply->type == REDIS_REPLY_NIL)
		return 0;
	if (reply->type != REDIS_REPLY_STRING)
		return -1;
	if (s->out->connection != NULL)
		return 0;
	s->out->connection = mq_xstrdup(s->connections->element[i]->str);
	mq_buf_add(&s->out->element, reply->str, reply->len);
	return 0;
}

int
rmq_receipt(struct mq_redis *r, const char *queue, const char *id,
    struct mq_receipt *out)
{
	struct search s = {.queue = queue, .id = id, .out = out};
	const struct mq_questions q = {.ask = ask, .take = take, .arg = &s};
	redisReply *connections = rmq_connections(r);
	int rv;

	if (connections == NULL)
		return -1;
	s.connections = connections;
	rv = mq_ask_all(r, &q, connections->elements);
	freeReplyObject(connections);
	return rv;
}

void
rmq_vacate(const struct mq_session *s, struct mq_command *c)
{
	const char *queue = s->queues[0];

	mq_command_script(c, &mq_script_vacate, 6);
	rmq_key_both(c, s->connection, queue, "unacked");
	rmq_key_both(c, s->connection, queue, "consumers");
	rmq_key_connection(c, s->connection, "queues");
	mq_command_str(c, RMQ_CONNECTIONS);
	rmq_key_connection(c, s->connection, "heartbeat");
	rmq_key_connection(c, s->connection, "info");
	mq_command_str(c, queue);
	mq_command_str(c, s->connection);
}
