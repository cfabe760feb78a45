#include "rmq-ask.h"

#include <stdio.h>

#include "exit.h"
#include "rmq-keys.h"

static int
send_and_free(struct mq_redis *r, struct mq_command *c)
{
	int rv = mq_redis_send(r, c);

	mq_command_free(c);
	return rv;
}

int
rmq_send_about_set(
    struct mq_redis *r, const char *verb, const char *key, const char *member)
{
	struct mq_command c = {0};

	mq_command_plain(&c, verb);
	mq_command_str(&c, key);
	if (member != NULL)
		mq_command_str(&c, member);
	return send_and_free(r, &c);
}

int
rmq_send_about_queue(
    struct mq_redis *r, const char *verb, const char *queue, const char *what)
{
	struct mq_command c = {0};

	mq_command_plain(&c, verb);
	rmq_key_queue(&c, queue, what);
	return send_and_free(r, &c);
}

int
rmq_send_about_connection(struct mq_redis *r, const char *verb,
    const char *connection, const char *what, const char *member)
{
	struct mq_command c = {0};

	mq_command_plain(&c, verb);
	rmq_key_connection(&c, connection, what);
	if (member != NULL)
		mq_command_str(&c, member);
	return send_and_free(r, &c);
}

int
rmq_send_about_both(struct mq_redis *r, const char *verb,
    const char *connection, const char *queue, const char *what)
{
	struct mq_command c = {0};

	mq_command_plain(&c, verb);
	rmq_key_both(&c, connection, queue, what);
	return send_and_free(r, &c);
}

int
rmq_nonsense(struct mq_redis *r)
{
	r->status = MQ_EXIT_UNAVAILABLE;
	snprintf(r->error, sizeof(r->error), "%s: a reply that makes no sense",
	    r->server->name);
	return -1;
}

/* The next reply, which must be of this type; NULL with the error set. */
redisReply *
rmq_expect(struct mq_redis *r, int type)
{
	redisReply *reply = mq_redis_reply(r);

	if (reply == NULL)
		return NULL;
	if (!mq_redis_refused(r, reply) && reply->type == type)
		return reply;
	if (reply->type != REDIS_REPLY_ERROR)
		rmq_nonsense(r);
	freeReplyObject(reply);
	return NULL;
}

int
rmq_expect_number(struct mq_redis *r, long long *n)
{
	redisReply *reply = rmq_expect(r, REDIS_REPLY_INTEGER);

	if (reply == NULL)
		return -1;
	*n = reply->integer;
	freeReplyObject(reply);
	return 0;
}

/* Adds the next number to *sum. */
int
rmq_expect_more(struct mq_redis *r, long long *sum)
{
	long long n;

	if (rmq_expect_number(r, &n) == -1)
		return -1;
	*sum += n;
	return 0;
}

redisReply *
rmq_connections(struct mq_redis *r)
{
	if (rmq_send_about_set(r, "SMEMBERS", RMQ_CONNECTIONS, NULL) == -1)
		return NULL;
	return rmq_expect(r, REDIS_REPLY_ARRAY);
}
