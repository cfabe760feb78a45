/*
 * The keys of RSMQ and our own beside them; which keys.c lists; for this folder only.  Each
 * function appends one argument to a command.
 *
 * Queues are named QUEUE, in the namespace rsmq, or NAMESPACE:QUEUE; a
 * namespace may have colons itself, a queue's name cannot.
 */
#ifndef MQ_RSMQ_KEYS_H
#define MQ_RSMQ_KEYS_H

#include "queue/side.h"

#define RSMQ_NAMESPACE "rsmq"

/* NAMESPACE:QUEUE and then what; see keys.c. */
void rsmq_key(struct mq_command *, const char *queue, const char *what);
/* The same without the queue: NAMESPACE and then what. */
void rsmq_key_common(struct mq_command *, const char *queue, const char *what);

/* The keys that have a queue's messages, as RSMQ_QUEUE_KEYS arguments; see
 * lua/lib/layout.lua. */
#define RSMQ_QUEUE_KEYS 4
void rsmq_queue_keys(struct mq_command *, const char *queue);

/* The messages of a queue that a connection holds; its lease; what runs there. */
void rsmq_key_held(
    struct mq_command *, const char *connection, const char *queue);
void rsmq_key_lease(
    struct mq_command *, const char *connection, const char *queue);

void rsmq_key_running(
    struct mq_command *, const char *connection, const char *queue);

/* The batches of a publisher. */
void rsmq_key_marks(
    struct mq_command *, const char *queue, const char *publisher);

/* No key: the channel for the number of messages. */
void rsmq_channel(struct mq_command *, const char *queue);

/* Behind a queue's name: the queue of those that it has rejected. */
#define RSMQ_REJECTED "-rejected"

/* The connection that those have been received by who leave no name. */
#define RSMQ_NOBODY "-"

/* No key: the name without the namespace. */
const char *rsmq_bare(const char *queue);

extern const struct mq_side rsmq_side;

/* Why this cannot be the name of a queue, constant text; NULL: it can. */
const char *rsmq_queue_error(const char *queue);

#endif
