/*
 * Commands about many keys in one pipeline: send all of them, then take the
 * replies in the same order.  For layouts.  All return -1 or NULL with the
 * error in struct mq_redis.
 */
#ifndef MQ_ASK_H
#define MQ_ASK_H

#include <stdint.h>

#include "connection.h"

/* The next reply, which must be of this type; freeReplyObject() frees it. */
redisReply *mq_expect(struct mq_redis *, int type);
/* The next reply, which must be an array of strings. */
redisReply *mq_expect_strings(struct mq_redis *);
bool mq_reply_strings(const redisReply *);
int mq_expect_number(struct mq_redis *, long long *n);

/* The reply made no sense: sets the error, and gives -1. */
int mq_nonsense(struct mq_redis *);

/*
 * Very many questions: they are sent and answered in bounded batches, so that
 * the server has the next ones while we look at the answers.
 */
struct mq_questions {
	/* Builds the command number i, on a single key or a few. */
	void (*ask)(void *arg, size_t i, struct mq_command *);
	/* Takes its reply, which is no error: 0, or -1 when it makes no
	 * sense.  In order, but for scripts that the server did not know. */
	int (*take)(void *arg, size_t i, const redisReply *);
	void *arg;
};
int mq_ask_all(struct mq_redis *, const struct mq_questions *, size_t n);

/* The server's clock in unix milliseconds; and what a reply to TIME says of
 * it: -1 when that makes no sense. */
int mq_server_time(struct mq_redis *, int64_t *ms);
int mq_reply_time(const redisReply *, int64_t *ms);

/*
 * The first error reply of a round that goes on in spite of it; zeroed: there
 * was none.  mq_reply_good() notes one, or a reply that is not of this type,
 * and says whether it is good; mq_trouble_tell() gives 0, or -1 with that error
 * in struct mq_redis.  That a key is not permitted is no error, as it is none
 * of ours then: such replies are counted.
 */
struct mq_trouble {
	long barred;
	int status;
	char error[512];
};
bool mq_reply_good(
    struct mq_redis *, struct mq_trouble *, const redisReply *, int type);
int mq_trouble_tell(struct mq_redis *, const struct mq_trouble *);

#endif
