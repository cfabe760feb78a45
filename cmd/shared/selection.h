/*
 * Walks through the messages at a place, chooses those that are meant, and moves
 * or removes them, in slices that do not keep the server.  What has been done is
 * known exactly at any time, and printed whenever the program ends early.
 */
#ifndef MQ_SELECTION_H
#define MQ_SELECTION_H

#include <stdbool.h>

#include "base/rate.h"
#include "clone.h"
#include "filter.h"
#include "progress.h"
#include "queue/queue.h"

struct selection {
	const struct mq_layout *layout;
	struct mq_redis *redis;
	const struct mq_filter *filter;
	const char *word; /* what becomes of the messages: "returned" */
	const char *to;	  /* to the ready ones of this queue; NULL: nowhere */
	long limit;	  /* messages at most, over all places */
	struct mq_rate rate;   /* per_s 0: as fast as it goes */
	struct clones *clones; /* copies go there instead; NULL: none */
	bool dry_run;	       /* only count them */
	bool files;	       /* those that go nowhere may have attachments */
	const char *queue;     /* results name it; NULL: there is only one */
	/* The result, over all places. */
	long done;
	long in_line;  /* meant, but they stay in line for their group */
	long too_long; /* meant, but longer than the target takes: */
	long maxsize;  /* in units of UTF-16; -1: any */
	bool made;     /* the target did not exist before */
	/* Set by the selection. */
	struct progress progress;
	struct mq_place place;	   /* at work */
	struct mq_scan scan;	   /* the walk through it */
	struct mq_bucket bucket;   /* of the rate */
	long seen;		   /* messages looked at or moved */
	struct mq_attributes like; /* of the target, if it has to be made */
	bool opened;		   /* the target exists */
	bool *chosen, *some;	   /* of one slice */
	int cap;		   /* of both */
};

/* --limit and --dry-run; into a struct selection. */
extern const struct mq_option selection_options[];

/* Begins, or begins anew: nothing has been done.  quiet: no progress is shown. */
void selection_begin(struct selection *, bool quiet);

/*
 * Does one place; returns how many messages.  If the server refuses something or is
 * lost, or after INT or TERM (see interrupt.h), the program ends, after printing how
 * many messages were done in all.
 */
long selection_place(struct selection *, const struct mq_place *);

/* When nothing was done: says so if there is no such queue at all. */
void selection_unknown(const struct selection *, const char *queue);

/* Prints "12 messages returned"; with dry_run "would be returned".  For copies, whose
 * ids were printed, that goes to standard error. */
void selection_print(const struct selection *);

#endif
