/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* For files of this folder. */
#ifndef OUTBOX_PARTS_H
#define OUTBOX_PARTS_H

#include "base/timer.h"
#include "outbox.h"
#include "redis/server.h"

struct outbox_queue {
	struct outbox *outbox;
	struct messages back;  /* in LINE_BACK, the newest first */
	struct messages equal; /* in LINE_EQUAL */
	int acks;	       /* messages in LINE_ACKS */
	int in_flight;	       /* settlements without an answer */
	int pausing;	       /* pauses of ours without an answer */
	char *
	    group; /* group of the last ack that went alone and had one; free() */
	/* A settlement on its way may make a message of the queue ready: steady time of the
	 * settled message's claim; 0: none. */
	double settled_since;
	STAILQ_ENTRY(outbox_queue) ready;

	struct mq_counts counts; /* not sent yet */
	double run_ms;		 /* below 1: added to counts.run_ms later */
	long long pushed;	 /* messages not counted at `to` yet */
	char *to;		 /* queue of the last push; free() */
};

/* Bytes of messages that one command settles together, if the server must read them. */
#define BATCH_BYTES ((size_t)1 << 20)

/* Messages that are settled by one command. */
struct batch {
	struct outbox *outbox;
	bool oldest;   /* acks of the oldest messages of a queue */
	bool plain;    /* acks of messages that hold neither key nor group */
	bool next;     /* the answer may bring the next message of the group */
	bool again;    /* some message was sent before, without an answer */
	size_t bytes;  /* elements of the messages */
	size_t copied; /* bytes that the server copies, about */
	int n;
	struct message *m[];
};

struct outbox {
	const struct options *opt;
	struct hand *hand;
	struct facts *facts;
	struct mq_consumer *consumer;
	struct mq_server *server;
	struct mq_idgen *ids;
	bool many; /* messages end many at a time */

	struct outbox_queue *queues;
	bool up;
	const struct batch *sending; /* the batch being sent just now */
	int in_line[MESSAGE_LINES];  /* messages of all queues */
	struct messages acks;	     /* in LINE_ACKS */
	struct messages again; /* in LINE_AGAIN: until the next tick, or join */
	STAILQ_HEAD(ready_queues, outbox_queue) ready;
	size_t copying; /* bytes that the server copies in flight, about */

	int enough;	       /* acks to be sent at the end of a turn */
	bool holding;	       /* a waiting ack may hold a key or a group */
	bool due;	       /* the acks have waited long enough */
	struct mq_timer timer; /* until the acks are due */
	bool giving_back;      /* an answer to send_newest() is missing */
	bool may_bring;	       /* an ack sent just now may bring a message */
	bool brings;	       /* the answer to such an ack is missing */

	struct mq_counts sent; /* counts of all queues */
	long returned;	       /* messages returned unstarted */
	bool refused;	       /* the server refuses counts */
	struct mq_buf runs;    /* the last report of long runs */
	bool reported;	       /* the server has, or will have, that report */
};

/* --- acks.c --------------------------------------------------------------- */

/* Adds acks of a queue that can go together to a batch with room for `most` messages; unless all,
 * only as far as few other messages are between the acks.  Sets all of *acks but elements and
 * unique; places: memory for `most` places. */
void acks_collect(struct batch *, int queue, bool all, struct mq_acks *acks,
    int *places, int most);
/* --- next.c --------------------------------------------------------------- */

/* A settlement is on its way: notes the queues in which a message may become ready. */
void next_sent(struct outbox *, const struct message *);
/* Whether a settlement that is about to go alone is an ack whose answer may bring the next message
 * of its group. */
bool next_allowed(struct outbox *, const struct message *);
/* Takes the message that the answer to such an ack has brought. */
void next_answered(const struct batch *, const struct mq_answer *);

/* --- reports.c ------------------------------------------------------------ */

/* The server has confirmed the outcome. */
void counters_settled(struct outbox *, const struct message *);
/* Whether the message's result is kept or announced. */
bool result_is_wanted(const struct message *);
/* Describes how a message is settled, without a result or a notice; valid while the message is. */
void settlement_describe(
    struct outbox *, const struct message *, struct mq_settlement *);
/* Bytes that the server copies for a settlement, about.  If the end of a message makes the next of
 * its group ready, that one may be as long. */
size_t settlement_copies(const struct message *);
/* If the result is wanted, adds to the settlement: *result, whose text is the message's, or
 * *notice, which the caller has zeroed, and whose element the caller frees; or both. */
void result_add(struct outbox *, const struct message *, struct mq_settlement *,
    struct mq_result *, struct mq_notice *);

#endif
