/*
 * --list: the messages in one state of one queue, slice by slice, so that a
 * queue of any length passes through little memory.
 */
#ifndef MQ_STATS_LIST_H
#define MQ_STATS_LIST_H

#include "message/frame.h"
#include "model.h"
#include "newest.h"
#include "shared/filter.h"

struct list_options {
	enum mq_state state;
	struct mq_filter filter;
	bool newest;		 /* the newest first */
	long offset;		 /* messages that are left out first */
	long limit;		 /* -1: all, or a screenful */
	enum mq_framing framing; /* WHOLE: a table for people */
};

struct list {
	const struct list_options *options;
	const struct model
	    *model; /* with the queue, and with connections, of UNACKED */
	const char *queue;
	bool json, quiet;
	/* Set by the list. */
	long limit; /* -1: none */
	long skipped, shown;
	bool more; /* than the limit */
	bool terminal;
	int columns;   /* of a line */
	int extra_max; /* of the column that the state adds */
	int extra;     /* as wide as it is */
	struct mq_buf out;
	struct newest newest;
};

/* Returns how many messages the walk is to skip. */
long list_begin(struct list *);
/* Prints a slice; false: no more are wanted.  arg is the list. */
bool list_slice(void *arg, const struct mq_item *, int count);
/* Returns whether any message was shown. */
bool list_end(struct list *);

#endif
