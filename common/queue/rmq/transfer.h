/*
 * Messages that go to another queue of a cluster, which may be on another node.  A
 * transfer is done in steps, each of which can be repeated:
 *
 *	1. The source's script puts the message into the hash rmq::queue::{S}::outgoing.
 *	2. arrive: it enters the target, with a mark in rmq::queue::{T}::incoming; if
 *	   the mark is there, nothing happens.
 *	3. confirm: if the target's node has replicas, one of them has it.
 *	4. know: the target is known.
 *	5. end: it leaves outgoing.
 *
 * Whoever begins a transfer goes through them, and a cleaner ends what a crash has left.
 * For this folder only.
 */
#ifndef MQ_RMQ_TRANSFER_H
#define MQ_RMQ_TRANSFER_H

#include "keys.h"
#include "redis/round.h"

/* A step's messages: at most this many, or about this many bytes. */
#define RMQ_TRANSFER_COUNT 500
#define RMQ_TRANSFER_BYTES (1 << 20)

/* Whether messages from one queue to the other (NULL: nowhere) need this. */
bool rmq_transfer_needed(
    const struct mq_command *, const char *from, const char *to);

/* Step 1 is in the scripts that take messages from their places.  For those that take
 * many, this adds one argument, "HOW ID FROM TO", with an id of its own for each call.
 * from: see lua/outgoing.lua. */
void rmq_transfer_how(
    struct mq_command *, const char *how, const char *from, const char *to);

/* The same for one: the argument is its field.  id: MQ_ID_LEN characters. */
void rmq_transfer_field(
    struct mq_command *, const char *id, const char *from, const char *to);

/* Adds the keys of a notice about a message of the queue, for a queue that may be on
 * another node; see lua/lib/notices.lua. */
void rmq_key_notice(struct mq_command *, const char *queue, const char *to);

/* Before step 1: fails, with the error, if the target would refuse messages; and makes
 * the source known, so that a cleaner looks there. */
int rmq_transfer_check(struct mq_redis *, const char *source, const char *to);

/* Ends the transfers from a queue to another (NULL: to any).  -1: the connection is
 * lost; other errors are noted, and the messages stay in outgoing. */
int rmq_transfer_finish(
    struct mq_round *, const char *source, const char *to, long *ended);
/* The same, where any error is returned. */
int rmq_transfer_complete(
    struct mq_redis *, const char *source, const char *to);

#endif
