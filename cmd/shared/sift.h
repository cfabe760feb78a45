/*
 * Going through the messages at a place, and moving or removing those that
 * are meant, in slices that do not keep the server.  What has been done is
 * known exactly at any time, and told whenever it ends before the end.
 */
#ifndef MQ_SIFT_H
#define MQ_SIFT_H

#include <stdbool.h>

#include "filter.h"
#include "progress.h"
#include "queue/queue.h"

struct sift {
	const struct mq_layout *layout;
	struct mq_redis *redis;
	const struct mq_filter *filter;
	const char *word; /* what becomes of them: "returned" */
	const char *to;	  /* to the ready ones of this queue; NULL: nowhere */
	bool open;	  /* whether it has to be made known first */
	long limit;	  /* so many at most, over all places */
	double rate;	  /* messages a second; 0: as fast as it goes */
	bool dry_run;	  /* only count them */
	/* Its own. */
	struct progress progress;
	struct mq_scan scan; /* the walk at work */
	double start;	     /* of the first one, by the monotonic clock */
	long done;	     /* over all places */
	long seen;	     /* messages looked at or moved, over all places */
	long in_line;	     /* those that were meant, but stay in line for
			      * their group */
	struct mq_attributes like; /* of the target, if it has to be made */
	long maxsize;	     /* of the target, in units of UTF-16; -1: any */
	long too_long;	     /* those that were meant, but are longer */
	bool opened;	     /* the target was made known... */
	bool made;	     /* ...and did not exist before */
	bool *chosen, *some; /* of one slice */
	int cap;	     /* of both */
};

/* From now on, INT and TERM end the program between two slices only, with the
 * count.  The second one ends it at once. */
void sift_catch_signals(void);

/*
 * One place; returns how many of it were done.  Ends the program, after saying
 * how many were done in all, when the server refuses something, is lost, or a
 * signal comes.
 */
long sift_place(struct sift *, const struct mq_place *);

/* To call when the server has failed or refused; under_way: of how many
 * messages nobody knows, -1: of all that are left. */
void sift_fail(struct sift *, long under_way) __attribute__((noreturn));

/* When there was nothing to do: says so if there is no such queue at all. */
void sift_unknown(const struct sift *, const char *queue);

/* "12 messages returned", allocated; with dry_run "would be returned". */
char *sift_result(const struct sift *);

/* A rate: "10/s" or "10", ends with exit 64 if it is none. */
double sift_rate(const char *option, const char *arg);

#endif
