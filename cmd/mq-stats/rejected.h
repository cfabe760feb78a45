/* Why the newest rejected messages of a queue were rejected. */
#ifndef MQ_STATS_REJECTED_H
#define MQ_STATS_REJECTED_H

#include "look.h"
#include "reasons.h"

/* So many of a queue are looked at. */
#define REJECTED_MAX 1000

struct rejected {
	char *id;      /* NULL: none */
	char *reason;  /* NULL: none was recorded */
	int64_t at_ms; /* when; 0: not known */
	long attempts;
	long place; /* 0: the oldest there */
};

struct rejections {
	struct rejected *all; /* the newest first */
	int count;
	struct reasons reasons; /* the most frequent first */
	bool cut;		/* there are more than were looked at */
};

/* Looks at a queue that has so many, until about *bytes have been read, and
 * takes those off; rejections_free() frees. */
void rejections_read(struct look *, const char *queue, long long total,
    size_t *bytes, struct rejections *);
void rejections_free(struct rejections *);

#endif
