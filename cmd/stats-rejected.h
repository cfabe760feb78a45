/* Why the newest rejected messages of a queue were rejected. */
#ifndef MQ_STATS_REJECTED_H
#define MQ_STATS_REJECTED_H

#include "stats-look.h"

/* So many messages, and about so many bytes of them, are looked at. */
#define REJECTED_MAX   1000
#define REJECTED_BYTES (16 * 1024 * 1024)

struct rejected {
	char *id;     /* NULL: none */
	char *reason; /* NULL: none was recorded */
	size_t len;   /* of the reason */
	int64_t at_ms;	/* when; 0: not known */
	long attempts;
	long place; /* 0: the oldest there */
};

struct reason {
	const struct rejected *newest;
	long count;
};

struct rejections {
	struct rejected *all; /* the newest first */
	int count;
	struct reason *reasons; /* the most frequent first */
	int reason_count;
	bool cut; /* there are more than were looked at */
};

/* Looks at a queue that has so many; rejections_free() frees. */
void rejections_read(
    struct look *, const char *queue, long long total, struct rejections *);
void rejections_free(struct rejections *);

#endif
