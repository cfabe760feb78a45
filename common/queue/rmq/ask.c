#include "ask.h"

#include "keys.h"

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

redisReply *
rmq_connections(struct mq_redis *r)
{
	if (rmq_send_about_set(r, "SMEMBERS", RMQ_CONNECTIONS, NULL) == -1)
		return NULL;
	return mq_expect_strings(r);
}
