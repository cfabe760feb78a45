/*
 * One queue of a dead connection, whose messages go back to where they belong, or
 * to the rejected ones; see lua/reclaim_dead.lua.  For this folder only.
 */
#ifndef MQ_RMQ_DEAD_QUEUE_H
#define MQ_RMQ_DEAD_QUEUE_H

#include "cleaner.h"

/* Most headers in one reply, as in reclaim_dead.lua. */
#define RMQ_HEADERS 64

struct rmq_dead {
	const char *connection, *host; /* host: NULL: not known */
	redisReply *info, *queues; /* what the server knows of it, or NULL */
	long slots; /* how many messages could run at once; 0: not known */
	const char *notify; /* the queue that hears of each end; NULL: what the
			     * settings of a queue say */
	int attempts; /* how many runs a message may have had there; 0: the
		       * same */
	bool ours;    /* it is of these tools */
	bool failed;  /* it is to stay listed */
	bool cluster; /* it has keys in the other form, or on a cluster
		       * messages that lie in several slots: failed */
	bool closed;  /* it is not listed any more */
};

/* The fate of a message whose crash was counted. */
enum rmq_crash {
	RMQ_CRASH_NONE, /* goes back as it is: there is nowhere to write */
	RMQ_CRASH_BACK,
	RMQ_CRASH_REJECT
};

struct rmq_dead_queue {
	struct rmq_dead *owner;
	const char *queue;
	redisReply *settings; /* attempts and notify, or NULL */
	const char *notify;   /* the queue that hears of each end; NULL: none */
	int attempts;	      /* how many runs a message may have had */
	long left;	      /* messages to be dealt with; at first LONG_MAX */
	long at;	      /* dry run: headers that were asked for before */
	bool show;	      /* headers may come with this step's reply */
	bool looks;	      /* this step only shows the first headers */
	bool looked;	      /* there was such a step */
	redisReply *shown;    /* the last reply; NULL: none yet */
	enum rmq_crash crashes[RMQ_HEADERS]; /* the messages shown in it */
};

/* How many messages are kept until headers are shown. */
long rmq_dead_queue_kept(const struct rmq_dead_queue *);
/* Begins the next step; then builds it, which may be repeated. */
void rmq_dead_queue_begin(
    const struct rmq_cleaner *, struct rmq_dead_queue *, bool show);
void rmq_dead_queue_step(
    const struct rmq_cleaner *, struct rmq_dead_queue *, struct mq_command *);
/* Takes its reply, and keeps it. */
void rmq_dead_queue_reply(
    struct rmq_cleaner *, struct rmq_dead_queue *, redisReply *);
/* Its messages are not ours to return: leaves it to Go programs. */
void rmq_dead_queue_leave(struct rmq_cleaner *, struct rmq_dead_queue *);
void rmq_dead_queue_free(struct rmq_dead_queue *);

#endif
