/*
 * The hand owns each message that this consumer has: its queue, its place in the order of
 * claims, its state, the others that are equal to it, and the counts of all this.
 *
 *	held -> running -> ended -> settling -> settled -> forgotten
 *	   ^-------'         ^--------'
 *
 * A held one may be settled without a run.  One that is lost is forgotten from any state, once
 * nobody has to hear of its end any more.
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
/* With all messages. */
void hand_free(struct hand *);

/* --- moves ------------------------------------------------------------------- */

/* Adds a held message, which was claimed just now.  Takes the element. */
struct message *hand_add(struct hand *, int queue, char *element, size_t len);
/* A held one runs. */
void hand_start(struct hand *, struct message *);
/* A running one is held again, in its place, as if it had not been started; or is forgotten,
 * if it is lost. */
void hand_put_back(struct hand *, struct message *);
/* Its run is over, or it cannot be settled as it was to be: the engine will hear of it. */
void hand_end(struct hand *, struct message *);
/* It has an outcome, which the server is to hear. */
void hand_settle(struct hand *, struct message *);
/* The server has answered, and the engine will hear of it. */
void hand_settled(struct hand *, struct message *);
/* Its outcome does not count: another consumer may have it; or (gone) nobody has. */
void hand_lose(struct hand *, struct message *, bool gone);
/* The consumer has it no more.  Freed by hand_sweep(), once no fact names it. */
void hand_forget(struct hand *, struct message *);
void hand_sweep(struct hand *);

/* --- starts ------------------------------------------------------------------ */

/* Why no message of a queue may start. */
enum bar {
	BAR_PAUSED = 1,	 /* the queue, or (-1) all of them are */
	BAR_PAUSING = 2, /* a pause of ours is on its way */
	BAR_FULL = 4	 /* as many run as the queue allows */
};
void hand_bar(struct hand *, int queue, enum bar, bool on);
bool hand_barred(const struct hand *, int queue, enum bar);

/* The oldest held message that may start, of the first queue that has one; NULL: none. */
struct message *hand_next(const struct hand *, int queue);
/* The newest held message, which goes back first; NULL: none. */
struct message *hand_newest(const struct hand *, int queue);

/* --- questions --------------------------------------------------------------- */

/* How many messages of a queue, or of all, are in a state. */
int hand_count(const struct hand *, int queue, enum message_state);
/* How many there are. */
int hand_size(const struct hand *, int queue);
/* Bytes of the held ones. */
size_t hand_unstarted_bytes(const struct hand *);
/* Runs begun so far, but for those that were held again. */
long hand_started(const struct hand *);
/* Changes with each message that comes, goes, or is lost. */
unsigned long hand_moves(const struct hand *);

/* The next one of a queue after another, in the order of their claims; after NULL, the
 * oldest.  NULL: there is none. */
struct message *hand_after(
    const struct hand *, int queue, const struct message *);
/* The one of that number; NULL: it is not here any more. */
struct message *hand_find(const struct hand *, unsigned long number);

/* Whether the server has all messages of a queue in that order. */
bool hand_in_order(const struct hand *, int queue);
/* The server may have another order now. */
void hand_disorder(struct hand *, int queue);

/* --- what the server holds ---------------------------------------------------- */

/* How many messages of a queue the server should hold for us. */
int hand_owned(const struct hand *, int queue);
/* The connection has a new name: nothing was claimed under it. */
void hand_renamed(struct hand *);
/* Compares our messages of a queue with those that the server holds for us: adds those of
 * claims without an answer, whose data it takes, and marks the others as seen. */
void hand_compare(struct hand *, int queue, struct mq_held *);
/* After that: the oldest that the server does not hold any more, and that has no answer of
 * its own to come; or the next one after another.  NULL: none. */
struct message *hand_missing(
    const struct hand *, int queue, const struct message *);

#endif
