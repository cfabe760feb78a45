/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The outbox settles messages at the server, by the outcome in each message, and sends results and
 * counts.  After an error, a settlement is sent again on the next tick; after a lost connection,
 * once the next join has compared all messages.  The outbox never decides an outcome, except if
 * a key of the destination has the wrong type.
 */
#ifndef MQ_CONSUME_OUTBOX_H
#define MQ_CONSUME_OUTBOX_H

#include "mq-consume/fact.h"
#include "mq-consume/hand.h"
#include "queue/consumer.h"

struct ev_loop;
struct outbox;

/* The pointers stay the caller's.  many: messages end many at a time. */
struct outbox *outbox_new(struct ev_loop *, const struct options *,
    struct hand *, struct facts *, struct mq_consumer *, struct mq_server *,
    struct mq_idgen *, bool many);
void outbox_free(struct outbox *);

/* The session has joined, and the messages have been compared: sends unsettled outcomes again; or
 * the connection is lost. */
void outbox_up(struct outbox *);
void outbox_down(struct outbox *);

/* Settles a message, whose outcome is set.  A message that goes to the front waits while others of
 * its queue go back. */
void outbox_settle(struct outbox *, struct message *);
/* Returns an unstarted message, with others of its queue. */
void outbox_give_back(struct outbox *, struct message *);

/* Sends waiting acks, and messages that wait for equal ones.  Which acks: */
enum outbox_acks {
	OUTBOX_ENOUGH,	/* every ack, if there are enough to go together */
	OUTBOX_CLAIM,	/* acks that can go with a claim, which wakes the server
			 * anyway: if messages end many at a time, only acks not
			 * behind unfinished messages; else all */
	OUTBOX_HOLDERS, /* every ack, if one may hold a key or a group */
	OUTBOX_NEXT, /* every ack; that of outbox_follows() may bring a message */
	OUTBOX_ALL
};
void outbox_flush(struct outbox *, enum outbox_acks);
/* The queue of the only waiting ack, if the last ack was of the same group, of which more messages
 * may wait; -1: none. */
int outbox_follows(const struct outbox *);
/* Whether the answer to an ack may bring a message, as to a claim. */
bool outbox_brings(const struct outbox *);
/* Sends the next messages that go back; to be called once per turn. */
void outbox_send_back(struct outbox *);
/* Once a second: sends all settlements that are not in flight. */
void outbox_send_again(struct outbox *);
/* Takes the next queue in which a settlement on its way may make a message ready.  *since: steady
 * time of the settled message's claim.  False: no more. */
bool outbox_makes_ready(struct outbox *, int *queue, double *since);

/* Confirms a message whose answer was lost: the server has settled it. */
void outbox_confirm(struct outbox *, struct message *);
/* Counts a lost lease, and says why the outcome does not count. */
void outbox_lose(struct outbox *, struct message *, const char *why);
/* Takes a settling message out of its line. */
void outbox_drop(struct outbox *, struct message *);

/* Whether a refused settlement waits for the next tick. */
bool outbox_refused(const struct outbox *);
/* Whether messages of a queue go back together. */
bool outbox_gives_back(const struct outbox *, int queue);
/* Bytes that the server copies for the settlements in flight, about. */
size_t outbox_copying(const struct outbox *);

/* --- reports.c: counters ------------------------------------------------- */

/* Counts of settlements and runs, by queue, and the long runs if these have changed, are sent once
 * a second, for mq-stats.  If the connection is lost before the answer, counts may be lost, but
 * never count twice. */

void counters_ran(struct outbox *, int queue, double seconds);
/* The consumer of an earlier run died. */
void counters_crashed(struct outbox *, int queue);
/* Sends the counts since the last call. */
void counters_send(struct outbox *);
/* Sends the long runs, as of queue/stats.h; takes the text, which is empty if nothing runs. */
void counters_tell_runs(struct outbox *, struct mq_buf *text);
/* The counts since the start of done, failed, retried and lease_lost; the other members are 0.
 * *returned: messages returned unstarted; may be NULL. */
struct mq_counts counters_totals(const struct outbox *, long *returned);

#endif
