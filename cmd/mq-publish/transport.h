/*
 * Batches on their way to the server.  Each is kept until the server has answered for
 * it: so memory is bounded, the count of what was accepted is exact whatever goes
 * wrong, and what got lost with a connection is sent again on the next one.
 *
 * The program ends here, with a report, when the server is lost for good.
 */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include "outcome.h"
#include "queue/publisher.h"

struct batch {
	struct mq_post post;
	struct mq_buf ids; /* MQ_ID_LEN each, if anybody wants them */
};

/* To be made by transport_init(). */
struct transport {
	struct mq_redis *redis;
	struct mq_publisher *publisher;
	struct outcome *outcome;
	bool quiet;
	struct batch ring[MQ_MARKS]; /* as many as can be asked for */
	unsigned first, used;	     /* batches under way; the next is filled */
	size_t bytes;		     /* in those under way */
	bool ending;		     /* nothing is sent again */
	bool overtaken;		     /* others may be done that were sent behind
				      * them: a new one would take a mark of theirs */
	int64_t lost_ms;  /* when the connection was lost first since the last
			  * answer or rest, CLOCK_BOOTTIME; 0: it was not */
	int64_t pause_ms; /* the next one */
};

/* The connection is open.  From now on it waits in interrupt_wait(). */
void transport_init(struct transport *, struct mq_redis *,
    struct mq_publisher *, struct outcome *, bool quiet);
void transport_free(struct transport *);

/* The batch to fill, which is empty after transport_send(). */
struct batch *transport_next(struct transport *);
/* Whether the server has room for it: a private one ends when its disk is full. */
bool transport_has_room(struct transport *);
void transport_send(struct transport *);

/*
 * The first batch, before anything is known of the queue: sends it as a trial, and
 * waits for the answer.  False: nothing was done, with the error, or the batch cannot be
 * tried.  It is the next one again then, and *only says whether nothing but a
 * second trial would be safe: that looks for the mark of a first one, which may still
 * arrive on a connection that was lost.
 */
bool transport_try(struct transport *, bool *only);

/* Whether batches are under way; and so many that the next one, to be published so,
 * has to wait. */
bool transport_busy(const struct transport *);
bool transport_full(struct transport *, const struct mq_publishing *);
/* Waits for an answer to the oldest one.  False: the server refused it, with the
 * error. */
bool transport_collect(struct transport *);
/* The connection is lost: goes on with another one, or ends the program. */
void transport_resume(struct transport *);
/* All is safe: a connection that is lost now is lost for the first time. */
void transport_rest(struct transport *);
/* Waits for all answers before the end of the program. */
void transport_drain(struct transport *);

/*
 * Connects again, as often as it takes; *pause_ms is the next pause.  False when that
 * was not possible until then, CLOCK_BOOTTIME; -1 is never.
 */
bool transport_reconnect(
    struct transport *, int64_t until_ms, int64_t *pause_ms);

#endif
