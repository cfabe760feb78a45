/*
 * The end of a consumer: what the server still holds for it goes back, in bounded
 * steps; then its keys go.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "consumer.h"

static void
on_left(void *arg, redisReply *reply)
{
	struct mq_consumer *k = arg;

	(void)reply;
	if (--k->leaving == 0)
		k->left(k->left_arg);
}

/* The nodes of a cluster do not keep the order of the steps. */
static void
leave_step(void *arg, redisReply *reply)
{
	struct mq_consumer *k = arg;
	struct mq_command cmd = mq_async_command(k->async);

	if (reply != NULL && reply->type != REDIS_REPLY_ERROR &&
	    k->layout->leave(&k->session, k->leave_step++, &cmd))
		mq_async_send(k->async, &cmd, leave_step, k);
	else
		k->left(k->left_arg);
	mq_command_free(&cmd);
}

static void
send_leave(struct mq_consumer *k)
{
	const redisReply go = {.type = REDIS_REPLY_NIL};
	struct mq_command cmd = mq_async_command(k->async);
	int step;

	if (cmd.cluster) {
		k->leave_step = 0;
		leave_step(k, (redisReply *)(uintptr_t)&go);
		return;
	}
	for (step = 0; k->layout->leave(&k->session, step, &cmd); step++)
		k->leaving++;
	for (step = 0; k->layout->leave(&k->session, step, &cmd); step++)
		mq_async_send(k->async, &cmd, on_left, k);
	mq_command_free(&cmd);
}

/* The rest of one queue, while the session leaves. */
struct rest {
	struct mq_consumer *consumer;
	int queue;
};

/* A queue that is away may have messages for this connection. */
static void
end_giving(struct mq_consumer *k)
{
	int queue = 0;

	while (queue < k->session.queue_count && !mq_consumer_lacks(k, queue))
		queue++;
	if (queue < k->session.queue_count)
		k->left(k->left_arg);
	else
		send_leave(k);
}

/* If not everything is back, the connection stays listed, and a cleaner does
 * the rest. */
static void
on_rest(void *arg, const struct mq_answer *answer, long long n)
{
	struct rest *rest = arg;
	struct mq_consumer *k = rest->consumer;
	bool good = mq_answer_good(answer);

	if (good && n > 0) {
		mq_consumer_give_back(k, rest->queue, NULL, on_rest, rest);
		return;
	}
	free(rest);
	if (!good)
		k->left(k->left_arg);
	else if (--k->leaving == 0)
		end_giving(k);
}

void
mq_consumer_leave(struct mq_consumer *k, void (*left)(void *arg), void *arg)
{
	struct rest *rest;
	int queue;

	k->left = left;
	k->left_arg = arg;
	k->leaving = 1;
	for (queue = 0; queue < k->session.queue_count; queue++) {
		if (mq_consumer_lacks(k, queue))
			continue;
		k->leaving++;
		rest = mq_xcalloc(1, sizeof(*rest));
		*rest = (struct rest){k, queue};
		mq_consumer_give_back(k, queue, NULL, on_rest, rest);
	}
	if (--k->leaving == 0)
		end_giving(k);
}
