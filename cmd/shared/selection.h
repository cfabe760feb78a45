/*
 * Which messages are meant, and what becomes of them, for the tools of operators.
 */
#ifndef MQ_SELECTION_H
#define MQ_SELECTION_H

#include "options.h"
#include "queue/publisher.h"
#include "queue/stats.h"

/* --- filter ------------------------------------------------------------- */

/* All filters that are given must match.  The filter starts zeroed, and the options are read
 * before any setlocale(3), so that expressions are about bytes.  The first option is --id,
 * for which a tool may have a help of its own. */
extern const struct mq_option mq_filter_options[]; /* into a struct mq_filter */

struct mq_filter {
	const char *id;	    /* without --not; NULL: any; also for a scan */
	const char *option; /* the first other one that was given; NULL: none */
	/* Of the module. */
	struct mq_condition *conditions;
	bool negated; /* of the next condition */
};

/* take() of all but --not; which 0 is --id. */
void mq_filter_take(void *filter, const struct mq_given *);

/* Ends with exit 64 if an id cannot be one of this layout, or nothing follows --not. */
void mq_filter_check(const struct mq_filter *, const struct mq_layout *);

/* Whether any filter is given. */
bool mq_filter_given(const struct mq_filter *);

/* Whether a message matches.  One with a bad header counts as a payload without. */
bool mq_filter_match(const struct mq_filter *, const char *element, size_t len);

void mq_filter_free(struct mq_filter *);

/* A walk through the messages of a place that match.  Starts as struct mq_scan says;
 * mq_scan_free() of the scan ends it. */
struct mq_search {
	const struct mq_layout *layout;
	struct mq_redis *redis;
	const struct mq_filter *filter; /* NULL: all match */
	struct mq_scan scan;
	int at; /* the next one of the slice */
};

/* The next message, which stays as long as its slice; NULL: there is none.  Ends the
 * program with the error of the connection. */
const struct mq_item *mq_search_next(struct mq_search *);

/* --- selection ---------------------------------------------------------- */

/* Walks through the messages at a place, and moves or removes those that are meant, in
 * slices that do not keep the server.  What has been done is known exactly at any time, and
 * printed whenever the program ends early. */

/* A bar on stderr, if that is a terminal and the work takes longer than a second. */
struct progress {
	bool on;      /* there can be a bar */
	double start; /* monotonic seconds */
	double last;  /* when it was drawn; 0: there is none */
	long total;   /* what all of the work is; 0: not known */
};

/* Copies of messages, with ids of their own; those that are copied stay as they are. */
struct clones {
	json_t *ids; /* of the copies, a list; NULL: they are printed */
	/* Set by the module. */
	struct mq_publisher publisher;
	struct mq_idgen random;
	int64_t clock_us; /* the server's clock minus the steady one */
	uint64_t start_us, last_us;
	bool unsure; /* after an error: whether there is one copy more */
	/* Whoever ends the work frees the publisher then, which leaves an answer that
	 * nobody reads. */
	bool open;
};

struct selection {
	const struct mq_layout *layout;
	struct mq_redis *redis;
	const struct mq_filter *filter;
	const char *word; /* what becomes of the messages: "returned" */
	const char *to;	  /* to the ready ones of this queue; NULL: nowhere */
	long limit;	  /* messages at most, over all places */
	struct mq_rate rate; /* per_s 0: as fast as it goes */
	bool clone;	     /* copies go there instead */
	struct clones clones;
	bool dry_run;	   /* only count them */
	bool files;	   /* those that go nowhere may have attachments */
	const char *queue; /* results name it; NULL: there is only one */
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
};

/* --limit and --dry-run; into a struct selection. */
extern const struct mq_option selection_options[];

/* Begins, or begins anew: nothing has been done.  quiet: no progress is shown. */
void selection_begin(struct selection *, bool quiet);

/* Does one place; returns how many messages.  If the server refuses something or is lost,
 * or after INT or TERM, the program ends after printing how many were done in all. */
long selection_place(struct selection *, const struct mq_place *);

/* For --running: ends the run of the message with the filter's id, as queue/stats.h says,
 * and purges or returns the message.  Ends the program if that cannot be done. */
void selection_stop(struct selection *, const char *queue, enum mq_stop what);
/* Ends with exit 64 unless there is an id, one queue, and none of the other options;
 * other: one that was given, or NULL. */
void selection_check_running(
    const struct selection *, int queues, const char *other);

/* When nothing was done: says so if there is no such queue at all. */
void selection_unknown(const struct selection *, const char *queue);

/* Prints "12 messages returned"; with dry_run "would be returned".  For copies, whose
 * ids were printed, that goes to standard error. */
void selection_print(const struct selection *);

#endif
