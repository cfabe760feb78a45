/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Calls about a queue for tools that wait for the reply.  Unless they say otherwise they
 * return 0, or -1 with the error in struct mq_redis. */
#ifndef MQ_CALLS_H
#define MQ_CALLS_H

#include "publisher.h"

/* --- known: queues before a session ----------------------------------------- */

struct mq_known {
	/* Whether each queue exists: those of the session, then those of its push and its
	 * notify, if set; allocated. */
	bool *there;
	int status;	  /* 0, or the exit status if the server refuses one */
	char error[1024]; /* the refusal */
};

/* Looks at all queues of a session, after the server has loaded its data.  Any connection
 * with the session's tag will do.  free(there) even after an error. */
int mq_known_ask(struct mq_redis *, const struct mq_layout *,
    const struct mq_session *, struct mq_known *);

/* Text to add when a queue does not exist: the other layout, if that has such a queue on
 * the same server; or a similar name, if the names may be read; or "".  free() it. */
char *mq_known_hint(
    struct mq_redis *, const struct mq_layout *, const char *queue);

/* --- calls -------------------------------------------------------------- */

/* Sends and frees a command; AGAIN: the server is busy.  After DONE, *reply is the caller's;
 * reply may be NULL. */
enum mq_call mq_call_once(
    struct mq_redis *, struct mq_command *, redisReply **reply);

/* Whether a queue is listed.  If the node of a cluster that has the list is away, a queue with
 * keys counts as known; without keys, that is an error. */
int mq_queue_known(struct mq_redis *, const struct mq_layout *,
    const char *queue, bool *known);

/* Lists a queue, a new one (*made) with these attributes.  If the node with the list is away,
 * mq_queue_unlisted() says why; a cleaner that finds messages in the queue lists it. */
enum mq_making {
	MQ_MAKE,
	MQ_MAKE_TO_PUT, /* first tests the rights to put messages in */
	MQ_MAKE_SET	/* MQ_HAS_ATTRIBUTES: changes the given ones only */
};
int mq_queue_make(struct mq_redis *, const struct mq_layout *,
    const char *queue, const struct mq_attributes *, enum mq_making,
    bool *made);
/* "node HOST:PORT: why" if the node with the list of queues is away; else NULL. */
const char *mq_queue_unlisted(
    struct mq_redis *, const struct mq_layout *, const char *queue);

/* The attributes of a queue, MQ_ATTRIBUTE_NONE if it does not exist; with
 * MQ_HAS_ATTRIBUTES. */
int mq_queue_attributes(struct mq_redis *, const struct mq_layout *,
    const char *queue, struct mq_attributes *);

/* With MQ_HAS_TICKS, sets the queue's clock, which starts at 0 and never goes back: if *now,
 * its tick, is above the given one, nothing has changed. */
int mq_queue_tick(struct mq_redis *, const struct mq_layout *,
    const char *queue, int64_t tick, long long *now);

/* The counts of a batch, with MQ_HAS_BATCHES, in the order of mq_batch_words; those from DONE on
 * are of ends. */
enum {
	MQ_BATCH_TOTAL,
	MQ_BATCH_OPEN,
	MQ_BATCH_DONE,
	MQ_BATCH_REJECTED,
	MQ_BATCH_EXPIRED,
	MQ_BATCH_PURGED,
	MQ_BATCH_PUSHED,
	MQ_BATCH_UNKNOWN,
	MQ_BATCH_COUNTS
};
extern const char *const mq_batch_words[MQ_BATCH_COUNTS];
/* Reads them, or the sums of several batches, NAME[,NAME]; *known: one exists. */
int mq_queue_batch(struct mq_redis *, const struct mq_layout *,
    const char *queue, const char *names, bool *known,
    long long counts[MQ_BATCH_COUNTS]);
/* Adds batches with open messages, by name and queue, to a sorted list: those that a look at about
 * 1000 locks of the queue finds. */
int mq_queue_open_batches(struct mq_redis *, const struct mq_layout *,
    const char *queue, struct mq_names *);
/* Begins a batch that may have no messages. */
int mq_queue_begin_batch(struct mq_redis *, const struct mq_layout *,
    const char *queue, const char *batch);

/* Pauses a queue, or all in its namespace, for ms milliseconds (-1: until it is resumed), or
 * resumes it (0); *was: it was paused before. */
int mq_queue_pause(struct mq_redis *, const struct mq_layout *,
    const char *queue, bool all, int64_t ms, bool *was);
/* Milliseconds left of the pause of all queues; -1: no end; -2: no pause, or the server does
 * not tell.  Fails only when the connection is lost. */
int mq_queue_pause_left(struct mq_redis *, const struct mq_layout *,
    const char *queue, long long *left);

/* Looks for the result of a message in all these queues at once; *queue has it, NULL: there
 * is none.  An end counts more than a push, after which the message goes on.
 * mq_ending_free() frees. */
int mq_queue_ending(struct mq_redis *, const struct mq_layout *,
    const struct mq_stats *, const char *id, struct mq_ending *,
    const char **queue);

/* Asks for the result of a message, and waits for it up to block_ms (0: not at all).  *ended:
 * *ending is filled in, for mq_ending_free().  AGAIN: the server cannot say now, or cannot
 * wait, as its memory is full. */
enum mq_call mq_ending_ask(struct mq_redis *, const struct mq_layout *,
    const char *queue, const char *id, int64_t block_ms, bool *ended,
    struct mq_ending *ending);

/* --- ends ---------------------------------------------------------------- */

/* A walk through the ends of which a queue keeps the results by --keep, that first which is
 * kept longest: with one DUR, the newest first.  Starts zeroed except the queue. */
struct mq_ended {
	const char *queue;
	/* The slice: an end whose result has gone, or is that of a later run, has no id. */
	struct mq_ending *list;
	int count;
	bool end; /* no slice follows */
	/* Only the walk uses these: where the next slice begins. */
	char score[32];
	long same;
};

/* Reads a slice of at most max ends, in place of the one before. */
int mq_ended_next(
    struct mq_redis *, const struct mq_layout *, struct mq_ended *, int max);
void mq_ended_free(struct mq_ended *);

/* --- kept output ----------------------------------------------------------- */

/* Parts of the kept output of a message, in their order: "1" and "2", bytes of standard output and
 * standard error; "run", of a run that begins; "gap", the number of bytes that were left out; "end",
 * how the run has ended. */
struct mq_output {
	struct mq_output_part {
		const char *name, *bytes;
		size_t n;
	} * parts;
	int count;
	redisReply *reply; /* the module's */
	char last[48];	   /* id of the last entry read; empty: none */
};
void mq_output_free(struct mq_output *);

/* Finds the queue of which a message has kept output, that which lives longest; NULL: none has. */
int mq_output_find(struct mq_redis *, const struct mq_layout *,
    const struct mq_stats *, const char *id, const char **queue);
/* Reads the next entries behind o->last, waiting up to block_ms (0: not at all); count 0: none. */
int mq_output_read(struct mq_redis *, const struct mq_layout *,
    const char *queue, const char *id, int64_t block_ms, struct mq_output *);
/* Reads the last 64 entries. */
int mq_output_last(struct mq_redis *, const struct mq_layout *,
    const char *queue, const char *id, struct mq_output *);
/* Whether the consumer with this connection has a lease. */
int mq_output_alive(struct mq_redis *, const struct mq_layout *,
    const char *queue, const char *connection, bool *alive);

#endif
