/*
 * Asks the server for what outputs show; nothing else here does.  What cannot go on
 * ends the program, but for collect_try() and collect_again().
 */
#ifndef MQ_STATS_COLLECT_H
#define MQ_STATS_COLLECT_H

#include "message/result.h"
#include "model.h"
#include "redis/report.h"
#include "shared/filter.h"

/* The server, and the queues that are named.  It connects when it must. */
struct collector {
	const struct mq_layout *layout;
	struct mq_server server;
	const char *const *queues;
	int count;
	/* Set by the collection. */
	struct mq_redis redis;
	bool open;
};

/* The queues, and what else is wanted (MQ_STATS_*).  Returns 0, or -1 with the error
 * in the model; the next call connects anew. */
int collect_try(struct collector *, int wanted, struct model *);
/* The same once more: the rates are those since the last time.  After an error the
 * model keeps its queues. */
int collect_again(struct collector *, int wanted, struct model *);

/* The nodes of a cluster that are lost; collect_try() does so, too. */
void collect_lost(struct collector *, struct model *);

/* More for the model. */
void collect_stats(struct collector *, int wanted, struct model *);
void collect_policy(struct collector *, struct model *);
void collect_report(struct collector *, struct mq_report *);
void collect_runs(struct collector *, struct model *);
void collect_rejected(struct collector *, struct model *);
/* For queues that do not exist. */
void collect_elsewhere(struct collector *, struct model *);

/* Gets a slice of messages; returns whether it wants another one. */
typedef bool slice_fn(void *arg, const struct mq_item *, int count);
/* Walks through a place until there are no more messages, or none are wanted; skip
 * and needle as of struct mq_scan.  Returns how many were looked at. */
long collect_messages(struct collector *, const struct mq_place *, long skip,
    const char *needle, slice_fn *, void *arg);

/* The reasons of the rejected messages of a queue that match, not sorted.  Returns
 * how many were looked at. */
long collect_reasons(struct collector *, const char *queue,
    const struct mq_filter *, struct reasons *);

/* The end of a message, if that is kept: its queue, one of the model; else
 * NULL.  mq_ending_free() frees. */
const char *collect_ending(
    struct collector *, struct model *, const char *id, struct mq_ending *);

void collect_close(struct collector *);

#endif
