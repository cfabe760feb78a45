/*
 * Messages by receipt: taken under a lease that goes on without its taker, and
 * settled later by whoever has the receipt.  A receipt is one word: the name of
 * the connection that holds the message, a dot, and a number.
 *
 * All functions wait for the server.  An int is -1 after an error, which struct
 * mq_redis has.
 */
#ifndef MQ_LEASE_H
#define MQ_LEASE_H

#include "queue.h"

/* The most messages that are taken at once. */
#define MQ_LEASE_MAX 1000
/* The longest tag, and the size of a connection's name: the tag, '-', six
 * characters, NUL. */
#define MQ_LEASE_TAG  64
#define MQ_LEASE_NAME (MQ_LEASE_TAG + 8)

/* A message that was taken. */
struct mq_leased {
	char *receipt;		/* NULL: it is bad or late, and was rejected */
	char why[64];		/* the reason of that */
	char id[MQ_ID_MAX + 1]; /* empty: it has none */
	struct mq_envelope envelope;
	const char *element; /* as the server has it */
	size_t len;
};

/* Starts zeroed but for what is the caller's, and may not be moved once messages were
 * taken. */
struct mq_lease {
	/* The caller's, as are the pointers. */
	struct mq_redis *redis;
	const struct mq_layout *layout;
	const char *queue; /* as the layout knows it */
	int64_t keep_ms;   /* of results; 0: only if somebody waits for them */
	int64_t
	    ms; /* how long the lease holds, above 0; to take and to extend */
	/* To take. */
	const char *tag; /* first part of the connection's name */
	int attempts;	 /* runs that a message may have; -1: as settings say */
	int max;	 /* messages, 1 to MQ_LEASE_MAX; about 1 MB of them */
	bool make;	 /* make the queue if it does not exist */
	/* The module's. */
	struct mq_session session; /* of one queue */
	struct mq_idgen ids;
	char connection[MQ_LEASE_NAME];
	bool joined; /* under this name, and its lease was not found over */
	bool empty;  /* there was nothing the last time */
	redisReply *reply; /* has the elements of the messages */
	struct mq_leased *messages;
	int count;
};

/* Takes the messages that are there, up to max.  Returns their number; *messages has them
 * in their order, which is the lease's and valid until its next call.  May be called again
 * only if no message had a receipt.  MQ_CLAIM_LOST: the lease was over before any could be
 * taken. */
int mq_lease_take(struct mq_lease *, const struct mq_leased **messages);
/* Undo: returns all that have a receipt to the front of the queue, as if they had never
 * been taken, and ends the lease. */
int mq_lease_free(struct mq_lease *, bool undo);

/* The uses of a receipt. */
enum mq_receipt_act {
	MQ_RECEIPT_ACK,
	MQ_RECEIPT_REJECT,
	MQ_RECEIPT_RETURN, /* to the front of the queue; no attempt is counted */
	MQ_RECEIPT_EXTEND  /* the lease of all messages taken with this one */
};

/* A message that was handed out, and to whom.  Starts zeroed. */
struct mq_receipt {
	char *connection; /* NULL: nobody holds it */
	struct mq_buf element;
};

/* The number in a receipt, behind its last dot; NULL: the word has not the form of one. */
const char *mq_receipt_number(const char *word);
/* Uses a receipt: 1; or changes nothing: 0, the message is settled or its lease is over.
 * With MQ_HAS_IDS, the word may be the id of a message that is not handed out by receipt.
 * text is the result of an ack, the reason of a rejection; NULL: none. */
int mq_receipt_use(
    struct mq_lease *, const char *word, enum mq_receipt_act, const char *text);

#endif
