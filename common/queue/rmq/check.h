/*
 * A walk through all places of a queue; see repair.c.  For this folder only.
 */
#ifndef MQ_RMQ_CHECK_H
#define MQ_RMQ_CHECK_H

#include "locks.h"

struct rmq_check {
	struct rmq_cleaner *w;
	const char *queue;
	long long tick;
	struct rmq_locks locks;
	long long expires, last_tick; /* the lowest that were seen; -1: none */
	long late, missing;
	bool proven;	      /* a holder that was not seen is nowhere */
	struct mq_names live; /* connections that were seen alive */
	/* When they were looked at last, CLOCK_MONOTONIC; 0: they are not. */
	double seen_s;
	struct mq_idgen ids;
};

/* The walk proves nothing if the connections were not looked at for so many
 * seconds: less than a lease, in which one could come and go. */
#define RMQ_UNSEEN_S 45.0

/*
 * Goes through one place; connection is for unacked.  *whole becomes false if
 * that did not work.
 */
int rmq_check_place(
    struct rmq_check *, const char *place, const char *connection, bool *whole);
/* Through the unacked lists of all connections; adds those that live. */
int rmq_check_unacked(struct rmq_check *, struct mq_names *live, bool *whole);

#endif
