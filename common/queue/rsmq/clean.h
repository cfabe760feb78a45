/*
 * One round of cleaning in the rsmq layout: what its parts share.  For this folder only.
 *
 * An error reply about one key must not keep a round from the others.  All
 * functions return -1 only when the connection is lost.
 */
#ifndef MQ_RSMQ_CLEAN_H
#define MQ_RSMQ_CLEAN_H

#include "base/names.h"
#include "queue/queue.h"
#include "redis/round.h"

struct rsmq_cleaner {
	struct mq_round round;
	const struct mq_clean *how;
	struct mq_cleaned *out;
	const char *anywhere; /* see rsmq_anywhere() */
	struct mq_names
	    consumed; /* queues that consumers of ours have; sorted */
	int64_t now_ms;
};

/* enlist.c: lists the queues that there are, and no others. */
int rsmq_enlist(struct rsmq_cleaner *);

/* sweep.c: looks at the messages of n queues, and what belongs to
 * them.  Names without a namespace. */
int rsmq_sweep(struct rsmq_cleaner *, const struct mq_name *queues, size_t n);

/* reject.c: rejects messages of a queue: of each its id, how often
 * it was received, and its further headers, as lua/sweep.lua has them. */
int rsmq_reject(struct rsmq_cleaner *, const char *queue,
    redisReply *const *messages, size_t n);

#endif
