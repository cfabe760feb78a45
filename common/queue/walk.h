/*
 * The memory of a walk (struct mq_scan) from slice to slice, for the layouts only.
 */
#ifndef MQ_WALK_H
#define MQ_WALK_H

#include "queue.h"

struct mq_walk {
	redisReply *connections; /* those to walk through; NULL: one only */
	redisReply *reply;	 /* this slice: the items point into it */
	size_t cap;		 /* of the items */
	long long part_left;  /* messages of the part of the place at work that
				  * are still to be looked at, of those that were
				  * there when it began; 0: not begun; -1: none */
	struct mq_buf anchor; /* the last message behind the walk */
	long long span;	      /* messages that this slice had, and has */
	/* rmq */
	int part;	   /* which of the place's keys is at work */
	size_t connection; /* index of the connection at work */
	long long from;	   /* messages behind the walk that are still there */
	int64_t anchor_score; /* in a sorted set */
	long batch;	      /* messages that are taken at once */
	struct mq_buf turned; /* the first message that was brought to the other
			       * end; empty: none was */
	/* rsmq */
	struct mq_names *held; /* ids, and whose they are */
};

/* Allocates the walk at its first slice.  mq_scan_free() frees. */
struct mq_walk *mq_walk_of(struct mq_scan *);
/* Makes room for n items. */
void mq_walk_reserve(struct mq_scan *, size_t n);
/* Lets go of the slice before. */
void mq_walk_drop_slice(struct mq_scan *);

#endif
