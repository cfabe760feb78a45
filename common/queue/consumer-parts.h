/* The inside of a consumer, for the files that share it. */
#ifndef MQ_CONSUMER_PARTS_H
#define MQ_CONSUMER_PARTS_H

#include "consumer.h"
#include "redis/command.h"

/* Sends a command, whose memory it takes; the asker's `of` is the consumer. */
static inline void
mq_consumer_ask(struct mq_consumer *k, struct mq_command *cmd,
    mq_async_take *take, mq_callback *fn, void *arg)
{
	mq_async_ask(k->async, cmd, take, &(struct mq_asker){fn, arg, k});
}

/* For a caller whose fn is a mq_answer_fn. */
static inline void
mq_consumer_take_answer(const struct mq_asker *asker, redisReply *reply)
{
	mq_answer_fn *fn = (mq_answer_fn *)asker->fn;
	struct mq_answer a;

	fn(asker->arg, mq_answer_to(reply, -1, &a));
}

#endif
