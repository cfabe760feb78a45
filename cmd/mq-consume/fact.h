/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Facts: modules tell the engine.  A module appends a fact and goes on; nothing of the engine
 * runs meanwhile.  The engine takes all facts at the beginning of its next turn, in the order
 * in which they were told: see engine/turn.c. */
#ifndef MQ_CONSUME_FACT_H
#define MQ_CONSUME_FACT_H

#include "message/verdict.h"
#include "mq-consume/message.h"

struct mq_held;

enum fact_kind {
	FACT_WAKE, /* there may be something to decide */

	/* The session's. */
	FACT_UP,	 /* joined: commands may be sent */
	FACT_DOWN,	 /* connection lost: no more answers come */
	FACT_LEASE_LOST, /* messages of the former name may go to others */
	FACT_LEASE_GONE, /* the server has lost the lease; nothing was done yet */
	FACT_RULES,	 /* the rules of a queue have changed */
	FACT_ENTER, /* joining: the lease is taken, and the rules of all queues are
			   * known; session_enter() goes on */
	FACT_ALL_PAUSED, /* yes: all queues are paused */
	FACT_HOLDINGS, /* holdings: messages of the queue that the server holds for us.
			   * yes: joining, no message moves; else n: hand_moves() of
			   * when the answer came */
	FACT_CHANGED, /* a key of the queue has changed; status: enum mq_key.  Queue
			   * -1: a key of all queues; yes: any key */
	FACT_CALLED,	  /* another consumer leaves the queue to us */
	FACT_STOP_WANTED, /* an operator wants a run of the queue stopped */
	FACT_TICK,	  /* once a second */
	FACT_LEFT,	  /* the session has left, or cannot */
	FACT_FAILED,	  /* a final error, already said; status */

	/* The inbox's. */
	FACT_CLAIMED,	    /* no error; status: messages, or MQ_CLAIM_... */
	FACT_CLAIM_REFUSED, /* text, status; yes: no claim was ever answered */
	FACT_PAUSED, /* the queue is paused: its unstarted messages go back */

	/* The outbox's. */
	FACT_SETTLED, /* the message is the engine's to forget; yes: the server has
			 * carried out the outcome */
	FACT_TOO_LONG, /* the message cannot be pushed, and has no outcome; text */
	FACT_NO_ROOM,	/* a settlement waits for room at the server; text */
	FACT_BROUGHT,	/* an ack has brought the next message of its group */
	FACT_PAUSE_SET, /* a pause of the queue, asked for here, has begun */

	/* The executor's. */
	FACT_RAN, /* a run is over, whose first message was of the queue; seconds */
	FACT_ENDED, /* the run of the message is over, or the message is printed */
	FACT_BROKEN_OFF, /* the run of the message is over; the message went back */
	FACT_GIVE_BACK, /* unstarted messages are better given back */
	FACT_UNREAD, /* standard output is closed at the other end, which would
			  * explain why a run has failed */

	/* The duplicates'. */
	FACT_ANSWERED, /* slot n may read more requests; yes: no request of the slot is
			* pending any more */

	/* The policy's. */
	FACT_STOP,	  /* the stop level has risen; yes: by a signal */
	FACT_GIVE_UP,	  /* the last grace time is over */
	FACT_REOPEN_LOGS, /* log files are to be opened anew */
	FACT_SUSPEND,	  /* the terminal wants this process stopped */
	FACT_IDLE,	  /* nothing has happened for --idle */
	FACT_SIGNAL,	  /* all commands are to get signal `status` */

	/* The jobs'. */
	FACT_DRAINED, /* the queues are empty, everywhere */
	FACT_COUNTED, /* n messages can be claimed */

	/* Answers to the engine's own questions. */
	FACT_EXISTS, /* yes: message number n is elsewhere; else nowhere */
	FACT_STOP_REQUEST, /* an operator's request for a run of the queue; text */

	/* Told by several modules. */
	FACT_COMPLAINT, /* an error of the server that may pass; text */
	FACT_MUST_END, /* the consumer cannot go on, which is already said; status */
};

/* How a run has ended, for the message. */
struct ending {
	struct mq_verdict verdict;
	char *errors; /* end of the run's stderr; free() */
	struct run_result
	    *result; /* see process.h; run_result_free(); NULL: none */
	bool broken; /* commands fail in a row: the command is to blame, not the
		       * message */
};

/* A fact owns everything that it points to, except the message. */
struct fact {
	enum fact_kind kind;
	int queue, status;
	bool yes;
	long long n;
	double seconds;
	/* If the message is forgotten before the fact is taken, the fact is dropped. */
	struct message *message;
	struct ending *ending; /* NULL: done, with nothing to say */
	char *text;
	struct mq_held *holdings;
};

struct facts;

struct facts *facts_new(void);
void facts_free(struct facts *);

/* Appends a copy.  Several FACT_WAKE in one turn wake the engine once. */
void fact_tell(struct facts *, const struct fact *);
/* Takes the oldest fact; FACT_WAKE comes last.  Returns whether there was a fact. */
bool fact_take(struct facts *, struct fact *);
bool facts_empty(const struct facts *);
void fact_free(struct fact *);
/* Copies the holdings of an answer for FACT_HOLDINGS, and takes the data of its elements. */
struct mq_held *fact_holdings(struct mq_held *);

/* A module with a member `facts` tells a fact: its kind, then `.member = value`, ... */
#define tell(module, ...)                                                      \
	fact_tell((module)->facts, &(struct fact){.kind = __VA_ARGS__})

#endif
