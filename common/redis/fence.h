/*
 * The end of a connection that was given up.  Commands of it may still be
 * unread at the server, and would be carried out behind what the next
 * connection has found there.  Therefore the next one kills it first.
 */
#ifndef MQ_FENCE_H
#define MQ_FENCE_H

#include "async.h"

struct mq_fence {
	/* Set by the caller before. */
	struct mq_async *async;
	char name[32];		 /* that no other client's connections have */
	void (*then)(void *arg); /* the one before is killed, or cannot be */
	void *arg;
	/* Of the last connection that was fenced; 0: there was none. */
	long long id;
};

/*
 * To be called when the connection has been opened.  What then() sends is
 * carried out after the last command of the connection before; also when the
 * server refuses CLIENT LIST or CLIENT KILL.  If this connection is lost
 * before, then() is not called.
 */
void mq_fence(struct mq_fence *);

#endif
