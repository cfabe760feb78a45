/* The inside of a consumer, for the files that share it. */
#ifndef MQ_CONSUMER_PARTS_H
#define MQ_CONSUMER_PARTS_H

#include "consumer.h"

/* Sends a command, whose memory it takes; the asker's `of` is the consumer. */
void mq_consumer_ask(struct mq_consumer *, struct mq_command *,
    mq_async_take *take, mq_callback *fn, void *arg);
/* For a caller whose fn is a mq_answer_fn. */
void mq_consumer_take_answer(const struct mq_asker *, redisReply *);

#endif
