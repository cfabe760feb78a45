/* How messages are published. */
#ifndef MQ_PUBLISHER_H
#define MQ_PUBLISHER_H

#include "layout.h"

/* --- post: a batch of messages that one command publishes ----------------- */

/* How it goes out. */
enum mq_way {
	MQ_WAY_SCRIPT, /* which marks and counts, if anything does */
	MQ_WAY_MARKED, /* a plain command; a second one marks and counts, in one
			* transaction with it */
	MQ_WAY_BARE,   /* a plain command; a second one makes the queue known
			* again, if somebody has deleted it */
	MQ_WAY_TRIAL   /* a script that finds out first what was not asked */
};

/* How a command went. */
enum mq_call {
	MQ_CALL_DONE,
	MQ_CALL_LOST,	 /* the connection is lost; with the error */
	MQ_CALL_AGAIN,	 /* not now, or not so: to be sent once more */
	MQ_CALL_REFUSED, /* with the error */
	MQ_CALL_NONSENSE /* a reply of the wrong form */
};

struct mq_publisher;

/* Starts zeroed; mq_post_clear() frees. */
struct mq_post {
	struct mq_command command;
	size_t start; /* of the messages in the command's wire */
	struct mq_publishing how;
	enum mq_way way;
	int count;	 /* messages */
	bool first;	 /* sent with eval, behind none: never to come again */
	int64_t sent_ms; /* CLOCK_BOOTTIME; 0: not sent */
};

/* Message i (from 0) of the batch became this; the id of the one that it has joined
 * has MQ_ID_LEN bytes, and is NULL if there is none. */
typedef void mq_verdict_fn(
    void *arg, int i, enum mq_published, const char *joined);

void mq_post_begin(
    struct mq_publisher *, struct mq_post *, const struct mq_publishing *);
/* As layout->publish_add(). */
void mq_post_add(struct mq_publisher *, struct mq_post *,
    const char unique[MQ_ID_LEN + 1], const struct mq_buf *header,
    const char *payload, size_t n);
static inline size_t
mq_post_bytes(const struct mq_post *b)
{
	return b->command.wire.len;
}

/* Sends it, with the text of its script (eval).  A script does nothing unless the batch
 * that it is sent behind is done; NULL: that has been answered.  -1: the connection is
 * lost, with the error. */
int mq_post_send(struct mq_publisher *, struct mq_post *,
    const struct mq_post *behind, bool eval);
/* A publisher that has asked nothing can try its first batch (yes): it is published only
 * if the queue is known and can be used, and is sent with eval.  False: it cannot be
 * tried.  Without yes, it goes out as any other one again. */
bool mq_post_trial(const struct mq_publisher *, struct mq_post *, bool yes);
/* Whether it does nothing if it arrives again, as its script finds its mark. */
static inline bool
mq_post_whole(const struct mq_post *b)
{
	return b->way == MQ_WAY_SCRIPT || b->way == MQ_WAY_TRIAL;
}

/* Waits for what the server says of the oldest batch that was sent.  AGAIN: nothing was
 * done, as the server does not know the script, must not mark the batch, or has not done
 * the one before; it is to be sent again, with eval.  Of a trial, with the error. */
enum mq_call mq_post_answer(
    struct mq_publisher *, struct mq_post *, mq_verdict_fn *, void *arg);
/* After mq_publisher_resume(), looks in the marks instead.  AGAIN: it was not done.
 * REFUSED: nobody knows any more, with the error. */
enum mq_call mq_post_settle(
    struct mq_publisher *, struct mq_post *, mq_verdict_fn *, void *arg);

/* Empties it, and frees its memory if it is large, or (all) anyhow. */
void mq_post_clear(struct mq_post *, bool all);

/* --- publisher --------------------------------------------------------------- */

/* A publisher's side of a queue.  Batches go out as posts and are marked in the step that
 * publishes them, where the server lets it.  After a lost connection the marks tell which
 * were done, and the others are sent again.  Others read `loose`, and write nothing. */
struct mq_publisher {
	struct mq_redis *redis;
	const struct mq_layout *layout;
	const char *queue;
	/* Of the queue, if it is made. */
	const struct mq_attributes *attributes;
	char id[MQ_ID_LEN + 1]; /* of the marks */
	bool named;		/* the connection has a name to find it by */
	bool direct;		/* special messages may go without a script */
	bool marks;		/* batches are marked, */
	bool marked;		/* and one was */
	bool limited; /* the settings of the queue have a max-length */
	bool loose;   /* a command of a former connection may still arrive */
	struct mq_command behind; /* the command that goes behind a batch */
	unsigned long batches;	  /* begun so far */
	long long sent;		  /* messages in those that were sent, */
	long long confirmed; /* in those that the server has answered for, */
	long long confirmed_last; /* and before the last batch of them; -1 */
	int64_t confirmed_ms;	  /* when it did, CLOCK_BOOTTIME */
	long long uncounted;	  /* accepted without being counted */
	redisReply *last_marks;	  /* read on a new connection; or NULL */
	int64_t clock_us; /* the server's unix time less ours; 0: unknown */
	int64_t last_us; /* the server's time that the last message was given */
};

/* The arguments stay the caller's.  The connection has been opened. */
void mq_publisher_init(struct mq_publisher *, struct mq_redis *,
    const struct mq_layout *, const char *queue, const struct mq_attributes *);
/* Removes the marks, as nobody will ask any more; the connection is still open. */
void mq_publisher_free(struct mq_publisher *);

/* Names the connection, finds out whether the queue can be used (for special messages, or
 * such as want no more than a place in line), and makes it known: *yes says whether it was
 * not.  Unless `make`, *yes says whether it is.  *clock_us is the server's unix time minus
 * mq_clock_steady_us(), if the server says that. */
enum mq_call mq_publisher_open(struct mq_publisher *, bool special, bool make,
    int64_t *clock_us, bool *yes);

/* Sets the queue's clock, which starts at 0 and never goes back, with MQ_HAS_TICKS.  *now
 * is the tick that it is at then; above the one given, nothing has changed.  -1: refused,
 * with the error. */
int mq_publisher_tick(struct mq_publisher *, int64_t tick, long long *now);

/* Whether such a batch must be answered before any other one goes out. */
bool mq_publisher_alone(
    const struct mq_publisher *, const struct mq_publishing *);

/* Counts what was accepted without being counted in the same step.  If that fails
 * the connection is lost, and whoever uses it next finds out. */
void mq_publisher_count(struct mq_publisher *);
/* As mq_durable_wait().  ours: all that has to be safe was written by this connection,
 * or before its last write. */
int mq_publisher_wait_durable(
    const struct mq_publisher *, const struct mq_durable *, bool ours);

/* Whether batches that are under way, and marked, could be asked for on another
 * connection.  whole: all of them are so, see above. */
static inline bool
mq_publisher_can_resume(struct mq_publisher *p, bool whole)
{
	/* Batches sent before may arrive at any time, and find their marks. */
	p->loose |= !p->named && whole;
	return p->marks && (p->named || whole);
}
/* On a new connection: ends the former ones, so that nothing arrives any more that
 * was sent before, and reads the marks.  At most *missing messages are gone although
 * the server had confirmed them; *proven: the marks prove that none is. */
enum mq_call mq_publisher_resume(
    struct mq_publisher *, bool whole, long long *missing, bool *proven);

#endif
