/*
 * Commands about many keys in one pipeline: send all of them, then take the
 * replies in the same order.  For layout-rmq-*.c only.  All return -1 or NULL
 * with the error in struct mq_redis.
 */
#ifndef MQ_RMQ_ASK_H
#define MQ_RMQ_ASK_H

#include "redis.h"

/* "VERB key [member]": what names the key as in rmq-keys.h. */
int rmq_send_about_set(
    struct mq_redis *, const char *verb, const char *key, const char *member);
int rmq_send_about_connection(struct mq_redis *, const char *verb,
    const char *connection, const char *what, const char *member);
int rmq_send_about_both(struct mq_redis *, const char *verb,
    const char *connection, const char *queue, const char *what);

/* The next reply, which must be of this type; freeReplyObject() frees it. */
redisReply *rmq_expect(struct mq_redis *, int type);
int rmq_expect_number(struct mq_redis *, long long *n);
/* Adds the next number to *sum. */
int rmq_expect_more(struct mq_redis *, long long *sum);

/* The reply made no sense: sets the error, and gives -1. */
int rmq_nonsense(struct mq_redis *);

/*
 * Very many questions: they are sent and answered in bounded batches, so that
 * the server has the next ones while we look at the answers.
 */
struct rmq_questions {
	/* Builds the command number i, on a single key or a few. */
	void (*ask)(void *arg, size_t i, struct mq_command *);
	/* Takes its reply, which is no error: 0, or -1 when it makes no
	 * sense.  In order, but for scripts that the server did not know. */
	int (*take)(void *arg, size_t i, const redisReply *);
	void *arg;
};
int rmq_ask_all(struct mq_redis *, const struct rmq_questions *, size_t n);

/* The names of all connections: an array of strings. */
redisReply *rmq_connections(struct mq_redis *);

#endif
