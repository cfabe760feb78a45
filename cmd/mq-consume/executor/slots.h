/*
 * Slots: the places where commands run.  A slot has messages in its hand from
 * the start of their run until they are judged.  Three executors work with them:
 * one process a message (fork.c), one for several (batch.c), and workers that
 * stay (stream.c).
 */
#ifndef MQ_CONSUME_SLOTS_H
#define MQ_CONSUME_SLOTS_H

#include <ev.h>

#include "message/verdict.h"
#include "mq-consume/duplicates/requests.h"
#include "mq-consume/inbox/inbox.h"
#include "mq-consume/policy.h"
#include "mq-consume/process/process.h"
#include "process/children.h"
#include "worker-input.h"

struct slots_events {
	/* A run has been judged: what is to become of a message, and the end
	 * of what the run has written, which is valid until this returns. */
	void (*ended)(void *arg, struct message *, const struct mq_verdict *,
	    const char *errors);
	/* A message was not run, or is as if it had not been. */
	void (*returned)(void *arg, struct message *);
	/* No run can have it, and why. */
	void (*rejected)(void *arg, struct message *, const char *reason);
	/* Runs are about to be judged. */
	void (*judging)(void *arg);
	/* A run of a message took so many seconds. */
	void (*ran)(void *arg, int queue, double seconds);
	/* What is held is better given back at once. */
	void (*give_back)(void *arg);
	/* Whether somebody wants to know how a message ends. */
	bool (*awaited)(void *arg, const struct message *);
	/* Whether more of a queue are on their way; whether none are of any. */
	bool (*expects)(void *arg, int queue);
	bool (*drained)(void *arg);
	/* Whether what is held is ours for sure. */
	bool (*ready)(void *arg);
	/* Something may be started, claimed or ended now. */
	void (*wake)(void *arg);
};

/* A command that stays, and is fed. */
struct stream_worker {
	struct worker_input input;
	struct mq_buf said;	    /* verbs that are not taken apart yet */
	double heard;		    /* when it was listened to last */
	bool silence_said;	    /* it has not said anything since */
	bool terminated;	    /* it took too long, and has had a TERM */
	const struct message *late; /* for this one; NULL: for none */
	bool verbs_closed;	    /* its descriptor 3 has ended */
	const char *protocol_error; /* NULL: it made none */
	long judged;		    /* messages in its life */
	double pace_s;		    /* smoothed time for one; 0: unknown */
	double wait_s;		    /* before the next is started; 0: none */
	ev_timer restart;
};

/* One place where a command can run. */
struct slot {
	struct slots *slots;
	struct messages hand; /* in order; empty: it is free, or its worker
			       * waits for more */
	int count;	      /* of them */
	size_t bytes;	      /* and of their elements */
	TAILQ_ENTRY(slot) free;
	bool is_free; /* nothing in hand, and it does not rest: it is listed */
	pid_t pid;    /* 0: none */
	int status;   /* of the last, as of waitpid(2) */
	int verbs_fd;
	struct run_output *output;
	struct requests requests;
	double started;	    /* monotonic time of the run, or the last verb */
	int64_t started_ms; /* unix time; 0: not known yet */
	bool timed_out;
	bool ended;    /* we killed it to stop: its messages go back */
	int failures;  /* in a row */
	ev_timer rest; /* after them */
	struct mq_child child;
	ev_io verbs_io;
	ev_timer patience; /* until its pipes are watched */
	ev_timer timer;	   /* --timeout, then the KILL after the TERM */
	struct mq_verbs verbs;
	struct mq_verb_one *ones; /* a batch: what was said of each */
	struct stream_worker worker;
};

TAILQ_HEAD(slot_list, slot);

struct slots {
	struct ev_loop *loop;
	const struct options *opt;
	struct inbox *inbox;
	struct policy *policy;
	struct mq_children *children;
	struct process *process;
	struct duplicates *duplicates;
	const struct slots_events *events;
	void *arg;
	char *path; /* of the command, absolute */
	int batch;  /* messages for one run */
	struct slot *all;
	struct slot_list free; /* the last that was busy first */
	int busy; /* run a command, or what it asked for is awaited */
	int resting;
	int running;	      /* messages in their hands */
	double run_s;	      /* smoothed duration of a run; 0: unknown */
	double last_end;      /* steady time when a slot became free last */
	bool starved;	      /* no process could be started: wait for a tick */
	bool starving;	      /* nor has any since: this has been said */
	ev_timer batch_timer; /* until some have waited long enough */
};

/* What is set above from loop to batch is the caller's. */
void slots_init(struct slots *);
void slots_free(struct slots *);

/* --- hands ------------------------------------------------------------------ */

/* The message that a run is on, of a batch the first; NULL: none is. */
struct message *slot_message(const struct slot *);
/* Puts a message into the hand, behind those it has. */
void slot_take(struct slot *, struct message *);
/* Takes one out. */
void slot_release(struct slot *, struct message *);
/* The last goes back, as if it had not been started. */
void slot_return_last(struct slot *);
/* All do; so the oldest is in front again. */
void slot_return_all(struct slot *);

/* --- room ------------------------------------------------------------------- */

/* One that has nothing to do; NULL: none. */
struct slot *slots_free_one(const struct slots *);
/* Slots that could start now; may be below 0. */
long slots_idle(const struct slots *);
/* Whether anything could be started now. */
bool slots_may_start(const struct slots *);
/* How many messages are worth having ahead of the idle slots. */
int slots_ahead(const struct slots *);
/* The runs were short when what is held was claimed, and now none is idle:
 * somebody else may have time for it.  True: that is so, and it goes back. */
bool slots_return_stale(struct slots *, bool idle);
/* A run begins that may be the end of us: what no other slot can take at once
 * goes back, and is not claimed with it. */
void slots_stand_alone(struct slots *);

/* --- runs ------------------------------------------------------------------- */

/* Starts the command in a slot for what it has in hand.  It gets the descriptor
 * input, which is closed here; -1: none could be opened, and errno says why.
 * False: it could not be started, and the messages went back, or elsewhere. */
bool slot_start(struct slot *, int input);
/* It has ended: pid is 0 now. */
void slot_ended(struct slot *, int status);
/* The requests of a slot want to know which message `which` of its run is; as of
 * verb.h. */
void slot_ask_duplicate(void *slot, int which, const char *text);
/* Whether a verdict is a success, or a failure; it may be neither. */
bool slot_is_success(enum mq_verdict_kind);
bool slot_is_failure(enum mq_verdict_kind);
/* The run of a slot was either: it may have to rest now. */
void slot_judged(struct slot *, bool success);

/* --- for the tables of executors -------------------------------------------- */

int slots_running(const void *slots);
int slots_busy(const void *slots);
bool slots_all_rest(const void *slots);
/* Sends a signal to the process groups of all commands, whose messages go back
 * if they are not done. */
void slots_kill(void *slots, int sig);
/* A message that runs is somebody else's now: kills its run, which is told as
 * ever.  True, since the executor still has it. */
bool slots_take_away(void *slots, struct message *);
/* Appends what has run for long, as of running.h; nothing if nothing has. */
void slots_describe(const void *slots, struct mq_buf *);

#endif
