/*
 * A connection to the server for mq-consume, which never waits: hiredis on a
 * libev loop.  Queues and layouts are not its business.
 */
#ifndef MQ_ASYNC_H
#define MQ_ASYNC_H

#include <ev.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include "command.h"
#include "server.h"

struct mq_async {
	struct ev_loop *loop;
	redisAsyncContext *context; /* NULL: there is no connection */
	/* The connection is gone; why is a text for people.  Called once,
	 * after the callbacks of all that was sent. */
	void (*down)(void *arg, const char *why);
	void *arg;
};

/*
 * A reply, which is freed when the callback returns; NULL: the connection
 * was lost before one came, and nothing is known of the command.
 */
typedef void mq_async_fn(void *arg, redisReply *reply);

/*
 * Starts to connect and to greet the server; commands can be sent at once.
 * loop, down and arg are set by the caller before.  Failure is told by
 * down(), never from within this call, except by returning -1 with why
 * (then down() is not called).
 */
int mq_async_open(
    struct mq_async *, const struct mq_server *, const char **why);

/*
 * Sends a command, which can be changed or freed at once.  A script that the
 * server does not know is sent once more with its text.  fn may be NULL.
 */
void mq_async_send(
    struct mq_async *, struct mq_command *, mq_async_fn *fn, void *arg);

/* Subscribes to a channel; fn is called for each message (and the reply). */
void mq_async_subscribe(
    struct mq_async *, const char *channel, mq_async_fn *fn, void *arg);

/* Closes at once; callbacks get NULL, down() is not called. */
void mq_async_close(struct mq_async *);

#endif
