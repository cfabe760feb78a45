/*
 * News of keys that others have changed: of those that one connection has
 * read, the server tells another one (CLIENT TRACKING).
 */
#ifndef MQ_TRACKING_H
#define MQ_TRACKING_H

#include "async.h"

struct mq_tracking {
	/* Set by the caller before. */
	struct mq_async *reader;
	struct mq_async *listener; /* for nothing else */
	/* What is sent to the reader from now on is behind the request. */
	void (*started)(void *arg);
	/* There will be no news. */
	void (*refused)(void *arg, const char *error);
	/* A key that the reader has read; NULL: it may be any. */
	void (*changed)(void *arg, const char *key, size_t n);
	void *arg;
};

/* To be called when both connections have been opened.  If one is lost, no
 * more callbacks come. */
void mq_tracking_start(struct mq_tracking *);

#endif
