/*
 * Invalidation of keys (CLIENT TRACKING): if a key changes that one connection has
 * read, the server reports that to another connection.  It says nothing of what the
 * reader changes by itself, and forgets then that the reader has read the key.
 */
#ifndef MQ_TRACKING_H
#define MQ_TRACKING_H

#include "async.h"

struct mq_tracking {
	/* Set by the caller before. */
	struct mq_async *reader;
	struct mq_async *listener; /* for nothing else */
	/* Commands to the reader from now on go out behind the request. */
	void (*started)(void *arg);
	/* The server refused, and reports nothing. */
	void (*refused)(void *arg, const char *error);
	/* A key that the reader has read; NULL: any key may have changed. */
	void (*changed)(void *arg, const char *key, size_t n);
	void *arg;
};

/* To be called when both connections have been opened.  If one is lost, no
 * more callbacks come. */
void mq_tracking_start(struct mq_tracking *);

#endif
