/*
 * --wait: until the messages that were accepted have come to their end.  The server
 * keeps what became of them for a while, so that none is missed that ended before we
 * asked, or while the connection was lost.
 */
#ifndef WAIT_H
#define WAIT_H

#include "transport.h"

struct wait_options {
	const char *queue;
	const struct mq_layout *layout;
	struct mq_redis *redis;
	struct transport *transport; /* which connects again */
	struct outcome *outcome;     /* which knows the ids */
	int64_t wait_ms;	     /* for so long at most; -1: for ever */
	bool ids, quiet;	     /* print ids; say less */
};

/* Prints how each message has ended, and returns the exit status. */
int wait_for_endings(const struct wait_options *);

#endif
