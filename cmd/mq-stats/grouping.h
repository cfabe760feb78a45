/*
 * Reasons of rejected messages in groups: those that differ only in numbers
 * and ids are one.
 */
#ifndef MQ_STATS_GROUPING_H
#define MQ_STATS_GROUPING_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/queue.h"

/* Bytes of a reason that are compared and kept. */
#define REASON_BYTES 300

struct reason {
	char *text;   /* with N and ID for numbers and ids; empty: none was
		       * recorded */
	char *newest; /* the reason of the newest message, as it is */
	char *id;     /* of that message; NULL: none */
	long count;
	int64_t oldest_ms, newest_ms; /* unix ms; 0: not known */
};

/* Starts zeroed; reasons_free() frees. */
struct reasons {
	struct reason *list; /* by their texts, until they are sorted */
	int count;
	long others; /* messages that are in no group */
};

/* Counts a message; reason and id may be NULL, at_ms 0.  One that is not
 * older than those before it is the newest. */
void reasons_add(
    struct reasons *, const char *reason, int64_t at_ms, const char *id);
/* The most frequent first; nothing can be added then. */
void reasons_sort(struct reasons *);
void reasons_free(struct reasons *);

/* Messages of a queue that are looked at. */
#define REJECTED_MAX 1000

struct rejected {
	char *id;      /* NULL: none */
	char *reason;  /* NULL: none was recorded */
	int64_t at_ms; /* when; 0: not known */
	long attempts;
	long place; /* 0: the oldest there */
};

/* The newest rejected messages of a queue.  Starts zeroed. */
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
