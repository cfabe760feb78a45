/*
 * The keys of adjust/rmq v5 and our own beside them, which keys.c lists; for this
 * folder only.  Each function appends one argument to a command.
 */
#ifndef MQ_RMQ_KEYS_H
#define MQ_RMQ_KEYS_H

#include "queue/side.h"

#define RMQ_QUEUES	"rmq::queues"
#define RMQ_CONNECTIONS "rmq::connections"

/* Per queue: ready, rejected, and ours. */
void rmq_key_queue(struct mq_command *, const char *queue, const char *what);

/* RMQ_QUEUES or RMQ_CONNECTIONS; */
void rmq_key_all(struct mq_command *, const char *key);
/* RMQ_QUEUES for a script that works on a queue, to make that known: on a cluster it
 * cannot do so, and gets a key that never exists. */
void rmq_key_queues(struct mq_command *, const char *queue);

/* The keys among which a queue's messages move, as RMQ_QUEUE_KEYS arguments; see
 * lua/lib/place.lua. */
#define RMQ_QUEUE_KEYS 6
/* The tick that a message waits for is added to this. */
#define RMQ_AT_TICK (INT64_C(1) << 50)
/* The score of claimable messages of tick 0. */
#define RMQ_TICKS (-(INT64_C(1) << 52))
/* The lowest score of a message that waits for its turn. */
#define RMQ_IN_LINE "4503599627370496"
void rmq_queue_keys(struct mq_command *, const char *queue);

/* Per connection: heartbeat, queues, and ours. */
void rmq_key_connection(
    struct mq_command *, const char *connection, const char *what);

/* Per connection and queue: consumers, unacked. */
void rmq_key_both(struct mq_command *, const char *connection,
    const char *queue, const char *what);
/* The same of a Go program that uses the other form: the one for a cluster on one server,
 * and the other way round.  On a cluster each of these keys has a slot of its own. */
void rmq_key_queue_other(
    struct mq_command *, const char *queue, const char *what);
void rmq_key_both_other(struct mq_command *, const char *connection,
    const char *queue, const char *what);
/* Whether a name that Go programs can use leaves the keys of a queue in several slots of
 * a cluster, where no step could work on it. */
bool rmq_is_scattered(const struct mq_command *, const char *queue);

/* The same of a key that is the connection's, for a script that works on a queue: on a
 * cluster it gets one that never exists. */
void rmq_key_own(struct mq_command *, const char *connection, const char *queue,
    const char *what);

/* What says that a connection is alive to a script that works on one of its queues;
 * and what it has claimed. */
void rmq_key_lease(
    struct mq_command *, const char *connection, const char *queue);
void rmq_key_info(
    struct mq_command *, const char *connection, const char *queue);

/* The batches of a publisher. */
void rmq_key_marks(
    struct mq_command *, const char *queue, const char *publisher);
extern const struct mq_side rmq_side;

/* Why this cannot be the name of a queue, constant text; NULL: it can.  Names are
 * not escaped anywhere, so one that could be mistaken is refused. */
const char *rmq_queue_error(const char *queue);

/* On a cluster, sends a command without a key to the node that has the queue: its time is
 * that of the queue's messages. */
void rmq_beside_queue(struct mq_command *, const char *queue);

#endif
