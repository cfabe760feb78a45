/*
 * Inbox: what has been claimed.  It owns the queues, the claims, and the list
 * of all messages that the server holds for us; those that are not started it
 * keeps by queue, in the order of their claims.
 */
#ifndef MQ_CONSUME_INBOX_H
#define MQ_CONSUME_INBOX_H

#include <ev.h>

#include "base/id.h"
#include "equals.h"
#include "mq-consume/message.h"
#include "mq-consume/options.h"
#include "queue/consumer.h"
#include "unpack.h"

struct inbox_events {
	/* Whether claims may be sent; and how many more messages of a queue
	 * may be claimed, at least 0. */
	bool (*may_claim)(void *arg);
	int (*room)(void *arg, int queue);
	/* Something may be claimed now, or looked at. */
	void (*wake)(void *arg);
	/* A claim was answered, and was not refused. */
	void (*answered)(void *arg);
	/* It brought messages. */
	void (*arrived)(void *arg);
	/* The server refused it.  first: nothing was ever claimed from that
	 * queue. */
	void (*refused)(void *arg, const struct mq_answer *, bool first);
	/* The lease is gone; the answer makes no sense. */
	void (*lost)(void *arg);
	void (*nonsense)(void *arg);
	/* A queue was found paused: what has not begun goes back. */
	void (*paused)(void *arg, int queue);
	/* A message that has failed before is about to start; alone: and it
	 * may be the end of us. */
	void (*careful)(void *arg, bool alone);
	/* It may not; it is the receiver's now, in no list but that of all. */
	void (*unfit)(void *arg, struct message *, const struct unfit *);
};

struct inbox_queue {
	const char *name;
	bool more;   /* there may be more to claim than the last claim got */
	double due;  /* steady time when there may be more, or 0 */
	bool seen;   /* a claim has been answered */
	bool paused; /* when it was looked at last */
	bool there;  /* the same */
	int pausing; /* pauses of our own that are not confirmed */
	long long received;	 /* claimed under this name of the connection */
	struct messages waiting; /* claimed and not started, in order */
	int held;		 /* so many */
	int64_t tick;		 /* of its clock, when it was looked at last */
};

struct inbox {
	struct ev_loop *loop;
	const struct options *opt;
	struct mq_consumer *server;
	struct mq_idgen *ids;
	const struct inbox_events *events;
	void *arg;
	bool runs; /* messages are for a command, and not printed */

	struct inbox_queue *queues;
	struct wakeup *wakeup; /* the queues by name */
	struct messages all;   /* in the order of their claims */
	struct equals equals;
	bool in_order; /* as the server has them */
	unsigned long claimed;
	int held;
	size_t held_bytes;
	int64_t server_ahead_ms; /* its unix time less our boot time */

	bool claiming; /* a claim is under way */
	int claim_queue, claim_max;
	bool in_pass;	  /* from the first queue to the last */
	bool none_left;	  /* those that the pass came to had no more */
	bool look_wanted; /* the next pass is to look for pauses, too */
	bool looking;	  /* this one does */
	ev_timer due_timer, look_timer;
	unsigned long moves; /* claims answered so far */
};

void inbox_init(struct inbox *, struct ev_loop *, const struct options *,
    struct mq_consumer *, struct mq_idgen *, bool runs,
    const struct inbox_events *, void *arg);
/* Forgets all messages, too. */
void inbox_free(struct inbox *);

/* --- messages: held.c --- */

/* Takes the element, which is freed with the message; it is held. */
struct message *inbox_add(struct inbox *, int queue, char *element, size_t len);
/* The next one that may start, which is running now: of a queue, or of the
 * first that has any (-1).  NULL: there is none. */
struct message *inbox_next(struct inbox *, int queue);
/* Whether there is one to be looked at. */
bool inbox_has_next(const struct inbox *);
/* It is held again, in its place, as if it had not been started. */
void inbox_return(struct inbox *, struct message *);
/* The newest that is held, of a queue or of all (-1), to be given back; so the
 * oldest ends up in front.  NULL: there is none. */
struct message *inbox_take_newest(struct inbox *, int queue);
/* Removes it from all lists here, and frees it. */
void inbox_forget(struct inbox *, struct message *);

/* How many are held; in bytes; of one queue. */
int inbox_held(const struct inbox *);
size_t inbox_held_bytes(const struct inbox *);
int inbox_held_of(const struct inbox *, int queue);
bool inbox_empty(const struct inbox *);
/* The oldest and the newest of all messages; TAILQ_NEXT() and TAILQ_PREV() of
 * their links lead to the others. */
struct message *inbox_first(const struct inbox *);
struct message *inbox_last(const struct inbox *);
/* Whether the server has them in that order; they are not any more. */
bool inbox_in_order(const struct inbox *);
void inbox_disorder(struct inbox *);
/* The first that is held of a queue; NULL: none is, or none may start, since
 * the queue is paused. */
const struct message *inbox_oldest_of(const struct inbox *, int queue);
/* The tick of a queue, as the server said last. */
int64_t inbox_tick(const struct inbox *, int queue);

/* --- claims --- */

/* Claims as much as there is room for; to be called once per turn. */
void inbox_claim(struct inbox *);
/* The connection is lost: no answer comes. */
void inbox_down(struct inbox *);
/* A new name of the connection: nothing has been claimed under it. */
void inbox_renamed(struct inbox *);
/* Whether a claim is under way. */
bool inbox_is_claiming(const struct inbox *);
/* Whether every queue had nothing when it was asked last, and none is being
 * asked. */
bool inbox_drained(const struct inbox *);
/* Whether a queue is being asked, or is going to be at once. */
bool inbox_expects(const struct inbox *, int queue);
/* Claims answered so far. */
unsigned long inbox_moves(const struct inbox *);

/* --- what wakes it up: wakeup.c --- */

/* It is looked whether what we hold has been paused; all: and any of the queues
 * may have more to claim. */
void inbox_look(struct inbox *, bool all);
/* So may that of a key that has changed, if it is one of ours; NULL: any. */
void inbox_changed(struct inbox *, const char *key, size_t len);
/* A pause of our own is sent, or answered; until then nothing of its queue
 * starts. */
void inbox_pausing(struct inbox *, int queue, bool begins);
/* The server says that a queue is paused, or not. */
void inbox_pause_seen(struct inbox *, int queue, bool paused);

/* For inbox.c alone: the index of the queues, and a timer for the first that is
 * due. */
void wakeup_init(struct inbox *);
void wakeup_free(struct inbox *);
void wakeup_await_due(struct inbox *);

/* --- comparing: reconcile.c --- */

/*
 * Compares the messages of a queue with what the server holds for us; adds what
 * was claimed without an answer, and takes those elements.  missing(arg, m) is
 * called for each that the server does not hold any more; it may forget it.
 */
void inbox_reconcile(struct inbox *, int queue, struct mq_held *,
    void (*missing)(void *arg, struct message *), void *arg);
/* How many of a queue the server should hold for us. */
long long inbox_count(const struct inbox *, int queue);

#endif
