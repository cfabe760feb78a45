/* A message that this consumer has claimed.  The server keeps it in our unacked list until
 * its settlement is confirmed.  Messages belong to the hand; see hand.h. */
#ifndef MQ_CONSUME_MESSAGE_H
#define MQ_CONSUME_MESSAGE_H

#include <sys/queue.h>

#include "options.h"
#include "queue/stats.h"

enum message_state {
	MESSAGE_UNSTARTED, /* claimed, and not started */
	MESSAGE_RUNNING,   /* the executor has it */
	MESSAGE_ENDED, /* its run is over; the engine has yet to hear of it */
	MESSAGE_SETTLING, /* the outbox has it, until the server answers */
	MESSAGE_SETTLED,  /* it has; the engine has yet to hear of it */
	MESSAGE_FORGOTTEN /* it is freed at the end of the turn */
};
#define MESSAGE_STATES MESSAGE_FORGOTTEN /* that count */

/* The lines in which settling messages wait to be sent. */
enum message_line {
	LINE_NONE,
	LINE_ACKS,  /* acks that wait for others */
	LINE_EQUAL, /* for equal ones */
	LINE_BACK,  /* of those that go back, also while in flight */
	LINE_AGAIN, /* to be sent once more: refused, or without an answer */
	MESSAGE_LINES
};

struct slot;

struct message {
	/* The message itself. */
	int queue; /* index into the options' queues */
	const char *queue_name;
	char *element; /* as claimed; free() */
	size_t len;
	struct mq_envelope envelope; /* from the start of its run on */
	char id[MQ_ID_MAX + 1];
	long attempts; /* runs before this one */
	bool awaited;  /* its publisher waits for the result */

	/* For the hand, which alone changes these. */
	enum message_state state;
	bool lost;  /* the lease is lost: its outcome does not count */
	bool gone;  /* somebody has deleted it: its outcome does not count */
	bool equal; /* another one of its queue has, or had, the same bytes */
	bool seen;  /* reconciling: the server has it as well */
	TAILQ_ENTRY(message) link; /* all, in the order of their claims */
	TAILQ_ENTRY(message) own;  /* those of its queue, in the same order */
	unsigned long number;	   /* of its claim */
	double since;		   /* steady time of its claim */
	LIST_ENTRY(message) equals;
	uint64_t hash;

	/* Its run; for the executor. */
	struct slot *slot; /* where it runs; NULL: nowhere, or printed */
	int slot_number;   /* from 1, of its last run */
	double ran_s;	   /* seconds of its last run */
	size_t start, end; /* its place in the input, or output */
	int keeper;	   /* of its attachments; 0: it has none */
	/* What an operator wants done when its run is ended; NONE: nothing. */
	enum mq_stop stop;

	/* Its outcome, as decided in verdict.c. */
	enum mq_outcome outcome;
	bool expired; /* rejected without a run */
	bool crashed; /* rejected, as the consumers of its runs have died */
	bool stopped; /* an operator has decided it */
	char *to;     /* where it is pushed; NULL: nowhere; free() */
	int64_t delay_ms;
	int64_t pause_ms;     /* pause of its queue; 0: none */
	struct mq_buf header; /* its new one; empty: unchanged */
	char *news;	      /* said when confirmed; NULL: nothing; free() */
	/* What others hear of it: kept under its id for so long, 0: not; and told to that
	 * queue, NULL: none; free(). */
	struct mq_buf result; /* as of result.h; empty: nobody hears */
	int64_t keep_ms;
	char *notified;

	/*
	 * Its settlement; for the outbox.  A settling message is
	 *
	 *	in flight, in no line		sent, and not answered yet
	 *	in LINE_ACKS, LINE_EQUAL	to be sent with, or behind, others
	 *	in LINE_BACK			the same; stays in line while in flight
	 *	in LINE_AGAIN			to be sent once more; if its answer was
	 *					lost, `sent` says that the server may
	 *					have settled it
	 */
	enum message_line in_line;
	TAILQ_ENTRY(message) line; /* by that; of a running one: by its slot */
	bool alone;		   /* its outcome is sent by itself */
	bool in_flight;		   /* sent, and not answered yet */
	bool sent; /* its outcome was sent, and may have taken effect */
};

TAILQ_HEAD(messages, message);

/* Replaces the news that are said when the outcome is confirmed. */
void message_note(struct message *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* mq_say() with "QUEUE: ID: " in front. */
void message_say(const struct message *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Its run is over: the keeper of its attachments removes the directory, and if the
 * message is done, too, forgets it. */
void message_let_go(struct message *, bool done);
/* Whether its header holds only its id.  Such a header is not parsed. */
bool message_is_stamped(const struct message *);
/* Appends the message, framed. */
void message_frame(const struct message *, enum mq_framing, struct mq_buf *);
/* Why the framing cannot carry the payload; NULL: it can. */
const char *message_unframable(const struct message *, enum mq_framing);

#endif
