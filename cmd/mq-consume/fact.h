/* What modules tell the engine.  A module appends a fact and goes on; nothing of the engine
 * runs meanwhile.  The engine takes all facts at the beginning of its next turn, in the
 * order in which they were told: see engine/turn.c. */
#ifndef MQ_CONSUME_FACT_H
#define MQ_CONSUME_FACT_H

#include "message/verdict.h"
#include "mq-consume/message.h"

struct mq_held;

enum fact_kind {
	FACT_WAKE, /* there may be something to decide */

	/* Of the session. */
	FACT_UP,	 /* joined: commands may be sent */
	FACT_DOWN,	 /* the connection is lost: no more answers come */
	FACT_LEASE_LOST, /* others may get our messages, under a former name */
	FACT_LEASE_GONE, /* the server has lost the lease; nothing was done yet */
	FACT_RULES,	 /* those of a queue have changed */
	FACT_ENTER, /* joining: the lease is there, and the rules of all queues were
			    * told: session_enter() goes on */
	FACT_ALL_PAUSED, /* whether all queues are (yes) */
	FACT_HOLDINGS, /* what the server holds for us, held, of the queue; yes: while
			    * joining, when no message moves; else n: hand_moves() then */
	FACT_CHANGED, /* a key of the queue; status: enum mq_key.  Queue -1: a key
			    * of all queues; yes: any key */
	FACT_CALLED,	  /* another consumer leaves the queue to us */
	FACT_STOP_WANTED, /* an operator wants a run of the queue stopped */
	FACT_TICK,	  /* once a second */
	FACT_LEFT,	  /* the session has left, or cannot */
	FACT_FAILED,	  /* a final error, which has been said: status */

	/* Of the inbox. */
	FACT_CLAIMED, /* without an error: status messages, or MQ_CLAIM_... */
	FACT_CLAIM_REFUSED, /* text, status; yes: no claim was ever answered */
	FACT_PAUSED,	    /* the queue is: its unstarted messages go back */

	/* Of the outbox. */
	FACT_SETTLED, /* the message has ended, and is the engine's to forget; yes:
			  * the server has carried out the outcome */
	FACT_TOO_LONG, /* the message cannot be pushed: text; it has no outcome */
	FACT_NO_ROOM,	/* a settlement waits for room at the server: text */
	FACT_PAUSE_SET, /* a pause of ours of the queue has begun */

	/* Of the executor. */
	FACT_RAN,   /* a run that began with a message of the queue: seconds */
	FACT_ENDED, /* the message has an end, in a run or printed */
	FACT_BROKEN_OFF, /* the same; but the message went back */
	FACT_GIVE_BACK,	 /* held messages are better given back */
	FACT_UNREAD, /* nobody reads our standard output, which would explain why a
			  * run has failed */

	/* Of the duplicates. */
	FACT_ANSWERED, /* to the requests of slot n; yes: the last one that the slot
			* waits for; else it may ask for more */

	/* Of the policy. */
	FACT_STOP,	  /* the level has risen; yes: by a signal */
	FACT_GIVE_UP,	  /* the last grace time is over */
	FACT_REOPEN_LOGS, /* log files are to be opened anew */
	FACT_SUSPEND,	  /* the terminal wants us stopped */
	FACT_IDLE,	  /* nothing has happened for --idle */
	FACT_SIGNAL,	  /* all commands are to get this one: status */

	/* Of jobs. */
	FACT_DRAINED, /* the queues are empty, everywhere */
	FACT_COUNTED, /* n messages can be claimed */

	/* Of the engine's own questions. */
	FACT_EXISTS, /* message number n is elsewhere; or (not yes) nowhere */
	FACT_STOP_REQUEST, /* for a run of the queue: text */

	/* Of several. */
	FACT_COMPLAINT, /* an error of the server that may pass: text */
	FACT_MUST_END,	/* it has been said why: status */
};

/* How a run has ended, for the message. */
struct ending {
	struct mq_verdict verdict;
	char *errors; /* the end of the stderr of its run; free() */
	bool broken;  /* so many commands ended so that it is not the message */
};

/* What is pointed to belongs to the fact, but for the message. */
struct fact {
	enum fact_kind kind;
	int queue, status;
	bool yes;
	long long n;
	double seconds;
	/* If it is forgotten before the fact is taken, the fact is about nobody. */
	struct message *message;
	struct ending
	    *ending; /* NULL: done, and there is nothing to say of it */
	char *text;
	struct mq_held *holdings; /* with elements of its own */
};

struct facts;

struct facts *facts_new(void);
void facts_free(struct facts *);

/* Appends a copy.  A message that is asked twice to wake the engine wakes it once. */
void fact_tell(struct facts *, const struct fact *);
/* Takes the oldest one.  False: there is none. */
bool fact_take(struct facts *, struct fact *);
/* Whether there is none. */
bool facts_empty(const struct facts *);
/* Frees what belongs to one. */
void fact_free(struct fact *);
/* For FACT_HOLDINGS: what is in an answer, whose elements it takes. */
struct mq_held *fact_holdings(struct mq_held *);

/* A module, which has a member facts, tells one: its kind, and the members that count, each
 * as `.member = value`. */
#define tell(module, ...)                                                      \
	fact_tell((module)->facts, &(struct fact){.kind = __VA_ARGS__})

#endif
