/* Why the newest rejected messages of a queue were rejected. */
#ifndef MQ_STATS_REJECTIONS_H
#define MQ_STATS_REJECTIONS_H

#include <stdbool.h>

#include "grouping.h"
#include "queue/queue.h"

/* Messages of a queue that are looked at. */
#define REJECTED_MAX 1000

struct rejected {
	char *id;      /* NULL: none */
	char *reason;  /* NULL: none was recorded */
	int64_t at_ms; /* when; 0: not known */
	long attempts;
	long place; /* 0: the oldest there */
};

/* Starts zeroed. */
struct rejections {
	struct rejected *all; /* the newest first */
	int count;
	struct reasons reasons; /* the most frequent first */
	bool cut;		/* there are more than were looked at */
};

/* Adds a message, of up to REJECTED_MAX, in any order. */
void rejections_add(struct rejections *, const struct mq_item *, long place);
/* When all are added: sorts and groups them.  total: of the queue. */
void rejections_group(struct rejections *, long long total);
void rejections_free(struct rejections *);

#endif
