/*
 * Commands whose replies have a type: one at a time, and many in one pipeline.
 * Knows no queues.  All return -1 or NULL with the error in struct mq_redis.
 */
#ifndef MQ_ASK_H
#define MQ_ASK_H

#include <stdint.h>

#include "connection.h"

/* As mq_redis_call(); the reply must be of this type (-1: any), or an array of
 * strings, or an integer.  The command is freed. */
redisReply *mq_call(struct mq_redis *, struct mq_command *, int type);
redisReply *mq_call_strings(struct mq_redis *, struct mq_command *);
int mq_call_number(struct mq_redis *, struct mq_command *, long long *n);
/* The same when any reply but an error will do, or none to an optional command. */
int mq_call_done(struct mq_redis *, struct mq_command *);

bool mq_reply_strings(const redisReply *);

/* The reply made no sense: sets the error, and gives -1. */
int mq_nonsense(struct mq_redis *);

/*
 * Any number of commands: they are sent and answered in bounded batches, so that
 * the server has the next ones while we look at the replies.
 *
 * ask() builds command number i, on a single key or a few; it is asked to do so
 * again when the server does not know the script.  take() takes its reply, in order
 * but for such scripts: 0; MQ_KEEP, and the reply is the caller's; or -1 when it
 * makes no sense.  An error reply ends mq_ask_all(), but for those of lost nodes, which
 * it passes over (mq_reply_missing()); mq_ask_each() gives it to take().
 */
#define MQ_KEEP 1
typedef void mq_ask_fn(void *arg, size_t i, struct mq_command *);
typedef int mq_take_fn(void *arg, size_t i, redisReply *);
int mq_ask_all(
    struct mq_redis *, size_t n, mq_ask_fn *ask, mq_take_fn *take, void *arg);
int mq_ask_each(
    struct mq_redis *, size_t n, mq_ask_fn *ask, mq_take_fn *take, void *arg);

/* The server's clock in unix milliseconds; and what a reply to TIME says of
 * it: -1 when that makes no sense. */
int mq_server_time(struct mq_redis *, int64_t *ms);
int mq_reply_time(const redisReply *, int64_t *ms);

/*
 * A walk through all keys, or the fields of a hash: "0" begins it, and an empty
 * cursor is its end.  mq_keys_ask() builds one step through the keys that match;
 * mq_cursor_take() takes the reply to any step, and returns the array in it.
 * NULL: it makes no sense, and the walk is over.
 */
#define MQ_CURSOR_SIZE 32
#define MQ_CURSOR_STEP 1000
void mq_keys_ask(struct mq_command *, const char *cursor, const char *pattern);
redisReply *mq_cursor_take(char cursor[MQ_CURSOR_SIZE], const redisReply *);

#endif
