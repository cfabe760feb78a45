/* How messages are published: in batches, which are marked, and found again. */
#ifndef MQ_PUBLISHER_H
#define MQ_PUBLISHER_H

#include "layout.h"

/* How a command went. */
enum mq_call {
	MQ_CALL_DONE,
	MQ_CALL_LOST,	 /* the connection is lost; with the error */
	MQ_CALL_AGAIN,	 /* not now, or not so: to be sent once more */
	MQ_CALL_REFUSED, /* with the error */
	MQ_CALL_NONSENSE /* a reply of the wrong form */
};

/* A message became this.  id is its own, or of the message that it has joined; NULL: it has
 * none, or is not there. */
typedef void mq_verdict_fn(void *arg, enum mq_published, const char *id);

/* Messages that are published in one step. */
struct mq_batch {
	struct mq_command command;
	size_t start;	/* of the messages in its wire... */
	int start_args; /* ...and so many arguments are before them */
	struct mq_publishing how;
	/* A plain command, marked and counted by the one behind it; else a script does all. */
	bool plain;
	int count;	   /* messages */
	struct mq_buf ids; /* MQ_ID_LEN each, of those that have one */
	bool
	    first; /* its text was sent, behind none: it never has to come again */
	int breaks;	 /* connections that broke while it was under way */
	int64_t sent_ms; /* CLOCK_BOOTTIME */
};

/* A publisher's side of a queue.  Batches are marked in the step that publishes them, where
 * the server lets it, and kept until the server has answered for them.  After a lost
 * connection the marks tell which were done, and the others go out again. */
struct mq_publisher {
	/* Others read: */
	unsigned
	    kept; /* batches, the oldest first; behind them is the next, or none */
	unsigned
	    under_way; /* so many of them: nobody knows of these, and of all others that
			     * they are not done */
	size_t bytes; /* in those kept */
	struct mq_batch batches[MQ_MARKS];
	/* The publisher's own: */
	struct mq_redis *redis;
	const struct mq_layout *layout;
	const char *queue;
	const struct mq_attributes
	    *attributes; /* of the queue, if it is made */
	mq_verdict_fn *take;
	void *arg;
	char id[MQ_ID_LEN + 1]; /* of the marks */
	bool named;		/* the connection has a name to find it by */
	bool direct;		/* special messages may go without a script */
	bool marks;		/* batches are marked, */
	bool marked;		/* and one was */
	bool limited; /* the settings of the queue have a max-length */
	bool loose;   /* a command of a former connection may still arrive */
	/* Others may be done that were sent behind those kept: a new one would take a mark
	 * of theirs. */
	bool overtaken;
	/* No write of this connection is older than any message that was accepted, or is
	 * there for another one. */
	bool ours;
	unsigned long begun; /* batches */
	long long sent;	     /* messages in those that were sent, */
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
    const struct mq_layout *, const char *queue, const struct mq_attributes *,
    mq_verdict_fn *, void *arg);
/* Removes the marks, as nobody will ask any more; the connection is still open. */
void mq_publisher_free(struct mq_publisher *);

/* Names the connection, finds out whether the queue can be used (for special messages, or
 * such as want no more than a place in line), and makes it known: *yes says whether it was
 * not.  Unless `make`, *yes says whether it is.  *clock_us is the server's unix time minus
 * mq_clock_steady_us(), if the server says that. */
enum mq_call mq_publisher_open(struct mq_publisher *, bool special, bool make,
    int64_t *clock_us, bool *yes);

/* --- batches -------------------------------------------------------------- */

/* Adds a message to the next batch, whose other messages are published in the same way.  See
 * layout->publish_add().  id: what its verdict names; NULL: nothing. */
void mq_publisher_add(struct mq_publisher *, const struct mq_publishing *,
    const char unique[MQ_ID_LEN + 1], const char *id,
    const struct mq_buf *header, const char *payload, size_t n);
/* That batch, maybe without any message. */
static inline const struct mq_batch *
mq_publisher_next(const struct mq_publisher *p)
{
	return &p->batches[p->kept];
}
static inline size_t
mq_batch_bytes(const struct mq_batch *b)
{
	return b->command.wire.len;
}

/* Sends whatever is not under way: what has to go out again, and the next batch, if there
 * is any message in it.  -1: the connection is lost, with the error. */
int mq_publisher_send(struct mq_publisher *);
/* Whether an answer must come before another batch, of this kind, is begun. */
bool mq_publisher_full(struct mq_publisher *, const struct mq_publishing *);

/* Waits for what the server says of the oldest batch.  DONE: it is kept no more, nor if it
 * was refused.  AGAIN: it was not done, as the server does not know the script, or must not
 * mark it, or has not done the one before it; whatever else was under way is answered, and
 * what was not done is to be sent again. */
enum mq_call mq_publisher_answer(struct mq_publisher *);

/* --- after a lost connection ---------------------------------------------- */

/* Whether another connection can tell what became of the batches under way. */
bool mq_publisher_can_resume(struct mq_publisher *);
/* On a new connection: ends the former ones, so that nothing arrives any more that was sent
 * before, and finds out by the marks which batches are done; the others are to be sent
 * again.  REFUSED: of one nobody knows any more, with the error.  At most *missing messages
 * are gone although the server had confirmed them; *proven: the marks prove that none is. */
enum mq_call mq_publisher_resume(
    struct mq_publisher *, long long *missing, bool *proven);
/* A server ends the connection when a command is longer than it takes: with words (said), or
 * (client-query-buffer-limit) without.  The longest of those that it has not done is meant,
 * one message: it is dropped, without words not before the second time.  Returns the number
 * of that message, from 1; 0: there is none. */
long long mq_publisher_drop(struct mq_publisher *, bool said);

/* --- durable -------------------------------------------------------------- */

/* As mq_durable_wait(), for all messages that were accepted, or are there for others. */
int mq_publisher_wait_durable(
    const struct mq_publisher *, const struct mq_durable *);

#endif
