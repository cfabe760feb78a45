/*
 * A layout: which keys hold a queue, and which commands are the steps of a
 * message's life.  Operations only build commands or take replies apart, so
 * that tools which wait and tools which must not can both use them; the few
 * that need several rounds take a struct mq_redis and wait.
 *
 * An operation with a step argument is a list of commands: call it with step
 * 0, 1, 2 … until it returns false, and send what it built in that order.
 *
 * Queue names given here have passed queue_error().
 */
#ifndef MQ_LAYOUT_H
#define MQ_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command.h"
#include "id.h"
#include "redis.h"

/* One consumer as the server knows it. */
struct mq_session {
	const char *connection; /* unique for ever; never reused */
	const char *consumer;
	const char *const *queues;
	int queue_count;
	int slots; /* how many messages can run at once */
};

/* When a published message is to be ready. */
struct mq_when {
	enum {
		MQ_WHEN_NOW,
		MQ_WHEN_IN, /* ms milliseconds from now */
		MQ_WHEN_AT  /* at unix time ms, milliseconds */
	} kind;
	int64_t ms;
};

/* What becomes of a claimed message. */
enum mq_outcome {
	MQ_OUTCOME_ACK,	   /* done: it is gone */
	MQ_OUTCOME_REJECT, /* to the rejected ones */
	MQ_OUTCOME_FRONT,  /* back, to be the next one */
	MQ_OUTCOME_AGAIN   /* back, at the end of the line, after a delay */
};

/* How to settle one message. */
struct mq_settlement {
	enum mq_outcome outcome;
	const char *element; /* as it was claimed, byte for byte */
	size_t len;
	/* Its new header, which takes the place of the element's first
	 * payload_at bytes; NULL: it stays as it is. */
	const char *header;
	size_t header_len, payload_at;
	int64_t delay_ms;	    /* AGAIN only */
	char unique[MQ_ID_LEN + 1]; /* AGAIN with a delay: a new id */
};

struct mq_queue_stats {
	char *name;
	bool known; /* whether anybody ever opened a queue of this name */
	long long ready, delayed, unacked, rejected, consumers;
};

struct mq_stats {
	struct mq_queue_stats *queues; /* in the order asked for, or sorted */
	int count;
};

/* What one round of cleaning did. */
struct mq_cleaned {
	long connections; /* dead ones removed */
	long returned;	  /* messages put back to ready */
	long rejected;	  /* messages that had crashed too often */
	int64_t next_ms;  /* a connection will be found dead in so long; -1:
			   * none is on its way there */
};

enum { MQ_CLAIM_BAD = -1, MQ_CLAIM_LOST = -2 };

struct mq_layout {
	const char *name;

	/* NULL, or why this cannot be the name of a queue (constant text). */
	const char *(*queue_error)(const char *queue);

	/* Makes a queue known; its reply tells that writing is allowed. */
	void (*open)(struct mq_command *, const char *queue);

	/*
	 * Starts one command that publishes any number of messages to a
	 * queue, all for the same time; publish_add() adds each.  The reply
	 * is an integer, or an error that published none of them.  header
	 * may be empty: the message is then the bare payload.
	 */
	void (*publish)(
	    struct mq_command *, const char *queue, const struct mq_when *);
	void (*publish_add)(struct mq_command *, const struct mq_when *,
	    const char id[MQ_ID_LEN + 1], const struct mq_buf *header,
	    const char *payload, size_t len);

	/*
	 * The lease of a connection.  It holds for lease_ms after a renewal
	 * and is then up for good: renewed() says by the reply to the first
	 * step of renew() whether it still held.
	 */
	int64_t lease_ms;
	/* The lease holds from the first step of join() on; the other steps
	 * must not be sent before it is confirmed, since a cleaner must never
	 * see a listed connection without it. */
	bool (*join)(const struct mq_session *, int step, struct mq_command *);
	/* The first queue_count steps give back what is left in our hands; the
	 * others must not be sent before those are confirmed. */
	bool (*leave)(const struct mq_session *, int step, struct mq_command *);
	bool (*renew)(const struct mq_session *, int step, struct mq_command *);
	bool (*renewed)(const redisReply *);

	/*
	 * Claims up to max messages, and about bytes of them (but at least
	 * one), from one queue.  claimed() gives their number, or MQ_CLAIM_BAD
	 * for a reply of the wrong form, and the time until the next delayed
	 * message is due (-1: none); the elements are reply->element[1] to
	 * [n].  MQ_CLAIM_LOST: the lease is gone, and nothing was claimed.
	 */
	void (*claim)(const struct mq_session *, int queue, int max,
	    size_t bytes, struct mq_command *);
	int (*claimed)(const redisReply *, int64_t *due_ms);

	/*
	 * Ends a message's stay in our hands, in one atomic step.  settled()
	 * is false when it was no longer ours: the lease was lost.
	 */
	void (*settle)(const struct mq_session *, int queue,
	    const struct mq_settlement *, struct mq_command *);
	bool (*settled)(const redisReply *);

	/* All elements that the server holds for us: an array of strings. */
	void (*held)(const struct mq_session *, int queue, struct mq_command *);
	/* Only how many: an integer. */
	void (*held_count)(
	    const struct mq_session *, int queue, struct mq_command *);

	/*
	 * These wait.  They return 0, or -1 with the error in struct mq_redis.
	 */

	/* One round of cleaning up after dead connections; limit is how many
	 * runs a message may have, crashes included, before it is rejected. */
	int (*clean)(struct mq_redis *, int limit, struct mq_cleaned *);

	/* Whether none of the queues has a message that is ready, due, or
	 * unacked at any connection. */
	int (*drained)(struct mq_redis *, const char *const *queues, int count,
	    bool *drained);

	/* The named queues, or all when count is 0; mq_stats_free() frees. */
	int (*stats)(struct mq_redis *, const char *const *queues, int count,
	    struct mq_stats *);
};

extern const struct mq_layout mq_layout_rmq;

void mq_stats_free(struct mq_stats *);

#endif
