/*
 * Reasons of rejected messages in groups: those that differ only in numbers
 * and ids are one.
 */
#ifndef MQ_STATS_GROUPING_H
#define MQ_STATS_GROUPING_H

#include <stddef.h>
#include <stdint.h>

/* Groups at most; the messages of all others are only counted. */
#define REASONS_MAX 1000
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

/* Writes a reason with N and ID for its numbers and ids. */
void reason_fold(const char *reason, char out[REASON_BYTES + 1]);

#endif
