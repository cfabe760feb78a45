#include "greeting.h"

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

bool
mq_reply_cluster(const redisReply *reply)
{
	size_t i;

	/* Names and values of any type. */
	for (i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements;
	     i += 2)
		if (reply->element[i]->type == REDIS_REPLY_STRING &&
		    reply->element[i + 1]->type == REDIS_REPLY_STRING &&
		    strcmp(reply->element[i]->str, "mode") == 0)
			return strcmp(reply->element[i + 1]->str, "cluster") ==
			    0;
	return false;
}
