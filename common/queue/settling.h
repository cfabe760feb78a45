/*
 * How the stay of a message in our hands ends.
 */
#ifndef MQ_SETTLING_H
#define MQ_SETTLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "redis/command.h"

/* The result of a message, for those who wait for its end. */
struct mq_result {
	const char *id;	  /* of the message, or what its Mq-Reply-To says */
	const char *text; /* as of result.h */
	size_t len;
	int64_t keep_ms; /* how long it can be read, above 0 */
};

/* A message for a queue that hears of each end. */
struct mq_notice {
	const char *queue;	    /* never that of the message that ends */
	char unique[MQ_ID_LEN + 1]; /* its id */
	struct mq_buf element;
};

/* The outcome of a claimed message. */
enum mq_outcome {
	MQ_OUTCOME_ACK,	   /* done: it is gone */
	MQ_OUTCOME_REJECT, /* to the rejected ones */
	MQ_OUTCOME_FRONT,  /* back, to be the next one */
	MQ_OUTCOME_AGAIN,  /* back, at the end of the line, after a delay */
	MQ_OUTCOME_PUSH	   /* to the queue `push` */
};

/* How to settle one message. */
struct mq_settlement {
	enum mq_outcome outcome;
	const char *element; /* as it was claimed, byte for byte */
	size_t len;
	/* The new header, which replaces the element's first payload_at bytes;
	 * NULL: unchanged. */
	const char *header;
	size_t header_len, payload_at;
	int64_t delay_ms;	    /* AGAIN only */
	char unique[MQ_ID_LEN + 1]; /* AGAIN, PUSH: a new id */
	bool unrun;		    /* REJECT: it was too late to run it */
	const char *push;	    /* PUSH only */
	/* ACK: its header asks for more than a place in line, so that there may
	 * be something to let go of.  (The others find out for themselves.) */
	bool holds;
	const char *receipt; /* its number, of a session that handed out by
			      * receipt: LOST when its lease is over; or NULL */
	const struct mq_result *result; /* NULL: none */
	const struct mq_notice
	    *notice; /* NULL: none; never with FRONT or AGAIN */
};

/* The result of a settlement. */
enum mq_settled {
	MQ_SETTLED,
	MQ_SETTLED_LOST,    /* nothing: somebody else has the message by now */
	MQ_SETTLED_GONE,    /* nothing: there is no such message any more */
	MQ_SETTLED_TOO_LONG /* PUSH: nothing, it is longer than the maxsize of
			     * the other queue; it is still ours */
};

/* Messages of one queue that have ended, the oldest first.  Places are counted
 * from the oldest that the server holds for us, which has place 1. */
struct mq_acks {
	const struct mq_part *elements;
	const int *places;
	int n;
	struct mq_part oldest; /* the element at place 1 */
	size_t others_len; /* bytes of those between them that have not ended */
	bool holds;	   /* some may hold a key or a group */
	char unique[MQ_ID_LEN + 1]; /* no element is equal to it */
};

/* Messages of one queue to be given back, the newest first. */
struct mq_newest {
	const struct mq_part *elements;
	int n;
	bool each; /* their order, or others equal to them, may deceive about
		    * what is between the first and the last */
};

#endif
