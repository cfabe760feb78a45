/*
 * Outbox: tells the server what became of a message.  A settlement is sent until
 * it is confirmed: an error repeats it on the next tick, a lost connection leads
 * to a comparison of all messages by way of the next join.
 */
#ifndef MQ_CONSUME_OUTBOX_H
#define MQ_CONSUME_OUTBOX_H

#include <ev.h>

#include "base/id.h"
#include "counters.h"
#include "mq-consume/inbox/inbox.h"
#include "result.h"

struct outbox_events {
	/* Whether the connection is there. */
	bool (*online)(void *arg);
	/* A message came to its end, and is the receiver's to forget.
	 * confirmed: the server has carried its outcome out. */
	void (*settled)(void *arg, struct message *, bool confirmed);
	/* It did not: the queue that it was to be pushed to takes no such
	 * long message; a key holds something else, and it goes back. */
	void (*too_long)(void *arg, struct message *);
	void (*wrong_key)(void *arg);
	/* The server has refused something, which is tried again. */
	void (*refused)(void *arg, const char *error);
	/* A pause that a message asked for is sent; or done, or refused. */
	void (*pausing)(void *arg, int queue, bool begins);
	void (*paused)(void *arg, int queue);
	/* An answer has come. */
	void (*wake)(void *arg);
};

struct outbox {
	struct ev_loop *loop;
	const struct options *opt;
	struct mq_consumer *server;
	struct mq_idgen *ids;
	struct inbox *inbox;
	struct counters *counters;
	const struct result_rules *results;
	const struct outbox_events *events;
	void *arg;
	int settling;		 /* messages whose outcome is known */
	int in_flight;		 /* of these: sent, and not answered */
	struct messages waiting; /* acks that wait for each other */
	int waiting_count;
	int enough;		/* of them go out at once */
	int *waiting_of;	/* by queue */
	bool holding;		/* some may hold a key or a group */
	unsigned long sendings; /* so far */
	unsigned long moves;	/* answers so far */
	ev_timer timer;		/* for those that wait */
};

/* many: messages end many at a time. */
void outbox_init(struct outbox *, struct ev_loop *, const struct options *,
    struct mq_consumer *, struct mq_idgen *, struct inbox *, struct counters *,
    const struct result_rules *, bool many, const struct outbox_events *,
    void *arg);
void outbox_free(struct outbox *);

/* What is to become of a message that is in no other hands. */
void outbox_settle(struct outbox *, struct message *, enum mq_outcome);
/* Acks wait for no other one now. */
void outbox_flush(struct outbox *);
/* Whether acks wait; and whether the next of a group may wait for one. */
bool outbox_waits(const struct outbox *);
bool outbox_holds(const struct outbox *);
/* Sends what the server has not been told, or has not confirmed. */
void outbox_send_again(struct outbox *);

/* --- settlement.c --- */

/* The answer was lost, but the server does not have the message any more. */
void outbox_confirm(struct outbox *, struct message *);
/* The lease went: the outcome does not count, and why is said. */
void outbox_lose(struct outbox *, struct message *, const char *why);
/* Has nothing to do with a message any more that is settling. */
void outbox_forget(struct outbox *, struct message *);

/* How many messages are settling. */
int outbox_settling(const struct outbox *);
/* Whether some were refused, and wait for the next tick. */
bool outbox_refused(const struct outbox *);
/* Answers so far. */
unsigned long outbox_moves(const struct outbox *);

/* For outbox.c alone. */
void settlement_send(struct outbox *, struct message *);
void settlement_sent(struct outbox *, struct message *);
void settlement_answered(struct outbox *, struct message *,
    const struct mq_answer *, enum mq_settled);
/* Nothing has been done with it: sends it once more, alone. */
void settlement_again(struct outbox *, struct message *);

#endif
