/*
 * Commands about many keys, where an error reply about one must not keep a caller
 * from the others: the first error is noted, and returned at the end.  Knows no queues.
 * All functions return -1 only when the connection is lost.
 */
#ifndef MQ_ROUND_H
#define MQ_ROUND_H

#include "ask.h"

/* Starts zeroed but for r. */
struct mq_round {
	struct mq_redis *r;
	/* Replies that said that a key is not permitted: no error, as the key is
	 * none of ours then. */
	long refused;
	int status; /* of the first error; 0: there was none */
	char error[512];
};

/* Whether a reply is of this type; if not, that is noted. */
bool mq_round_good(struct mq_round *, const redisReply *, int type);
/* Notes that a reply makes no sense; false. */
bool mq_round_nonsense(struct mq_round *);

/* Calls and frees a command.  *reply is the caller's; NULL when it is not good. */
int mq_round_call(
    struct mq_round *, struct mq_command *, int type, redisReply **reply);
/* The same for an array of strings. */
int mq_round_call_strings(
    struct mq_round *, struct mq_command *, redisReply **reply);
/* The same for a number, which is added to *sum. */
int mq_round_add(struct mq_round *, struct mq_command *, long *sum);

/* 0, or -1 with the first error in struct mq_redis. */
int mq_round_end(struct mq_round *);

#endif
