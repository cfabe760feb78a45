/* What modules tell the engine: facts, one at a time, as they happen.  The engine's
 * switches in facts.c say what follows from each. */
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
	FACT_LEASE_LOST, /* others may get our messages */
	FACT_RULES, /* those of a queue have changed; before the session says
		       * anything of itself while joining, too */
	FACT_ALL_PAUSED, /* whether all queues are (yes) */
	FACT_HELD, /* joining: what the server holds for us, held, of the queue */
	FACT_CHANGED, /* a key that a claim has read, text of n bytes; NULL: any */
	FACT_CALLED, /* another consumer leaves the queue of this key to us */
	FACT_TICK,   /* once a second; yes: the session is up */
	FACT_LEFT,   /* the session has left, or cannot */
	FACT_FAILED, /* a final error, which has been said: status */

	/* Of the inbox. */
	FACT_CLAIMED, /* without an error: status messages, or MQ_CLAIM_... */
	FACT_CLAIM_REFUSED, /* text, status; yes: no claim was ever answered */
	FACT_QUEUE_PAUSED,  /* found so: its unstarted messages go back */
	FACT_CAREFUL, /* the next message has failed before; yes: it may crash
			      * this consumer */
	FACT_UNFIT, /* the message is rejected, and is the engine's now: unfit,
		       * text; of slots and outbox, too */

	/* Of the outbox. */
	FACT_SETTLED, /* the message has ended, and is the engine's to forget; yes:
			 * the server has carried out the outcome */
	FACT_WRONG_KEY, /* a key holds something else than messages */
	FACT_REFUSED,	/* a settlement, which is sent again: text */
	FACT_NO_ROOM,	/* the same, before it was sent */

	/* Of slots and printer. */
	FACT_ENDED, /* the message has a verdict; text: the end of its stderr */
	FACT_BROKEN_OFF, /* the same, but the message is about to go back */
	FACT_DONE,	 /* the message was printed */
	FACT_RETURNED, /* the message goes back to the inbox, as if not started */
	FACT_GIVE_BACK, /* held messages are better given back; yes: before the next
			  * one starts, which may crash this consumer */

	/* Of the policy. */
	FACT_STOP,	  /* the level has risen; yes: by a signal */
	FACT_GIVE_UP,	  /* the last grace time is over */
	FACT_REOPEN_LOGS, /* log files are to be opened anew */
	FACT_IDLE,	  /* nothing has happened for --idle */
	FACT_SIGNAL,	  /* all commands are to get this one: status */

	/* Of errands. */
	FACT_DRAINED, /* the queues are empty, everywhere */
	FACT_COUNTED, /* n messages can be claimed */
	FACT_NO_PLACE, /* none for an errand, which has been said: not to be waited for */
};

/* Why a message is rejected without a verdict. */
enum unfit {
	UNFIT_HEADER,  /* unreadable */
	UNFIT_RUN,     /* no run can take it; or it is too long to be pushed */
	UNFIT_EXPIRED, /* its time, or its last tick, is over */
	UNFIT_SPENT,   /* its attempts are; without a text */
	UNFIT_CRASHED /* the same, as the consumer of its last run died; without a text */
};

/* Whatever is pointed to is valid until tell() is done. */
struct fact {
	enum fact_kind kind;
	int queue, status;
	bool yes;
	size_t n;
	struct message *message;
	const struct mq_verdict *verdict;
	const char *text;
	enum unfit unfit;
	struct mq_held *held;
};

typedef void fact_fn(void *arg, const struct fact *);

/* A module, which has the members hear and arg, tells a fact: its kind, and the other
 * members that count, each as `.member = value`. */
#define tell(module, ...)                                                      \
	(module)->hear((module)->arg, &(struct fact){.kind = __VA_ARGS__})

#endif
