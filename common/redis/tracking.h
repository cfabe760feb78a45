/*
 * Reports to a connection that listens: of keys that another one, the reader, has
 * read and that change (CLIENT TRACKING), and of calls by other clients over a
 * channel of this program alone.  Only what tracked commands read counts.
 */
#ifndef MQ_TRACKING_H
#define MQ_TRACKING_H

#include "async.h"

struct mq_tracking {
	/* Set by the caller before. */
	struct mq_async *reader;
	struct mq_async *listener; /* for nothing else */
	const char *channel;
	/* Commands to the reader from now on go out behind the requests. */
	void (*started)(void *arg);
	/* The server refused what, and reports nothing.  Answers to commands
	 * that were sent behind the requests come later. */
	void (*refused)(void *arg, const char *what, const char *error);
	/* A key that the reader has read; NULL: any key may have changed. */
	void (*changed)(void *arg, const char *key, size_t n);
	/* Somebody has called. */
	void (*called)(void *arg, const char *text, size_t n);
	void *arg;
};

/* To be called when both connections have been opened.  If one is lost, no
 * more callbacks come. */
void mq_tracking_start(struct mq_tracking *);

#endif
