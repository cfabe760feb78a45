/*
 * Messages become batches, which are sent when they are full, or on demand.  A refusal
 * of the server ends the program, once all that is under way is answered.
 */
#ifndef BATCH_H
#define BATCH_H

#include "transport.h"

/* The caller sets all fields before the first message. */
struct batcher {
	const char *queue;
	struct transport *transport;
	struct mq_publisher *publisher;
	struct outcome *outcome;
	struct mq_redis *redis;	  /* for its errors */
	bool ids;		  /* somebody wants the ids of the accepted */
	struct mq_publishing how; /* the batch goes out */
	/* Asks whether the queue can be used, unless the first batch gets there
	 * without that; ends the program if not.  NULL: that is done. */
	void (*open)(void *arg);
	void *arg;
};

/* Whether a message needs no more than a place in line now. */
bool batch_is_plain(const struct batcher *);
/* How the messages that follow are published; sends those before them. */
void batch_set_when(struct batcher *, struct mq_when);
void batch_set_special(struct batcher *);

/*
 * Adds a message.  unique makes it one of its own among the delayed, even when its
 * id, which -i prints, came with it and may come again.
 */
void batch_add(struct batcher *, const char unique[MQ_ID_LEN + 1],
    const char *id, const struct mq_buf *header, const char *payload, size_t n);

/* Sends what is there, and waits until the server has confirmed everything; and
 * until all of it is safe, if it needs to be. */
void batch_flush(struct batcher *);
void batch_settle(struct batcher *);

/* Settles, says why no more is published, and ends the program with a report. */
void batch_end(struct batcher *, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#endif
