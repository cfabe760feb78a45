/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Messages by receipt: taken under a lease that outlives the taker's process, and settled
 * later with the receipt.  A receipt is one word: the name of the connection that holds the
 * message, a dot, and a number.
 *
 * All functions wait for the server.  An int is -1 after an error, which struct
 * mq_redis has.
 */
#ifndef MQ_LEASE_H
#define MQ_LEASE_H

#include "queue.h"

#define MQ_LEASE_MAX 1000 /* most messages in one call */
#define MQ_LEASE_TAG 64	  /* longest tag */
/* Size of a connection's name: the tag, '-', six characters, NUL. */
#define MQ_LEASE_NAME (MQ_LEASE_TAG + 8)

/* A message that was taken. */
struct mq_leased {
	char *receipt; /* NULL: rejected, or gone on to another queue */
	char why[MQ_UNFIT_MAX]; /* reason of the rejection; empty: none */
	char id[MQ_ID_MAX + 1]; /* empty: none */
	struct mq_envelope envelope;
	const char *element; /* as the server has it */
	size_t len;
};

/* Starts zeroed except the caller's members; must not be moved once messages were taken. */
struct mq_lease {
	/* Set by the caller, who owns the pointers. */
	struct mq_redis *redis;
	const struct mq_layout *layout;
	const char *queue; /* full name */
	int64_t keep_ms;   /* life of results; 0: only if they are wanted */
	int64_t ms;	   /* length of the lease, above 0 */
	/* For mq_lease_take(): */
	const char *tag; /* first part of the connection's name */
	int attempts;	 /* most runs of a message; -1: as settings say */
	int max;	 /* messages, 1 to MQ_LEASE_MAX; about 1 MB */
	bool make;	 /* make the queue if it does not exist */
	/* Set by the module. */
	struct mq_session session; /* with a single queue */
	struct mq_idgen ids;
	char connection[MQ_LEASE_NAME];
	bool joined;	   /* this connection has a lease, maybe over */
	bool empty;	   /* the last call took no message */
	redisReply *reply; /* memory of the elements */
	struct mq_leased *messages;
	int count;
};

/* Takes up to max messages that are ready, and returns their number; *messages has them in
 * their order, in memory of the lease that is valid until its next call.  May be called
 * again only if no message had a receipt.  MQ_CLAIM_LOST: the lease was over before any was
 * taken. */
int mq_lease_take(struct mq_lease *, const struct mq_leased **messages);
/* Frees the memory.  With undo, first returns messages with a receipt to the front of the
 * queue, as if never taken, and ends the lease. */
int mq_lease_free(struct mq_lease *, bool undo);

/* The uses of a receipt. */
enum mq_receipt_act {
	MQ_RECEIPT_ACK,
	MQ_RECEIPT_REJECT,
	MQ_RECEIPT_RETURN, /* to the front of the queue; no attempt is counted */
	MQ_RECEIPT_EXTEND  /* the lease of all messages taken together */
};

/* A message, and the connection that holds it.  Starts zeroed. */
struct mq_receipt {
	char *connection; /* NULL: none */
	struct mq_buf element;
};

/* The number in a receipt, behind its last dot; NULL: the word is no receipt. */
const char *mq_receipt_number(const char *word);
/* Uses a receipt: 1; 0: the message is settled or its lease over, and nothing has changed.
 * With MQ_HAS_IDS, the word may be the id of a message that was not handed out by receipt.
 * text: the result of an ack, the reason of a rejection; or NULL. */
int mq_receipt_use(
    struct mq_lease *, const char *word, enum mq_receipt_act, const char *text);

#endif
