/*
 * What goes out when runs have ended: settlements, and what others hear of them.
 *
 * The outbox settles messages at the server.  After an error, a settlement is sent again
 * on the next tick; after a lost connection, once the next join has compared all
 * messages.  The outbox never decides an outcome, but for a wrong key, and never frees a
 * message.
 */
#ifndef OUTBOX_H
#define OUTBOX_H

#include "mq-consume/inbox/inbox.h"

struct outbox_queue {
	struct outbox *outbox;
	int waiting;	       /* count of acks that wait for others */
	struct messages back;  /* go back, the newest first; others read this */
	struct messages equal; /* wait for equal ones; see outbox.c */

	struct mq_counts counts; /* not sent yet */
	double run_ms;		 /* below 1: the rest of counts.run_ms */
	long long pushed;	 /* not counted at their new queue yet */
	char *to;		 /* where the last of those went; free() */
};

struct outbox {
	/* Set by the caller, but for these zeroed. */
	struct ev_loop *loop;
	const struct options *opt;
	struct mq_consumer *server;
	struct mq_idgen *ids;
	struct inbox *inbox;
	const struct session *session;
	const char *host; /* empty: unknown */
	fact_fn *hear;
	void *arg;
	bool many; /* messages end many at a time */

	/* Others read these. */
	struct outbox_queue *queues;
	int settling;		    /* count of messages that are */
	size_t copying;		    /* bytes that those in flight copy, about */
	int in_line[MESSAGE_LINES]; /* counts of all queues */
	bool holding;	     /* one of the acks may hold a key or a group */
	unsigned long moves; /* answers so far */

	int in_flight; /* of those that are settling: sent, and not answered */
	struct messages waiting; /* the acks */
	int enough;		 /* of them to be sent at the end of a turn */
	ev_timer timer;		 /* for the waiting acks */
	int back_sent;		 /* of those that go back: in flight */

	struct mq_counts sent; /* of all queues */
	long returned;	       /* unstarted; others read this */
	bool refused;	       /* counts were */
	struct mq_buf runs;    /* the last report of long ones */
	bool reported;	       /* the server has confirmed it, or will */
};

void outbox_init(struct outbox *);
void outbox_free(struct outbox *);

/* Settles a message that neither inbox nor executor has any more. */
void outbox_settle(struct outbox *, struct message *, enum mq_outcome);
/* The same with one that goes back unstarted, with others of its queue. */
void outbox_give_back(struct outbox *, struct message *);
/* Sends the next messages that go back; to be called once per turn. */
void outbox_send_back(struct outbox *);
/* Sends the waiting acks; unless all, only if they are enough. */
void outbox_flush(struct outbox *, bool all);
/* Sends all settlements that are not in flight.  joined: the server may have lost the
 * report of long runs, too. */
void outbox_send_again(struct outbox *, bool joined);

/* Confirms a message whose answer was lost: the server has settled it. */
void outbox_confirm(struct outbox *, struct message *);
/* Says why the outcome does not count: the lease is lost. */
void outbox_lose(struct outbox *, struct message *, const char *why);
/* Drops a message that is settling. */
void outbox_forget(struct outbox *, struct message *);

/* Whether a refused settlement waits for the next tick. */
bool outbox_refused(const struct outbox *);

/* --- reports.c: counters ------------------------------------------------- */

/* What the server is told once a second, for mq-stats: the counts of settlements and runs,
 * by queue, and the long runs, if these have changed.  If the connection is lost before
 * the answer, counts may be lost: none is counted twice. */

void counters_ran(struct outbox *, int queue, double seconds);
/* The server has confirmed the outcome. */
void counters_settled(struct outbox *, const struct message *);
/* A run whose consumer died. */
void counters_crashed(struct outbox *, int queue);
/* Sends the counts since the last call. */
void counters_send(struct outbox *);
/* Tells the long runs: text as of queue/stats.h, taken; empty: nothing runs. */
void counters_tell_runs(struct outbox *, struct mq_buf *text);
/* Since the start: done, failed, retried and lease_lost; the others are 0. */
struct mq_counts counters_totals(const struct outbox *);

/* --- reports.c: results -------------------------------------------------- */

/* The result of a message: sent with its settlement to the publisher that waits for it
 * (Mq-Reply-To), and kept for others with --keep. */

/* Whether anybody hears how a message has ended. */
bool result_wanted(const struct outbox *, const struct message *);
/* Writes the result of the last run, if it is wanted, into the message. */
void result_note(const struct outbox *, struct message *, enum mq_end,
    const struct mq_failure *f);
/* Adds to a settlement what others hear of it, if anything: the result, whose text is
 * the message's, and the notice, which the caller has zeroed and whose element the
 * caller frees. */
void result_add(const struct outbox *, struct message *, struct mq_settlement *,
    struct mq_result *, struct mq_notice *);

#endif
