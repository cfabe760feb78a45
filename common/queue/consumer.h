/*
 * The commands of a consumer over a connection that never waits, and the answers in C.
 *
 * Each function sends its commands at once, and calls fn(arg, ...) when they
 * are answered: see redis/command.h.  If there is no connection, fn is called
 * before the function returns.  Queues are indices into session.queues, unless
 * they are names.  What is passed by pointer is not needed any more when a
 * function, or callback, has returned.
 */
#ifndef MQ_CONSUMER_H
#define MQ_CONSUMER_H

#include "redis/connection.h"
#include "settings.h"
#include "stats.h"

/* The answer to a command.  A callback gets NULL instead when the connection was lost
 * before: nothing is known of the command. */
struct mq_answer {
	const char *error; /* why the server refused; NULL: it did not.  Valid
			    * until the callback returns */
	int status;	   /* mq_exit that fits it; 0: no error */
	bool missing;	   /* the node is away, as mq_reply_missing() says */
	/* What was asked for, if there is no error: */
	long long n; /* a number; else 0 */
	char *text;  /* may be changed; NULL: there is none */
	struct mq_claimed *claimed;
	struct mq_held *held;
	struct mq_setting_texts *settings;
};

/* Whether there is an answer, and no error. */
static inline bool
mq_answer_good(const struct mq_answer *a)
{
	return a != NULL && a->error == NULL;
}

/* For the module's files: fills *a and returns it, or NULL for no reply.  A reply of another
 * form than that of mq_reply_is(), or ":" for an integer, is an error, too; with NULL, any
 * will do. */
const struct mq_answer *mq_answer_to(
    const redisReply *, const char *form, struct mq_answer *a);

struct mq_consumer_queue {
	struct mq_consumer *of;
	bool absent; /* see mq_consumer_lacks() */
};

struct mq_consumer {
	/* The caller's. */
	struct mq_redis *redis;
	const struct mq_layout *layout;
	struct mq_session session;
	/* The module's. */
	struct mq_command *lapsed; /* to be sent when entering */
	int lapsed_count;
	struct mq_consumer_queue *queues; /* once the session has entered */
	struct {
		mq_answer_fn *fn; /* NULL: it has been called */
		void *arg;
		double sent; /* steady seconds */
		int missing; /* answers about the leases of queues */
	} renewal;
	int leaving;	/* queues or steps without answer */
	int leave_step; /* the next one */
	void (*left)(void *arg);
	void *left_arg;
};
void mq_consumer_free(struct mq_consumer *);

/* For the module's files: sends a command, whose memory it takes; the asker's `of` is the
 * consumer. */
static inline void
mq_consumer_ask(struct mq_consumer *k, struct mq_command *cmd,
    mq_asker_take *take, mq_answer_fn *fn, void *arg)
{
	mq_redis_ask(k->redis, cmd, take,
	    &(struct mq_asker){.fn = fn, .arg = arg, .of = k});
}

/* --- its lease ---------------------------------------------------------------- */

/* Why a node of a cluster is away, as mq_redis_away(): that of a queue, of the session's
 * own lease; or, for a new name, one of those of all keys that a connection has, and of
 * the set that lists it. */
enum { MQ_OWN_LEASE = -1, MQ_NEW_NAME = -2 };
const char *mq_consumer_away(const struct mq_consumer *, int queue);
/* Whether a queue was away when the session entered: until it enters again, it has no
 * lease and no message of that queue, and must not claim there. */
static inline bool
mq_consumer_lacks(const struct mq_consumer *k, int queue)
{
	return k->queues != NULL && k->queues[queue].absent;
}

/* What INFO memory says: see mq_info_take(). */
void mq_consumer_ask_policy(struct mq_consumer *, mq_answer_fn *fn, void *arg);
/* Takes a lease for the session, which holds for n ms from the sending on. */
void mq_consumer_join(struct mq_consumer *, mq_answer_fn *fn, void *arg);
/* The rest of joining, when the lease is confirmed.  fn is called as often as the
 * returned number says; that may be 0. */
int mq_consumer_enter(struct mq_consumer *, mq_answer_fn *fn, void *arg);
/* As layout->take_over(), on a cluster. */
void mq_consumer_take_over(struct mq_consumer *, int queue, const char *from,
    mq_answer_fn *fn, void *arg);
/* The session's slots have changed: tells others anew how many messages can run. */
void mq_consumer_tell_slots(struct mq_consumer *);
/* Whether anything has come from the server, or node, of the lease since the last call. */
bool mq_consumer_is_heard(const struct mq_consumer *);
/* The lease holds for n ms; 0: it was gone before, and is so for good. */
void mq_consumer_renew(struct mq_consumer *, mq_answer_fn *fn, void *arg);
/* Gives back what is left in its hands, and ends its lease when that is confirmed.
 * left() is called when all is answered, or giving back has failed. */
void mq_consumer_leave(
    struct mq_consumer *, void (*left)(void *arg), void *arg);
/* Of a message that was ours when the lease of this session ended, the last of
 * its attempts does not count.  Kept, and sent by mq_consumer_enter(). */
void mq_consumer_lapsed(struct mq_consumer *, int queue, const char *element,
    size_t len, long attempts);

/* --- its messages ------------------------------------------------------------- */

/* The answer has claimed, whose n may be MQ_CLAIM_LOST or MQ_CLAIM_BAD.  A callback that
 * keeps the data of an element sets it to NULL, and frees it later. */
void mq_consumer_claim(struct mq_consumer *, int queue, const struct mq_claim *,
    mq_answer_fn *fn, void *arg);

/* Whether queues need a claim: of each 0, or as of layout->look; of ANY, the first
 * number is for all.  waiting has n numbers; 0 and NULL: there is no good answer. */
typedef void mq_looked_fn(void *arg, const long long *waiting, int n);
void mq_consumer_look(struct mq_consumer *, const int *queues, int n,
    enum mq_look how, mq_looked_fn *, void *arg);
/* Waits for the messages of a queue no more; others do. */
void mq_consumer_pass(struct mq_consumer *, int queue);

/* The messages of a queue that the server holds for us; data can be kept as above. */
struct mq_held {
	long long received; /* elements ever claimed for us; 0: unknown */
	struct mq_element *elements; /* those that it holds, the newest first */
	int n;
};
void mq_consumer_held(
    struct mq_consumer *, int queue, mq_answer_fn *fn, void *arg);
/* MQ_HELD_COUNT: how many it holds of one queue.  MQ_HELD_KEY: of how many of n queues it
 * holds any; fn may be called several times, each time about some of them. */
void mq_consumer_count_held(struct mq_consumer *, enum mq_held_how,
    const int *queues, int n, mq_answer_fn *fn, void *arg);

/* As layout->exists(), which may be NULL. */
void mq_consumer_exists(struct mq_consumer *, int queue, const char *element,
    size_t len, mq_answer_fn *fn, void *arg);

/* n is enum mq_settled.  One, or n of which some are equal: see layout->settle(). */
void mq_consumer_settle(struct mq_consumer *, int queue,
    const struct mq_settlement *, int n, mq_answer_fn *fn, void *arg);
/* As layout->ack_oldest(). */
void mq_consumer_ack_oldest(struct mq_consumer *, int queue,
    const struct mq_acks *, mq_answer_fn *fn, void *arg);

/* As layout->give_back(). */
void mq_consumer_give_back(struct mq_consumer *, int queue,
    const struct mq_newest *, mq_answer_fn *fn, void *arg);

/* Asks for those of a queue, and to hear by CLIENT TRACKING when they change: see
 * mq_key_of().  A callback that keeps the texts empties the struct. */
void mq_consumer_settings(
    struct mq_consumer *, int queue, mq_answer_fn *fn, void *arg);

/* --- settings, pauses, and what else it says ----------------------------------- */

/* Never ends a pause earlier. */
void mq_consumer_pause(struct mq_consumer *, const char *queue, int64_t ms,
    mq_answer_fn *fn, void *arg);
/* As mq_consumer_settings(), of the pause of all queues.  n: milliseconds left; -1: no
 * end; -2: there is none. */
void mq_consumer_ask_pause(struct mq_consumer *, mq_answer_fn *fn, void *arg);
void mq_consumer_count(struct mq_consumer *, const char *queue,
    const struct mq_counts *, mq_answer_fn *fn, void *arg);
/* text as of stats.h; empty: nothing runs. */
void mq_consumer_tell_running(
    struct mq_consumer *, const struct mq_buf *text, mq_answer_fn *, void *arg);

/* Looks for a request to end a run of this queue: see mq_stop_read(). */
void mq_consumer_look_for_stop(
    struct mq_consumer *, int queue, mq_answer_fn *fn, void *arg);
/* Answers it; of the run, id and attempt are read. */
void mq_consumer_tell_stop(struct mq_consumer *, int queue, enum mq_stop answer,
    const struct mq_run *);

/* Competes for the rounds of cleaning of a queue, or of the server (-1).  n 0: they
 * are ours for ms milliseconds, or for as long as the lease holds; else they will be
 * free in n milliseconds.  Once they are ours, it renews that.  ms 0: lets go of them,
 * and fn is not called. */
void mq_consumer_compete(
    struct mq_consumer *, int queue, int64_t ms, mq_answer_fn *fn, void *arg);

/* --- duplicates, at any server ------------------------------------------------- */

/* Whether there is such a queue: n is not 0. */
void mq_ask_known(struct mq_redis *, const struct mq_layout *,
    const char *queue, mq_answer_fn *fn, void *arg);

/* Another message is to refer to attachments; n is 0 when these are gone. */
void mq_ask_attach(struct mq_redis *, const struct mq_layout *, const char *set,
    const char *id, mq_answer_fn *fn, void *arg);

/* n is enum mq_published. */
void mq_ask_publish(struct mq_redis *, const struct mq_layout *,
    const char *queue, const struct mq_publishing *,
    const char id[MQ_ID_LEN + 1], const struct mq_envelope *, mq_answer_fn *fn,
    void *arg);

#endif
