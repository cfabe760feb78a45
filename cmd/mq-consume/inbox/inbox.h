/* What comes in.  The inbox owns the queues and the claims from them, and the messages
 * that the server holds for us.  The inbox never starts, settles or rejects a message. */
#ifndef INBOX_H
#define INBOX_H

#include "mq-consume/policy.h"
#include "mq-consume/session/session.h"

#define EQUALS_BUCKETS 1024

LIST_HEAD(equals_bucket, message);

struct inbox_queue {
	const char *name;
	size_t len;	   /* of the name */
	bool more;	   /* there may be more to claim */
	double due;	   /* steady time when there may be more; 0: none */
	enum mq_role role; /* as the last claim said */
	double look_at;	   /* steady time of the next look, or of the next claim
			     * of a queue that we watch */
	double every;	   /* idle: seconds between two looks, about */
	double check_at;   /* steady time of the next look that checks, */
	double claim_at;   /* and of the next claim */
	bool called;	   /* we have to claim, or to pass on */
	bool changed;	   /* while a claim is under way */
	bool look;	   /* the next claim is for a look's sake */
	bool track;	   /* the next claim may begin a watch */
	bool quick;	   /* messages of groups are settled at once */
	bool paused;	   /* at the last look */
	bool exists;	   /* at the last look */
	bool full;	   /* as many run as the queue allows */
	int pausing;	   /* our own pauses that are not confirmed */
	long long received;	 /* claimed under this name of the connection */
	struct messages waiting; /* not started, in order */
	unsigned long disordered; /* up to this number the server may have
				   * another order */
	/* Others read these. */
	struct messages all; /* by `own`, in the order of their claims */
	int held;	     /* count of waiting */
	int64_t tick;	     /* of its clock, at the last look */
};

struct inbox {
	/* Set by the caller, but for these zeroed. */
	struct ev_loop *loop;
	const struct options *opt;
	struct mq_consumer *server;
	struct mq_idgen *ids;
	const struct session *session;
	const struct policy *policy;
	fact_fn *hear;
	/* How many more messages of a queue may be claimed, at least 0. */
	int (*room)(void *arg, int queue);
	void *arg;

	/* Others read these. */
	struct inbox_queue *queues;
	struct messages all; /* by `link`, in the order of their claims */
	int held;	     /* count of those that are not started */
	size_t held_bytes;
	bool claiming;	     /* a claim is under way */
	unsigned long moves; /* claims answered so far */

	bool seen; /* a claim of some queue has been answered */
	struct inbox_queue **by_name;
	/* By their bytes.  The server cannot tell equal elements of a list apart: it
	 * removes the oldest one, whichever message has ended. */
	struct equals_bucket equals[EQUALS_BUCKETS];
	unsigned long claimed;
	int64_t server_ahead_ms; /* its unix time less our boot time */

	int claim_queue, claim_max;
	bool in_pass;	  /* from the first queue to the last */
	bool none_left;	  /* the queues of the pass so far had no more */
	bool look_wanted; /* the next pass also looks for pauses */
	bool looking;	  /* this pass does */
	ev_timer due_timer, look_timer;
	ev_timer settle_first; /* before a claim that one makes useless */
	bool all_paused;       /* whatever the queues say */
	bool any_called;       /* since the last pass, some queue was */
};

void inbox_init(struct inbox *);
/* Frees all messages as well. */
void inbox_free(struct inbox *);

/* --- messages: held.c --- */

/* Adds a held message.  Takes the element, and frees it with the message. */
struct message *inbox_add(struct inbox *, int queue, char *element, size_t len);
/* Takes the next message that may start, of a queue or of the first that has one
 * (-1), which is RUNNING then.  NULL: none. */
struct message *inbox_next(struct inbox *, int queue);
/* Holds a message again, in its place, as if it had not been started. */
void inbox_return(struct inbox *, struct message *);
/* Takes the newest held message of a queue, which goes back first.  NULL: none. */
struct message *inbox_take_newest(struct inbox *, int queue);
/* Removes a message from the inbox, and frees it. */
void inbox_forget(struct inbox *, struct message *);

/* Whether the server has all messages of a queue in that order. */
bool inbox_in_order(const struct inbox *, int queue);
/* The server may have another order now. */
void inbox_disorder(struct inbox *, int queue);
/* The message that inbox_next() would look at; NULL: none is held, or may start. */
struct message *inbox_oldest_of(const struct inbox *, int queue);

/* --- claims --- */

/* Claims as much as there is room for; to be called once per turn.  copying: bytes that
 * the server is about to copy anyway. */
void inbox_claim(struct inbox *, size_t copying);
/* The connection is lost: no more answers come. */
void inbox_down(struct inbox *);
/* The connection has a new name: nothing was claimed under it. */
void inbox_renamed(struct inbox *);
/* Whether the last claims found nothing, and no claim is under way. */
bool inbox_drained(const struct inbox *);
/* Whether a claim of a queue is under way, or comes at once. */
bool inbox_expects(const struct inbox *, int queue);

/* --- news --- */

/* Looks for pauses; all: and any queue may have more to claim. */
void inbox_look(struct inbox *, bool all);
/* The queue of a key; -1: none of ours. */
int inbox_queue_of(const struct inbox *, const char *key, size_t len);
/* A key of a queue that a claim has read has changed; -1: any key may have. */
void inbox_changed(struct inbox *, int queue);
/* A settlement is on its way.  The message, or the next of its group, may be there to
 * claim in the same round. */
void inbox_settling(struct inbox *, const struct message *);
/* Another consumer leaves the messages of a queue to us. */
void inbox_called(struct inbox *, int queue);
/* A pause of our own begins (is sent) or ends (is answered): meanwhile no message
 * of the queue starts. */
void inbox_pausing(struct inbox *, int queue, bool begins);
/* Whether as many messages of a queue run as may: then none starts. */
void inbox_fill(struct inbox *, int queue, bool full);
/* The server has answered whether a queue is paused. */
void inbox_pause_seen(struct inbox *, int queue, bool paused);
/* The same of all queues. */
void inbox_pause_all(struct inbox *, bool paused);

/* Once a second: looks for what nobody tells of; rather while something else is on
 * its way to the server. */
void inbox_look_around(struct inbox *, bool sending);
/* No more claims come: others get to hear of messages in our place. */
void inbox_pass(struct inbox *);

/* Compares our messages of a queue with those that the server holds for us: adds those
 * of claims without an answer, whose elements it takes, and calls missing(), which may
 * forget it, for each message that the server does not hold any more. */
void inbox_reconcile(struct inbox *, int queue, struct mq_held *,
    void (*missing)(void *arg, struct message *), void *arg);
/* How many messages of a queue the server should hold for us. */
long long inbox_count(const struct inbox *, int queue);

#endif
