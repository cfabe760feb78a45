/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Publishing in batches, which are marked, so that a new connection can find the mark. */
#ifndef MQ_PUBLISHER_H
#define MQ_PUBLISHER_H

#include "layout.h"

/* The outcome of a command. */
enum mq_call {
	MQ_CALL_DONE,
	MQ_CALL_LOST,	 /* the connection is lost; with the error */
	MQ_CALL_AGAIN,	 /* not done: send again */
	MQ_CALL_REFUSED, /* with the error */
	MQ_CALL_NONSENSE /* a reply of the wrong form */
};

/* Gets the verdict on a message.  number: among those of the publisher, from 1.  id: the message's, or
 * that of the message that it joined; NULL: none was given, or the message is not there. */
typedef void mq_verdict_fn(
    void *arg, enum mq_published, long long number, const char *id);

/* Messages that are published in one step. */
struct mq_batch {
	struct mq_command command;
	size_t start;	/* offset of the messages in the command's wire */
	int start_args; /* arguments before the messages */
	struct mq_publishing how;
	/* A plain command, which the next one marks and counts; else a script. */
	bool plain;
	int count;	   /* messages */
	struct mq_buf ids; /* MQ_ID_LEN each, of messages with an id */
	bool first;	   /* sent as text, behind no other batch: not again */
	int breaks;	   /* connections lost while it was under way */
	int64_t sent_ms;   /* CLOCK_BOOTTIME */
};

/* A publisher for one queue.  Batches are marked in the step that publishes them, if the
 * server allows that, and kept until their replies.  After a lost connection the marks prove
 * which batches were done; the others are sent again. */
struct mq_publisher {
	/* Callers read: */
	unsigned kept; /* batches, the oldest first; the next one is behind */
	unsigned under_way; /* kept batches, the oldest, that may be done */
	size_t bytes;	    /* in kept batches */
	struct mq_batch batches[MQ_MARKS];
	/* The publisher's own: */
	struct mq_redis *redis;
	const struct mq_layout *layout;
	const char *queue;
	const struct mq_attributes *attributes; /* for a new queue */
	mq_verdict_fn *take;
	void *arg;
	char id[MQ_ID_LEN + 1]; /* for the marks */
	bool named;		/* the connection has a name to find it by */
	bool by_command;	/* plain commands publish options, too */
	bool marks;		/* mark batches */
	bool marked;		/* some batch was marked */
	bool lasting;		/* marks are kept for 30 days */
	bool limited;		/* the queue's settings have a max-length */
	bool loose;	/* a former connection's command may still arrive */
	bool overtaken; /* later batches may be done before those kept, and
			 * have their marks: begin no new one */
	bool ours; /* the last accepted message, or its original, was written by
		    * this connection */
	unsigned long begun;	  /* batches */
	long long sent;		  /* messages in batches sent */
	long long confirmed;	  /* messages in batches with a good reply */
	long long confirmed_last; /* messages before the last of those; -1 */
	int64_t confirmed_ms;	  /* time of that reply, CLOCK_BOOTTIME */
	long long uncounted;	  /* messages accepted, but not counted */
	redisReply *last_marks;	  /* read on a new connection; or NULL */
	int64_t clock_us; /* the server's unix time less ours; 0: unknown */
	int64_t last_us;  /* the server's time for the last message */
};

/* The arguments stay the caller's.  The connection must be open. */
void mq_publisher_init(struct mq_publisher *, struct mq_redis *,
    const struct mq_layout *, const char *queue, const struct mq_attributes *,
    mq_verdict_fn *, void *arg);
/* Before the first message: marks are kept for MQ_MARKS_LONG_MS, for a later publisher. */
void mq_publisher_keep_marks(struct mq_publisher *);
/* Before the first message: goes on with the batches of a publisher that has ended, and has kept
 * its marks.  begun, sent: batches and messages before the next one. */
void mq_publisher_continue(struct mq_publisher *, const char id[MQ_ID_LEN + 1],
    unsigned long begun, long long sent);
/* Reads the marks of that publisher, for mq_publisher_skip().  REFUSED, with the error: they cannot
 * be read. */
enum mq_call mq_publisher_read_marks(struct mq_publisher *);
/* Whether that publisher has published the next batch: then the verdicts on its messages are
 * those of then, as far as they are known, and the batch is dropped. */
bool mq_publisher_skip(struct mq_publisher *);
/* Drops the next batch, which is not published. */
void mq_publisher_pass(struct mq_publisher *);
/* Drops all batches, as if none had ever been added, and leaves the marks for a later publisher. */
void mq_publisher_forget(struct mq_publisher *);
/* Removes the marks, if the connection is still open. */
void mq_publisher_free(struct mq_publisher *);

/* Names the connection, tests whether the queue can be used (for messages with or without
 * options), and, with `make`, lists it: *yes is true for a new queue.  Without, *yes is true if it
 * exists.  *clock_us is the server's unix time minus mq_clock_steady_us(), if the server
 * tells. */
enum mq_call mq_publisher_open(struct mq_publisher *, bool has_options,
    bool make, int64_t *clock_us, bool *yes);

/* --- batches -------------------------------------------------------------- */

/* Adds a message to the next batch by layout->publish_add(); all its messages are published
 * in the same way.  id: for the verdict; or NULL. */
void mq_publisher_add(struct mq_publisher *, const struct mq_publishing *,
    const char unique[MQ_ID_LEN + 1], const char *id,
    const struct mq_buf *header, const char *payload, size_t n);
/* The next batch, maybe empty. */
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

/* Sends kept batches again that are not under way, and the next batch unless it is empty.
 * Returns 0, or -1 with the error: the connection is lost. */
int mq_publisher_send(struct mq_publisher *);
/* Whether a reply must come before another batch of this kind is begun. */
bool mq_publisher_full(struct mq_publisher *, const struct mq_publishing *);

/* Waits for the reply to the oldest batch.  DONE and REFUSED: it is no longer kept.  AGAIN: it
 * was not done, since the server does not know the script, forbids the mark, or has not done
 * the batch before; all replies under way were read, and the batches not done are to be
 * sent again. */
enum mq_call mq_publisher_answer(struct mq_publisher *);

/* --- after a lost connection ---------------------------------------------- */

/* Whether another connection can find out which batches under way were done. */
bool mq_publisher_can_resume(struct mq_publisher *);
/* On a new connection: kills the former ones, so that nothing of theirs can arrive, and finds
 * by the marks which batches are done; the others are to be sent again.  REFUSED: that of
 * some batch cannot be known any more, with the error.  At most *missing messages are gone
 * although they were confirmed; *proven: the marks prove that none is. */
enum mq_call mq_publisher_resume(
    struct mq_publisher *, long long *missing, bool *proven);
/* A server ends the connection after a command that is too long, with an error (said), or, by
 * client-query-buffer-limit, without one.  Drops the longest batch that was not done, a
 * single message; without an error only the second time.  Returns the number of that
 * message, from 1; 0: none was dropped. */
long long mq_publisher_drop(struct mq_publisher *, bool said);

/* --- durable -------------------------------------------------------------- */

/* mq_durable_wait() for all accepted messages and originals of duplicates. */
int mq_publisher_wait_durable(
    const struct mq_publisher *, const struct mq_durable *);

#endif
