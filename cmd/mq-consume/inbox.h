/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The inbox claims: when the next claim from each queue is made, and why.  Claimed messages are
 * the hand's. */
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

/* Limits of a claim. */
struct claim_terms {
	bool one_by_one; /* one message a claim */
	bool takes_back; /* running messages can be taken back, for a pause */
	size_t copied;	 /* bytes that the server may copy; 0: any number */
};

/* Whether a claim can be sent: none is under way, none is put off. */
bool inbox_ready(const struct inbox *);
/* The queue for which inbox_offer() wants the room next; -1: no more, or a claim was sent.
 * A queue that needs no room is done by the way. */
int inbox_asks(struct inbox *, const struct claim_terms *);
/* Claims up to `room` messages of the queue, or leaves them to others.  Returns whether a
 * claim was sent. */
bool inbox_offer(
    struct inbox *, int queue, int room, const struct claim_terms *);

bool inbox_is_claiming(const struct inbox *);
/* Whether the last claims found nothing, and no claim is under way. */
bool inbox_drained(const struct inbox *);
/* The queue of a claim under way for messages; *next: that of the claim after it, if there
 * is room.  -1: none. */
int inbox_expects(const struct inbox *, int *next);

/* --- news ---------------------------------------------------------------------- */

/* The connection is lost: no more answers come. */
void inbox_down(struct inbox *);
/* The next pass looks for pauses; all: any queue may have more to claim, too. */
void inbox_look(struct inbox *, bool all);
/* A key of a queue that a claim has read has changed; -1: any key may have. */
void inbox_changed(struct inbox *, int queue);
/* Another consumer leaves the messages of a queue to us. */
void inbox_called(struct inbox *, int queue);
/* A settlement of a message claimed at steady time `since` was sent.  If it makes another
 * message ready, that one is claimed in the same round. */
void inbox_settling(struct inbox *, int queue, double since);
/* Whether a claim would be for nothing but a message that an ack may bring. */
bool inbox_lets_bring(const struct inbox *, int queue);
/* An ack has brought a message, as a claim would that finds no more. */
void inbox_brought(struct inbox *, int queue);
/* The server has answered whether a queue, or (-1) every queue, is paused. */
void inbox_pause_seen(struct inbox *, int queue, bool paused);

/* Once a second: looks for messages of which the server tells nothing.  sending: other
 * commands are on their way, which makes a look cheaper.  room: of each queue. */
void inbox_look_around(struct inbox *, const int *room, bool sending);
/* No more claims come: other consumers are to hear of messages in our place. */
void inbox_pass(struct inbox *);

/* --- the server's last word -------------------------------------------------------- */

/* The tick that a queue is at; 0: unknown. */
int64_t inbox_tick(const struct inbox *, int queue);
/* The server's unix time in milliseconds, by the boot time clock, which, like the server's,
 * goes on while the machine sleeps. */
int64_t inbox_server_ms(const struct inbox *);

#endif
