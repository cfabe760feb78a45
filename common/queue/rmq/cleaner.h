/*
 * One round of cleaning in the rmq layout: what its steps share, which is the
 * bottom of it.  The steps are above, in steps.h, and clean.c calls them.  For this
 * folder only.
 *
 * All functions that return an int return -1 only when the connection is lost;
 * redis/round.h says what becomes of other errors.
 */
#ifndef MQ_RMQ_CLEANER_H
#define MQ_RMQ_CLEANER_H

#include "base/names.h"
#include "queue/queue.h"
#include "redis/round.h"

/* Messages of one queue that had crashed or had expired. */
struct rmq_count {
	char *queue;
	long crashed, rejected, expired;
};

struct rmq_cleaner {
	struct mq_round round;
	const struct mq_clean *how;
	struct mq_cleaned *out;
	struct mq_names live;	/* connections with a heartbeat; sorted */
	struct mq_names dead;	/* those without; sorted */
	struct mq_names lapsed; /* those dead whose programs live; sorted */
	struct mq_names known;	/* dry run: queues that would be known by now */
	/* Queues with locks or delayed messages, if all keys are looked through. */
	struct mq_names busy;
	struct rmq_count *counts;
	size_t count_n, count_cap;
	bool adopted_all; /* rmq_adopt_all() was called */
	bool blind;	  /* a look through all keys is refused */
};
void rmq_cleaner_free(struct rmq_cleaner *);

/* Adds the members of a set of names, RMQ_QUEUES or RMQ_CONNECTIONS.  *whole (unless
 * NULL) becomes false if these are not all. */
int rmq_cleaner_listed(
    struct rmq_cleaner *, const char *set, struct mq_names *, bool *whole);
/* The server's clock in unix milliseconds, on a cluster that of the node that has the
 * queue (NULL: any); 0: it makes no sense. */
int rmq_cleaner_now(struct rmq_cleaner *, const char *queue, int64_t *ms);
/* Calls a script for each name, and adds those that it was true of to *yes. */
int rmq_cleaner_select(struct rmq_cleaner *, const struct mq_names *,
    void (*build)(const struct rmq_cleaner *, const struct mq_name *,
	struct mq_command *),
    struct mq_names *yes);

/* Notes a queue whose keys lie in several slots. */
void rmq_cleaner_scattered(struct rmq_cleaner *, const char *queue);

void rmq_cleaner_count(struct rmq_cleaner *, const char *queue, long crashed,
    long rejected, long expired);
/* Adds what was counted to the counters of the queues. */
int rmq_cleaner_send_counts(struct rmq_cleaner *);

#endif
