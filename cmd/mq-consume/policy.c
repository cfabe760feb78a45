/*
 * Whether the server drops what is in it.
 */
#include "base/say.h"
#include "consume.h"
#include "redis/info.h"

static void
on_policy(void *arg, redisReply *reply)
{
	struct consumer *c = arg;
	struct mq_info info = {.replicas = 0};

	if (reply != NULL && reply->type == REDIS_REPLY_ERROR &&
	    c->opt->verbose)
		mq_say("%s: INFO: %s", c->server.name, reply->str);
	if (reply == NULL || reply->type != REDIS_REPLY_STRING)
		return;
	mq_info_take(&info, reply->str);
	if (mq_info_evicts(&info) && !c->opt->quiet)
		mq_say("%s: maxmemory-policy is %s: when its memory is full, "
		       "the server drops queues or leases; set it to "
		       "noeviction",
		    c->server.name, info.policy);
}

void
policy_ask(struct consumer *c)
{
	struct mq_command cmd = {0};

	if (c->ever_joined)
		return;
	mq_command_plain(&cmd, "INFO");
	mq_command_str(&cmd, "memory");
	mq_async_send(&c->main, &cmd, on_policy, c);
	mq_command_free(&cmd);
}
