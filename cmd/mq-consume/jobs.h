/*
 * Jobs at the server that take their time: each is run in a helper process, with a
 * connection of its own, and only once at a time.
 *
 *	cleaning	reclaims dead connections
 *	drain		--drain: whether the queues are empty, with no message in flight
 *			at any consumer
 *	survey		what --drain has before it: how many messages can be claimed, and
 *			which other consumers have some
 *	transfers	on a cluster, messages that were pushed to a queue of another node
 *			are still on that of their own: brings them there.  What a crash
 *			leaves is brought by any cleaner.
 */
#ifndef MQ_CONSUME_JOBS_H
#define MQ_CONSUME_JOBS_H

#include "fact.h"
#include "queue/consumer.h"
#include "redis/server.h"

struct jobs;
struct mq_children;

/* The pointers stay the caller's. */
struct jobs *jobs_new(const struct options *, struct facts *,
    struct mq_consumer *, struct mq_server *, struct mq_children *);
/* Breaks off the jobs under way; but transfers are brought to an end, which is waited
 * for. */
void jobs_end(struct jobs *);
/* Once the connection of the consumer is closed: answers may be missing until then. */
void jobs_free(struct jobs *);

/* Once a second: begins what is due.  counts: the number of messages is wanted; waits:
 * nothing is left but what other consumers have. */
void jobs_tick(struct jobs *, bool counts, bool waits);
/* Whether the first round is over, or another consumer's, and no other is under way.
 * Begins the first. */
bool jobs_cleaned(struct jobs *);
/* The consumer leaves: another one may clean. */
void jobs_resign(struct jobs *);
/* Makes the next round of cleaning due at once; or the next look whether the queues are
 * empty. */
void jobs_clean_soon(struct jobs *);
void jobs_drain_soon(struct jobs *);
/* Looks whether the queues are empty, unless it did less than 0.9 s ago. */
void jobs_drain(struct jobs *);
/* A message was pushed. */
void jobs_transfer(struct jobs *);

#endif
