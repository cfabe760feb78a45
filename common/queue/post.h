/*
 * A batch of messages that one command publishes.  Where that command does not mark
 * the batch, a second one does, in one transaction with it.
 */
#ifndef MQ_POST_H
#define MQ_POST_H

#include "mark.h"
#include "queue.h"

/* How a command went. */
enum mq_call {
	MQ_CALL_DONE,
	MQ_CALL_LOST,	 /* the connection is lost; with the error */
	MQ_CALL_AGAIN,	 /* not now, or not so: to be sent once more */
	MQ_CALL_REFUSED, /* with the error */
	MQ_CALL_NONSENSE /* a reply of the wrong form */
};

struct mq_publisher;

/* Starts zeroed; mq_post_free() frees. */
struct mq_post {
	struct mq_command command;
	struct mq_command plain; /* the batch, while the command is a trial */
	size_t start;		 /* of the messages in the command's wire */
	struct mq_publishing how;
	bool whole; /* the command marks and counts them, if anything does */
	int count;  /* messages */
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

/*
 * Sends it, with the text of its script if so wanted.  A script does nothing unless the
 * batch that it is sent behind is done; NULL: that has been answered.  -1: the connection
 * is lost, with the error.
 */
int mq_post_send(struct mq_publisher *, struct mq_post *,
    const struct mq_post *behind, bool eval);
/*
 * A publisher that has asked nothing can try its first batch: mq_post_trial() changes
 * it so that it is published only if the queue is known and can be used; it is sent
 * with eval.  False: it cannot be tried.  mq_post_no_trial() changes it back.
 */
bool mq_post_trial(const struct mq_publisher *, struct mq_post *);
void mq_post_no_trial(struct mq_post *);

/* The queue has had a limit only since the batch was begun, or since that is known: a
 * plain one goes out by the script, which looks at it. */
void mq_post_limit(struct mq_publisher *, struct mq_post *);

/*
 * Waits for what the server says of the oldest batch that was sent.  AGAIN: nothing
 * was done, as the server does not know the script, must not mark the batch, or has not
 * done the one before; it is to be sent again, with eval.  Of a trial: for another reason, with the error.
 */
enum mq_call mq_post_answer(
    struct mq_publisher *, struct mq_post *, mq_verdict_fn *, void *arg);
/*
 * After mq_publisher_resume(), looks in the marks instead.  AGAIN: it was not done.
 * REFUSED: nobody knows any more, with the error.
 */
enum mq_call mq_post_settle(
    struct mq_publisher *, struct mq_post *, mq_verdict_fn *, void *arg);

/* Empties it; one huge message does not keep its memory. */
void mq_post_clear(struct mq_post *);
void mq_post_free(struct mq_post *);

#endif
