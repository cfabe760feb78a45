/*
 * Errands at the server that take their time: each is run in a helper process, with a
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
#ifndef MQ_CONSUME_ERRANDS_H
#define MQ_CONSUME_ERRANDS_H

#include "fact.h"
#include "queue/consumer.h"
#include "redis/server.h"

struct errands;
struct mq_children;

/* The pointers stay the caller's. */
struct errands *errands_new(const struct options *, struct facts *,
    struct mq_consumer *, struct mq_server *, struct mq_children *);
/* Breaks off the errands under way; but transfers are brought to an end, which is waited
 * for. */
void errands_end(struct errands *);
/* Once the connection of the consumer is closed: answers may be missing until then. */
void errands_free(struct errands *);

/* Once a second: begins what is due.  counts: the number of messages is wanted; waits:
 * nothing is left but what other consumers have. */
void errands_tick(struct errands *, bool counts, bool waits);
/* Whether the first round is over, or another consumer's, and no other is under way.
 * Begins the first. */
bool errands_cleaned(struct errands *);
/* The consumer leaves: another one may clean. */
void errands_resign(struct errands *);
/* Makes the next round of cleaning due at once; or the next look whether the queues are
 * empty. */
void errands_clean_soon(struct errands *);
void errands_drain_soon(struct errands *);
/* Looks whether the queues are empty, unless it did less than 0.9 s ago. */
void errands_drain(struct errands *);
/* A message was pushed. */
void errands_transfer(struct errands *);

#endif
