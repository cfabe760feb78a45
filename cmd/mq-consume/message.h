/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* A message that this consumer has claimed.  The server keeps it in our unacked list until
 * its settlement is confirmed.  Messages belong to the hand; see hand.h. */
#ifndef MQ_CONSUME_MESSAGE_H
#define MQ_CONSUME_MESSAGE_H

#include <sys/queue.h>

#include "options.h"
#include "queue/stats.h"

enum message_state {
	MESSAGE_UNSTARTED, /* claimed only */
	MESSAGE_RUNNING,   /* at the executor */
	MESSAGE_ENDED,	   /* run over; the engine has yet to hear of it */
	MESSAGE_SETTLING,  /* at the outbox, until the server answers */
	MESSAGE_SETTLED,   /* answered; the engine has yet to hear of it */
	MESSAGE_FORGOTTEN  /* freed at the end of the turn */
};
#define MESSAGE_STATES MESSAGE_FORGOTTEN /* states that are counted */

/* The lines in which settling messages wait to be sent. */
enum message_line {
	LINE_NONE,
	LINE_ACKS,  /* acks that wait to be sent with others */
	LINE_EQUAL, /* messages that wait for equal ones to be settled */
	LINE_BACK,  /* messages that go back, also while in flight */
	LINE_AGAIN, /* to be sent once more: refused, or without an answer */
	MESSAGE_LINES
};

struct slot;

struct message {
	int queue; /* index into the options' queues */
	const char *queue_name;
	char *element; /* as claimed; free() */
	size_t len;
	struct mq_envelope envelope; /* set when a run starts */
	char id[MQ_ID_MAX + 1];
	long attempts; /* runs before this one */
	bool awaited;  /* the publisher waits for the result */

	/* The hand: no other module changes these. */
	enum message_state state;
	bool lost;  /* lease lost: the outcome does not count */
	bool gone;  /* deleted by somebody: the outcome does not count */
	bool equal; /* another message has, or had, the same bytes, and the
		     * server cannot tell them apart */
	bool seen;  /* reconciling: the server has it as well */
	TAILQ_ENTRY(message) link; /* among all, in the order of claims */
	TAILQ_ENTRY(message) own;  /* in the queue, in the order of claims */
	unsigned long number;	   /* counts claimed messages, from 1 */
	double since;		   /* steady time of the claim */
	LIST_ENTRY(message) equals;
	uint64_t hash;

	/* The executor: the run, or the last one. */
	struct slot *slot; /* NULL: not running, or printed */
	int slot_number;   /* from 1 */
	double ran_s;	   /* seconds */
	size_t start, end; /* bytes, in a worker's input or in the output */
	int cleanup_fd; /* attachments: pipe to the cleanup process; 0: none */
	/* The wish of an operator who stopped the run; MQ_STOP_NONE: not stopped. */
	enum mq_stop stop;

	/* The outcome, as decided in verdict.c. */
	enum mq_outcome outcome;
	bool expired; /* rejected without a run */
	bool crashed; /* rejected, as the consumers of its runs have died */
	bool stopped; /* decided by an operator */
	bool passed;  /* pushed without a run, as its header says */
	char *to;     /* queue for a push; NULL: not pushed; free() */
	int64_t delay_ms;
	int64_t pause_ms;     /* pause of the queue; 0: none */
	struct mq_buf header; /* replaces the old one; empty: unchanged */
	char *news;	      /* said when confirmed; NULL: nothing; free() */
	struct mq_buf result; /* as of result.h; empty: nobody asks for it */
	int64_t keep_ms; /* lifetime of the result, by its id; 0: not kept */
	char *notified;	 /* queue that gets the result; NULL: none; free() */

	/*
	 * The outbox: the settlement.  A settling message is
	 *
	 *	in flight, in no line		sent, and not answered yet
	 *	in LINE_ACKS, LINE_EQUAL	to be sent with, or behind, others
	 *	in LINE_BACK			the same; stays in line while in flight
	 *	in LINE_AGAIN			to be sent once more; if its answer was
	 *					lost, `sent` says that the server may
	 *					have settled it
	 */
	enum message_line in_line;
	TAILQ_ENTRY(message) line; /* the list of `in_line`, or of the slot */
	bool alone;		   /* the settlement is sent by itself */
	bool in_flight; /* the settlement is sent, and not answered */
	bool sent;	/* the settlement was sent, and may have taken effect */
};

TAILQ_HEAD(messages, message);

/* Replaces the news that are said when the outcome is confirmed. */
void message_note(struct message *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* mq_say() with "QUEUE: ID: " in front. */
void message_say(const struct message *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* After a run: the helper removes the directory of the attachments; if the message is done,
 * the server forgets them, too. */
void message_let_go(struct message *, bool done);
/* The limits of its runs: those of its queue, unless its own are lower.  Seconds; 0: none. */
long message_attempts(const struct options *, const struct message *);
double message_timeout(const struct options *, const struct message *);
/* Whether the header holds only an id.  Such a header is not parsed. */
bool message_is_stamped(const struct message *);
/* Appends the message, framed. */
void message_frame(const struct message *, enum mq_framing, struct mq_buf *);
/* Why the framing cannot carry the payload; NULL: it can. */
const char *message_unframable(const struct message *, enum mq_framing);

#endif
