/* The last messages of a walk, for --list --newest. */
#ifndef MQ_STATS_NEWEST_H
#define MQ_STATS_NEWEST_H

#include "queue/queue.h"

/* Starts zeroed but for wanted. */
struct newest {
	long wanted; /* at most; some more may be kept */
	struct mq_item *items;
	long count, cap;
};

/* Keeps a copy. */
void newest_keep(struct newest *, const struct mq_item *);
/* Turns them round: the newest one comes first. */
void newest_reverse(struct newest *);
void newest_free(struct newest *);

#endif
