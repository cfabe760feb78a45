/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The commands of a consumer over a connection that never waits, and their replies in C.
 *
 * Each function sends its commands at once, and calls fn(arg, ...) after the replies.
 * Without a connection, fn is called before the function returns.  Queues are indices into
 * session.queues, or names.  Memory passed by pointer may be freed when the function, or
 * the callback, has returned.
 */
#ifndef MQ_CONSUMER_H
#define MQ_CONSUMER_H

#include "redis/connection.h"
#include "settings.h"
#include "stats.h"

/* A parsed reply.  If the connection was lost before the reply, a callback gets NULL: the
 * command may have been carried out, or not. */
struct mq_answer {
	const char *error; /* NULL: none; valid until the callback returns */
	int status;	   /* mq_exit for the error; 0: none */
	bool missing;	   /* the node is away: mq_reply_missing() */
	/* Without an error, one of, or n and claimed: */
	long long n; /* else 0 */
	char *text;  /* may be changed; or NULL */
	struct mq_claimed *claimed;
	struct mq_held *held;
	struct mq_setting_texts *settings;
};

/* Whether there was a reply, and no error. */
static inline bool
mq_answer_good(const struct mq_answer *a)
{
	return a != NULL && a->error == NULL;
}

/* For the module's files: fills *a and returns it, or NULL for no reply.  A reply that is not
 * mq_reply_is() of the form, or an integer for ":", becomes an error; form NULL: any reply. */
const struct mq_answer *mq_answer_to(
    const redisReply *, const char *form, struct mq_answer *a);

struct mq_consumer_queue {
	struct mq_consumer *of;
	bool absent; /* see mq_consumer_lacks() */
};

struct mq_consumer {
	/* Set by the caller. */
	struct mq_redis *redis;
	const struct mq_layout *layout;
	struct mq_session session;
	/* Set by the module. */
	struct mq_command *lapsed; /* for mq_consumer_enter() */
	int lapsed_count;
	struct mq_consumer_queue *queues; /* NULL: not entered */
	struct {
		mq_answer_fn *fn; /* NULL: called already */
		void *arg;
		double sent; /* steady seconds */
		int missing; /* replies about leases of queues under way */
	} renewal;
	int leaving;	       /* queues under way, then steps left */
	struct mq_steps steps; /* for leaving */
	void (*left)(void *arg);
	void *left_arg;
};
void mq_consumer_free(struct mq_consumer *);

/* For the module's files: sends a command, and takes its memory; `of` is the consumer. */
static inline void
mq_consumer_ask(struct mq_consumer *k, struct mq_command *cmd,
    mq_asker_take *take, mq_answer_fn *fn, void *arg)
{
	mq_redis_ask(k->redis, cmd, take,
	    &(struct mq_asker){.fn = fn, .arg = arg, .of = k});
}

/* --- lease -------------------------------------------------------------------- */

/* mq_redis_away() for the node of a queue or of the session's own lease; or, for a new name,
 * for all nodes with keys of a connection, and with the set that lists connections. */
enum { MQ_OWN_LEASE = -1, MQ_NEW_NAME = -2 };
const char *mq_consumer_away(const struct mq_consumer *, int queue);
/* Whether a queue was away when the session entered: until the next mq_consumer_enter(), the
 * session has no lease and no message there, and must not claim. */
static inline bool
mq_consumer_lacks(const struct mq_consumer *k, int queue)
{
	return k->queues != NULL && k->queues[queue].absent;
}

/* Asks with INFO memory, whose text mq_info_parse() parses. */
void mq_consumer_ask_policy(struct mq_consumer *, mq_answer_fn *fn, void *arg);
/* Takes a lease for the session, which holds for n ms after the command was sent. */
void mq_consumer_join(struct mq_consumer *, mq_answer_fn *fn, void *arg);
/* Does the rest of joining, after the lease is confirmed.  Returns the number of calls of fn,
 * maybe 0. */
int mq_consumer_enter(struct mq_consumer *, mq_answer_fn *fn, void *arg);
/* layout->take_over(), on a cluster. */
void mq_consumer_take_over(struct mq_consumer *, int queue, const char *from,
    mq_answer_fn *fn, void *arg);
/* Reports the session's new number of slots. */
void mq_consumer_tell_slots(struct mq_consumer *);
/* Whether bytes came from the server, or node, of the lease since the last call. */
bool mq_consumer_is_heard(const struct mq_consumer *);
/* Renews the lease for n ms; 0: the lease is gone for good. */
void mq_consumer_renew(struct mq_consumer *, mq_answer_fn *fn, void *arg);
/* Returns the session's messages, and then ends its lease.  left() is called after the last
 * reply, or when a message could not be returned. */
void mq_consumer_leave(
    struct mq_consumer *, void (*left)(void *arg), void *arg);
/* layout->lapsed() for a message whose lease has ended: mq_consumer_enter() sends it. */
void mq_consumer_lapsed(struct mq_consumer *, int queue, const char *element,
    size_t len, long attempts);

/* --- messages ----------------------------------------------------------------- */

/* Claims; n of `claimed` may be MQ_CLAIM_LOST or MQ_CLAIM_BAD.  A callback that keeps the data
 * of an element sets the pointer to NULL, and frees the data later. */
void mq_consumer_claim(struct mq_consumer *, int queue, const struct mq_claim *,
    mq_answer_fn *fn, void *arg);

/* Whether queues need a claim: numbers as in layout->look; for MQ_LOOK_ANY, the first number
 * is for all.  waiting has n numbers; 0 and NULL: there was no good reply. */
typedef void mq_looked_fn(void *arg, const long long *waiting, int n);
void mq_consumer_look(struct mq_consumer *, const int *queues, int n,
    enum mq_look how, mq_looked_fn *, void *arg);
/* Ends the wait for messages of a queue; other consumers go on. */
void mq_consumer_pass(struct mq_consumer *, int queue);

/* The messages of a queue that the server holds for the session; a callback can keep data as
 * for mq_consumer_claim(). */
struct mq_held {
	long long received;	     /* elements ever claimed; 0: unknown */
	struct mq_element *elements; /* held ones, the newest first */
	int n;
};
void mq_consumer_held(
    struct mq_consumer *, int queue, mq_answer_fn *fn, void *arg);
/* MQ_HELD_COUNT: counts the messages held of one queue.  MQ_HELD_KEY: counts those of n queues
 * of which any message is held; fn may be called several times, each for some queues. */
void mq_consumer_count_held(struct mq_consumer *, enum mq_held_how,
    const int *queues, int n, mq_answer_fn *fn, void *arg);

/* layout->exists(), which may be NULL. */
void mq_consumer_exists(struct mq_consumer *, int queue, const char *element,
    size_t len, mq_answer_fn *fn, void *arg);

/* layout->settle() for n messages; the answer's n is enum mq_settled.  With it may come the next
 * message of a group in `claimed`, as of mq_consumer_claim(). */
void mq_consumer_settle(struct mq_consumer *, int queue,
    const struct mq_settlement *, int n, mq_answer_fn *fn, void *arg);
/* layout->ack_oldest(). */
void mq_consumer_ack_oldest(struct mq_consumer *, int queue,
    const struct mq_acks *, mq_answer_fn *fn, void *arg);

/* layout->give_back(). */
void mq_consumer_give_back(struct mq_consumer *, int queue,
    const struct mq_newest *, mq_answer_fn *fn, void *arg);

/* Reads the settings of a queue, whose changes CLIENT TRACKING then reports: see mq_key_of().
 * A callback that keeps the texts empties the struct. */
void mq_consumer_settings(
    struct mq_consumer *, int queue, mq_answer_fn *fn, void *arg);

/* --- pauses and reports -------------------------------------------------------- */

/* Pauses a queue, but never ends a pause earlier. */
void mq_consumer_pause(struct mq_consumer *, const char *queue, int64_t ms,
    mq_answer_fn *fn, void *arg);
/* Reads the pause of all queues, whose changes CLIENT TRACKING then reports.  n: milliseconds
 * left; -1: no end; -2: no pause. */
void mq_consumer_ask_pause(struct mq_consumer *, mq_answer_fn *fn, void *arg);
void mq_consumer_count(struct mq_consumer *, const char *queue,
    const struct mq_counts *, mq_answer_fn *fn, void *arg);
/* Reports the runs, as text of stats.h; empty: nothing runs. */
void mq_consumer_tell_running(
    struct mq_consumer *, const struct mq_buf *text, mq_answer_fn *, void *arg);

/* Adds an entry to the kept output of a message: n parts, names and values in turn.  first: the id of
 * the oldest entry that stays; empty: all stay.  The answer's text is the id of the new entry. */
void mq_consumer_keep_output(struct mq_consumer *, const char *queue,
    const char *id, const char *first, const struct mq_part *, int n,
    int64_t keep_ms, mq_answer_fn *fn, void *arg);

/* Looks for a request to end a run of this queue: see mq_stop_read(). */
void mq_consumer_look_for_stop(
    struct mq_consumer *, int queue, mq_answer_fn *fn, void *arg);
/* Answers a request to end a run, of which id and attempt are read. */
void mq_consumer_tell_stop(struct mq_consumer *, int queue, enum mq_stop answer,
    const struct mq_run *);

/* Competes for the rounds of cleaning of a queue, or of the server (-1), or renews them.  n 0:
 * they are ours for ms milliseconds, or as long as the lease holds; else they will be free
 * in n milliseconds.  ms 0: gives them up, and fn is not called. */
void mq_consumer_compete(
    struct mq_consumer *, int queue, int64_t ms, mq_answer_fn *fn, void *arg);

/* --- duplicates, at any server ------------------------------------------------- */

/* Whether a queue exists: n is not 0. */
void mq_ask_known(struct mq_redis *, const struct mq_layout *,
    const char *queue, mq_answer_fn *fn, void *arg);

/* Adds a message to a set of attachments; n is 0 when the set is gone. */
void mq_ask_attach(struct mq_redis *, const struct mq_layout *, const char *set,
    const char *id, mq_answer_fn *fn, void *arg);

/* n is enum mq_published. */
void mq_ask_publish(struct mq_redis *, const struct mq_layout *,
    const char *queue, const struct mq_publishing *,
    const char id[MQ_ID_LEN + 1], const struct mq_envelope *, mq_answer_fn *fn,
    void *arg);

#endif
