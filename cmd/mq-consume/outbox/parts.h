/* What the files of this folder share. */
#ifndef OUTBOX_PARTS_H
#define OUTBOX_PARTS_H

#include "base/timer.h"
#include "outbox.h"
#include "redis/server.h"

struct outbox_queue {
	struct outbox *outbox;
	struct messages back;  /* go back, the newest first */
	struct messages equal; /* wait for equal ones */
	int acks;	       /* that wait for others */
	int in_flight;	       /* messages that were sent, without an answer */
	int pausing;	       /* pauses of ours, without an answer */
	/* A settlement that was sent may make one of its messages ready: when the settled
	 * one was claimed, steady time; 0: none. */
	double led;
	STAILQ_ENTRY(outbox_queue) leading;

	struct mq_counts counts; /* not sent yet */
	double run_ms;		 /* below 1: the rest of counts.run_ms */
	long long pushed;	 /* not counted at their new queue yet */
	char *to;		 /* where the last of those went; free() */
};

/* Bytes of messages that one command settles together, if it must read them. */
#define BATCH_BYTES ((size_t)1 << 20)

/* Messages that are settled by one command. */
struct batch {
	struct outbox *outbox;
	bool oldest; /* acks of the oldest ones of a queue */
	bool plain;  /* acks of messages that hold neither key nor group */
	bool again; /* one of its messages was sent before, without an answer */
	size_t bytes;  /* of them */
	size_t copied; /* bytes that the server copies for it, about */
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
	const struct batch *sending; /* while its command is being sent */
	int in_line[MESSAGE_LINES];  /* counts of all queues */
	struct messages acks;	     /* wait for others */
	struct messages again;	     /* wait for the next tick, or join */
	STAILQ_HEAD(leading_queues, outbox_queue) leading;
	size_t copying; /* bytes that those in flight copy, about */

	int enough;   /* acks to be sent at the end of a turn */
	bool holding; /* one of the waiting acks may hold a key or a group */
	bool due;     /* the acks have waited long enough */
	struct mq_timer timer; /* until they have */
	bool giving_back;      /* a command that does is in flight */

	struct mq_counts sent; /* of all queues */
	long returned;	       /* unstarted */
	bool refused;	       /* counts were */
	struct mq_buf runs;    /* the last report of long ones */
	bool reported;	       /* the server has confirmed it, or will */
};

/* --- acks.c --------------------------------------------------------------- */

/* Adds the acks of a queue that wait to a batch, which has room for `most`, as far as they can
 * go together; unless all, only as far as few other messages are between them.  Sets all
 * but elements and unique id of acks; places: memory for `most` of them. */
void acks_collect(struct batch *, int queue, bool all, struct mq_acks *acks,
    int *places, int most);

/* --- reports.c ------------------------------------------------------------ */

/* The server has confirmed the outcome. */
void counters_settled(struct outbox *, const struct message *);
/* Whether anybody hears how the message has ended. */
bool result_is_heard(const struct message *);
/* Says how a message is settled, but for a result and a notice; for as long as it stays. */
void settlement_describe(
    struct outbox *, const struct message *, struct mq_settlement *);
/* Adds to a settlement what others hear of it, if anything: the result, whose text is the
 * message's, and the notice, which the caller has zeroed and whose element the caller
 * frees. */
void result_add(struct outbox *, const struct message *, struct mq_settlement *,
    struct mq_result *, struct mq_notice *);

#endif
