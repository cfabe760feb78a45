/* What comes in: when the next claim from each queue is made, and why.  The inbox claims;
 * what it gets is the hand's. */
#ifndef MQ_CONSUME_INBOX_H
#define MQ_CONSUME_INBOX_H

#include "fact.h"
#include "hand.h"
#include "queue/consumer.h"

struct ev_loop;
struct inbox;

/* The pointers stay the caller's. */
struct inbox *inbox_new(struct ev_loop *, const struct options *, struct hand *,
    struct facts *, struct mq_consumer *);
void inbox_free(struct inbox *);

/* --- claims: once per turn ----------------------------------------------------- */

/* What a claim has to keep to. */
struct claim_terms {
	bool one_by_one; /* one message a claim */
	bool takes_back; /* running messages can be taken back, for a pause */
	size_t copied;	 /* by the server, in bytes, at most; 0: any number */
};

/* Whether a claim can be sent: none is under way, none is put off. */
bool inbox_ready(const struct inbox *);
/* The queue of which the room is to be told next; -1: there is none, or a claim has been
 * sent.  A queue that needs no room is done by the way. */
int inbox_asks(struct inbox *, const struct claim_terms *);
/* The answer: claims as many of that queue as there is room for, or leaves them to others.
 * True: a claim was sent. */
bool inbox_offer(
    struct inbox *, int queue, int room, const struct claim_terms *);

/* Whether a claim is under way. */
bool inbox_is_claiming(const struct inbox *);
/* Whether the last claims found nothing, and no claim is under way. */
bool inbox_drained(const struct inbox *);
/* The queue of a claim under way for messages, -1: none; and in *next that of the next
 * claim, if there is room; -1: none. */
int inbox_expects(const struct inbox *, int *next);

/* --- news ---------------------------------------------------------------------- */

/* The connection is lost: no more answers come. */
void inbox_down(struct inbox *);
/* Looks for pauses; all: and any queue may have more to claim. */
void inbox_look(struct inbox *, bool all);
/* A key of a queue that a claim has read has changed; -1: any key may have. */
void inbox_changed(struct inbox *, int queue);
/* Another consumer leaves the messages of a queue to us. */
void inbox_called(struct inbox *, int queue);
/* A settlement was sent, of a message that was claimed at that steady time, which may make
 * one of the queue ready: it is to be claimed in the same round. */
void inbox_settling(struct inbox *, int queue, double since);
/* The server has answered whether a queue, or (-1) all of them, are paused. */
void inbox_pause_seen(struct inbox *, int queue, bool paused);

/* Once a second: looks for what nobody tells of; rather while something else is on its way
 * to the server (sending).  room: of each queue. */
void inbox_look_around(struct inbox *, const int *room, bool sending);
/* No more claims come: others get to hear of messages in our place. */
void inbox_pass(struct inbox *);

/* --- what the server last said ---------------------------------------------------- */

/* The tick that a queue is at; 0: it is not known. */
int64_t inbox_tick(const struct inbox *, int queue);
/* Its unix time, in milliseconds; by the boot time clock, which, like the server's, goes on
 * while the machine sleeps. */
int64_t inbox_server_ms(const struct inbox *);

#endif
