/*
 * A message that this consumer has claimed: what all its modules know.
 *
 * A message is in exactly one state from its claim until its settlement is
 * confirmed, and the server keeps it in our unacked list all that time.
 */
#ifndef MQ_CONSUME_MESSAGE_H
#define MQ_CONSUME_MESSAGE_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "message/envelope.h"
#include "message/frame.h"
#include "message/headers.h"
#include "queue/queue.h"

enum message_state {
	MESSAGE_HELD,	 /* claimed, and not started: the inbox has it */
	MESSAGE_RUNNING, /* the executor has it */
	MESSAGE_SETTLING /* its outcome is known; the outbox has it until the
			  * server knows */
};

struct outbox;
struct slot;

struct message {
	/* What it is. */
	int queue; /* index into the options' queues */
	const char *queue_name;
	char *element; /* as claimed; free() */
	size_t len;
	struct mq_envelope envelope; /* from the start of its run on */
	char id[MQ_ID_MAX + 1];
	long attempts; /* runs before this one */

	/* How it stands. */
	enum message_state state;
	bool lost;    /* the lease went: its outcome does not count */
	bool gone;    /* somebody has deleted it: nor does it then */
	bool expired; /* it may not start any more: it never did */
	bool awaited; /* somebody waits for its end */

	/* What is to become of it. */
	enum mq_outcome outcome;
	int64_t delay_ms;
	int64_t pause_ms;     /* pause its queue for so long; 0: do not */
	struct mq_buf header; /* its new one; empty: unchanged */
	struct mq_buf result; /* as of result.h; empty: none yet */
	struct mq_buf news;   /* said when its outcome is confirmed; may be
			       * empty */

	/* The inbox's. */
	TAILQ_ENTRY(message) link; /* all, in the order of their claims */
	unsigned long number;	   /* of its claim */
	double since;		   /* steady time of that */
	bool seen;		   /* reconciling: the server has it, too */
	LIST_ENTRY(message) equals;
	uint64_t hash;
	bool equal; /* another one of its queue may have the same bytes */

	/* Of whoever has it: the inbox by queue, the executor by slot. */
	TAILQ_ENTRY(message) line;

	/* The executor's. */
	struct slot *slot; /* where it runs; NULL: nowhere, or printed */
	size_t start, end; /* its place in the input, or output */

	/* The outbox's. */
	struct outbox *outbox; /* that has sent it */
	TAILQ_ENTRY(message) waiting;
	bool waits;	    /* its ack waits for others */
	bool in_flight;	    /* sent, and not answered yet */
	unsigned long sent; /* number of its sending; 0: the server cannot
			     * know */
};

TAILQ_HEAD(messages, message);

/* What is said when its outcome is confirmed, in place of what was. */
void message_note(struct message *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* mq_say() with "QUEUE: ID: " in front. */
void message_say(const struct message *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends it, as the framing wants it. */
void message_frame(const struct message *, enum mq_framing, struct mq_buf *);
/* NULL, or why its payload cannot be told from what is behind it. */
const char *message_unframable(const struct message *, enum mq_framing);

#endif
