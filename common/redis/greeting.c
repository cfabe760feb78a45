#include "parts.h"

#include <string.h>

bool
mq_redis_greeting(
    const struct mq_server *server, int step, struct mq_command *c)
{
	const struct mq_url *u = &server->url;

	if (u->password != NULL && step-- == 0) {
		mq_command_plain(c, "AUTH");
		if (u->user != NULL)
			mq_command_str(c, u->user);
		mq_command_str(c, u->password);
		return true;
	}
	if (u->db != 0 && step-- == 0) {
		mq_command_plain(c, "SELECT");
		mq_command_int(c, u->db);
		return true;
	}
	return false;
}

void
mq_redis_hello(struct mq_command *c)
{
	mq_command_plain(c, "HELLO");
}

/* Names and values of any type. */
static bool
says(const redisReply *reply, const char *name, const char *value)
{
	size_t i;

	for (i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements;
	     i += 2)
		if (reply->element[i]->type == REDIS_REPLY_STRING &&
		    reply->element[i + 1]->type == REDIS_REPLY_STRING &&
		    strcmp(reply->element[i]->str, name) == 0)
			return strcmp(reply->element[i + 1]->str, value) == 0;
	return false;
}

const char *
mq_reply_unfit(
    const redisReply *reply, const struct mq_server *server, bool node)
{
	if (!node && says(reply, "mode", "cluster"))
		return server->url.tls ?
		    MQ_REDIS_CLUSTER "s-cluster://HOST:PORT" :
		    MQ_REDIS_CLUSTER "-cluster://HOST:PORT";
	if (server->url.kind == MQ_URL_SENTINEL &&
	    says(reply, "role", "replica"))
		return MQ_REDIS_REPLICA;
	return NULL;
}

static bool
is_readonly(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR &&
	    strstr(reply->str, "READONLY") != NULL;
}

bool
mq_reply_demoted(const redisReply *reply, const struct mq_server *server)
{
	size_t i;

	if (server->url.kind != MQ_URL_SENTINEL)
		return false;
	/* A transaction has its errors inside. */
	for (i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements;
	     i++)
		if (is_readonly(reply->element[i]))
			return true;
	return is_readonly(reply);
}
