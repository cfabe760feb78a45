/* Calls about a queue for tools that wait for the answer.  Unless they say otherwise they
 * return 0, or -1 with the error in struct mq_redis. */
#ifndef MQ_CALLS_H
#define MQ_CALLS_H

#include "publisher.h"

/* --- known: a look at queues before anything is done with them ------------- */

struct mq_known {
	/* Whether there is such a queue: those of the session, then the one that
	 * it may push to, if it may, and the one that it notifies; allocated. */
	bool *there;
	int status; /* 0, or the exit status of a consumer that was refused... */
	char error[1024]; /* ...and why */
};

/* Looks at all queues of a session, once the server has loaded its data.  The session's
 * connection stands for any other one with its tag.  free(there) even after an error. */
int mq_known_ask(struct mq_redis *, const struct mq_layout *,
    const struct mq_session *, struct mq_known *);

/* Text to add when a queue does not exist: the other layout, if that has such a queue on
 * the same server; or a name one slip away, if all may be read; or "".  free() it. */
char *mq_known_hint(
    struct mq_redis *, const struct mq_layout *, const char *queue);

/* --- calls -------------------------------------------------------------- */

/* Sends and frees a command, and takes what comes, also from a server that is busy: AGAIN.
 * *reply is the caller's if that is DONE; NULL: it does not want any. */
enum mq_call mq_call_once(
    struct mq_redis *, struct mq_command *, redisReply **reply);

/* Whether anybody ever opened a queue of this name.  If the node of a cluster that has
 * the names is away, a queue with keys is known; of another one that is not known. */
int mq_queue_known(struct mq_redis *, const struct mq_layout *,
    const char *queue, bool *known);

/* Makes a queue known, with these attributes if it was not (*made).  If that node is
 * away, mq_queue_unlisted() says why, and whoever finds messages in it lists it. */
enum mq_making {
	MQ_MAKE,
	MQ_MAKE_TO_PUT, /* a refusal of putting messages in comes before */
	MQ_MAKE_SET /* only changes those attributes that are said; only with
		     * MQ_HAS_ATTRIBUTES */
};
int mq_queue_make(struct mq_redis *, const struct mq_layout *,
    const char *queue, const struct mq_attributes *, enum mq_making,
    bool *made);
/* "node HOST:PORT: why" if a call could not ask that node for a name; else NULL. */
const char *mq_queue_unlisted(
    struct mq_redis *, const struct mq_layout *, const char *queue);

/* The attributes of a queue, or of none MQ_ATTRIBUTE_NONE; only with
 * MQ_HAS_ATTRIBUTES. */
int mq_queue_attributes(struct mq_redis *, const struct mq_layout *,
    const char *queue, struct mq_attributes *);

/* Sets the queue's clock, which starts at 0 and never goes back, with MQ_HAS_TICKS.  *now
 * is the tick that it is at then; above the one given, nothing has changed. */
int mq_queue_tick(struct mq_redis *, const struct mq_layout *,
    const char *queue, int64_t tick, long long *now);

/* Pauses a queue, or all in its namespace, for ms milliseconds, or until it is resumed
 * (-1); or resumes it (0): *was says whether it was paused. */
int mq_queue_pause(struct mq_redis *, const struct mq_layout *,
    const char *queue, bool all, int64_t ms, bool *was);
/* How many milliseconds of the pause of all are left: -1: it has no end; -2: there is
 * none, or the server does not tell.  Fails only when the connection is lost. */
int mq_queue_pause_left(struct mq_redis *, const struct mq_layout *,
    const char *queue, long long *left);

/* Looks for the end of a message in these queues, which all are asked at once: it
 * ended in *queue, NULL: nothing is kept of it.  An end counts more than a push,
 * after which the message goes on.  mq_ending_free() frees. */
int mq_queue_ending(struct mq_redis *, const struct mq_layout *,
    const struct mq_stats *, const char *id, struct mq_ending *,
    const char **queue);

/* Asks what became of a message, and waits for its end up to block_ms (0: not at all).
 * *ended: *ending was filled in, for mq_ending_free().  AGAIN: the server cannot say now,
 * or not in this way, as a full one lets nobody wait. */
enum mq_call mq_ending_ask(struct mq_redis *, const struct mq_layout *,
    const char *queue, const char *id, int64_t block_ms, bool *ended,
    struct mq_ending *ending);

#endif
