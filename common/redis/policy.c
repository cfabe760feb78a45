#include "policy.h"

#include "reply.h"

static void
take_policy(const struct mq_asker *asker, redisReply *reply)
{
	mq_policy_fn *fn = (mq_policy_fn *)asker->fn;
	struct mq_info info = {.replicas = 0};
	struct mq_answer buf;
	const struct mq_answer *a =
	    mq_answer_to(reply, REDIS_REPLY_STRING, &buf);

	if (mq_answer_good(a))
		mq_info_take(&info, reply->str);
	fn(asker->arg, a, &info);
}

void
mq_policy_ask(struct mq_async *async, mq_policy_fn *fn, void *arg)
{
	struct mq_asker asker = {(mq_callback *)fn, arg, NULL};
	struct mq_command cmd = {0};

	mq_command_plain(&cmd, "INFO memory");
	mq_async_ask(async, &cmd, take_policy, &asker);
	mq_command_free(&cmd);
}
