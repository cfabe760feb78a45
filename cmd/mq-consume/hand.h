/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The hand owns each message that this consumer has: its queue, its place in the order of
 * claims, its state, the others that are equal to it, and the counts of all this.
 *
 *	unstarted -> running -> ended -> settling -> settled -> forgotten
 *	   ^------------'         ^--------'
 *
 * An unstarted message may be settled without a run.  A lost message is forgotten from any
 * state, once no module has to hear of its end.
 *
 * Other modules move messages by the functions below.  A queue is an index into the options'
 * queues; -1 is all of them, in their order.
 */
#ifndef MQ_CONSUME_HAND_H
#define MQ_CONSUME_HAND_H

#include "message.h"

struct mq_held;
struct hand;

struct hand *hand_new(const struct options *);
/* Frees all messages, too. */
void hand_free(struct hand *);

/* --- moves ------------------------------------------------------------------- */

/* Adds an unstarted message, claimed just now.  Takes the element. */
struct message *hand_add(struct hand *, int queue, char *element, size_t len);
/* An unstarted message begins to run. */
void hand_start(struct hand *, struct message *);
/* A running message is unstarted again, in its old place, as if it had never begun; a lost
 * one is forgotten. */
void hand_put_back(struct hand *, struct message *);
/* A run is over, or its outcome cannot be carried out: the engine has yet to hear of it. */
void hand_end(struct hand *, struct message *);
/* The outbox takes the message, to send its outcome. */
void hand_settle(struct hand *, struct message *);
/* The server has answered a settlement: the engine has yet to hear of it. */
void hand_settled(struct hand *, struct message *);
/* The message's outcome no longer counts: another consumer may have the message; or (gone)
 * somebody deleted it. */
void hand_lose(struct hand *, struct message *, bool gone);
/* Takes a message out of the hand; hand_sweep() frees it, once no fact names it. */
void hand_forget(struct hand *, struct message *);
void hand_sweep(struct hand *);

/* --- starts ------------------------------------------------------------------ */

/* Why no message of a queue may start. */
enum bar {
	BAR_PAUSED = 1,	 /* the queue, or (-1) every queue, is paused */
	BAR_PAUSING = 2, /* a pause of ours is on its way */
	BAR_FULL = 4	 /* the queue allows no more runs at once */
};
void hand_bar(struct hand *, int queue, enum bar, bool on);
bool hand_barred(const struct hand *, int queue, enum bar);

/* The oldest message that may start, of the first queue with such a message; NULL: none. */
struct message *hand_next(const struct hand *, int queue);
/* The newest unstarted message, which goes back first; NULL: none. */
struct message *hand_newest(const struct hand *, int queue);

/* --- questions --------------------------------------------------------------- */

/* How many messages are in a state; and in any state. */
int hand_count(const struct hand *, int queue, enum message_state);
int hand_size(const struct hand *, int queue);
/* Bytes of all unstarted messages. */
size_t hand_unstarted_bytes(const struct hand *);
/* Runs begun, without those put back. */
long hand_started(const struct hand *);
/* A number that changes with each message that comes, goes, or is lost. */
unsigned long hand_moves(const struct hand *);

/* The message claimed after another one (NULL: the oldest); NULL: no more. */
struct message *hand_after(
    const struct hand *, int queue, const struct message *);
/* The message with that number; NULL: forgotten. */
struct message *hand_find(const struct hand *, unsigned long number);

/* Whether the server is known to list the messages of a queue in the order of their claims;
 * hand_disorder() says that it may have another order now. */
bool hand_in_order(const struct hand *, int queue);
void hand_disorder(struct hand *, int queue);

/* --- messages at the server ---------------------------------------------------- */

/* How many messages of a queue the server should hold for us. */
int hand_owned(const struct hand *, int queue);
/* The connection has a new name: nothing was claimed under it. */
void hand_renamed(struct hand *);
/* Compares the messages of a queue with those that the server holds for us: adds those of
 * claims without an answer, whose data it takes, and marks the others as seen. */
void hand_compare(struct hand *, int queue, struct mq_held *);
/* After hand_compare(): the next message, behind `after`, that the server no longer holds
 * and whose settlement is not in flight; NULL: no more. */
struct message *hand_missing(
    const struct hand *, int queue, const struct message *after);

#endif
