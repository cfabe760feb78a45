/*
 * The counts of a queue: a hash that lua/count.lua writes.  For
 * layouts, which know its key.
 */
#ifndef MQ_COUNTS_H
#define MQ_COUNTS_H

#include "queue.h"

/* Appends the arguments of an HMGET behind the key, and takes its reply.
 * wanted as in mq_layout.stats().  -1: it makes no sense. */
void mq_counts_ask(struct mq_command *, int wanted);
int mq_counts_take(const redisReply *, int64_t now_ms, struct mq_queue_stats *);

/* Appends the arguments of lua/count.lua behind the key. */
void mq_counts_add(struct mq_command *, const struct mq_counts *);

#endif
