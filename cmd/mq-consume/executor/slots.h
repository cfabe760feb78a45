/*
 * Slots: the places where commands run, for fork.c, batch.c and stream.c.  A slot
 * has messages in its hand from the start of their run until their verdict.
 */
#ifndef MQ_CONSUME_SLOTS_H
#define MQ_CONSUME_SLOTS_H

#include <ev.h>

#include "message/verdict.h"
#include "mq-consume/attachments/attachments.h"
#include "mq-consume/duplicates/requests.h"
#include "mq-consume/inbox/inbox.h"
#include "mq-consume/policy.h"
#include "mq-consume/process/process.h"
#include "process/children.h"
#include "worker-input.h"

struct slots_events {
	/* A message has a verdict.  errors: the end of the stderr of its run,
	 * valid until this returns. */
	void (*ended)(void *arg, struct message *, const struct mq_verdict *,
	    const char *errors);
	/* The run of a message was broken off: the message is about to go back. */
	void (*broken_off)(void *arg, struct message *,
	    const struct mq_verdict *, const char *errors);
	/* A message goes back to the inbox, as if it had not been started. */
	void (*returned)(void *arg, struct message *);
	/* No run can take the message. */
	void (*rejected)(void *arg, struct message *, const char *reason);
	/* Verdicts are about to be reported. */
	void (*judging)(void *arg);
	/* A run of the queue has ended. */
	void (*ran)(void *arg, int queue, double seconds);
	/* Held messages are better given back; at_once: before the next message
	 * starts, which may crash this consumer. */
	void (*give_back)(void *arg, bool at_once);
	/* Whether a message has a result. */
	bool (*awaited)(void *arg, const struct message *);
	/* Whether more messages of a queue come at once. */
	bool (*expects)(void *arg, int queue);
	/* Whether all queues are empty. */
	bool (*drained)(void *arg);
	/* Whether the held messages are ours for sure. */
	bool (*ready)(void *arg);
	/* The engine may start, claim or end now. */
	void (*wake)(void *arg);
};

/* A worker that stays. */
struct stream_worker {
	struct worker_input input;
	struct mq_buf said;		 /* unparsed verbs */
	double heard;			 /* monotonic time of the last read */
	bool silence_said;		 /* since then */
	bool terminated;		 /* timed out, and sent TERM */
	const struct message *timed_out; /* on this message; NULL: on none */
	bool verbs_closed;		 /* its descriptor 3 has ended */
	const char *protocol_error;	 /* NULL: none */
	long judged;			 /* messages in its life */
	double message_s;		 /* smoothed time for one; 0: unknown */
	double wait_s;			 /* before the next start; 0: none */
	ev_timer restart;
};

struct slot {
	struct slots *slots;
	struct messages hand; /* in order */
	int count;	      /* of hand */
	size_t bytes;	      /* of the elements in hand */
	TAILQ_ENTRY(slot) free;
	bool is_free; /* listed: nothing in hand, and it does not rest */
	pid_t pid;    /* 0: none */
	int queue;    /* of the run */
	int status;   /* of the last run, as of waitpid(2) */
	int verbs_fd;
	int failure_fd; /* as in struct run */
	struct run_output *output;
	struct run_log log;
	struct requests requests;
	double born;	    /* monotonic time of the start of the command */
	double started;	    /* monotonic time of the run, or the last verb */
	int64_t started_ms; /* unix time; 0: unknown */
	double ran_s;	    /* seconds of the last run, or for the last verb */
	bool timed_out;
	bool killed;   /* to stop: its messages go back */
	int failures;  /* in a row */
	ev_timer rest; /* after failures */
	struct mq_child child;
	ev_io verbs_io;
	ev_timer patience; /* until its pipes are watched */
	ev_timer timer;	   /* --timeout, then the KILL after the TERM */
	struct mq_verbs verbs;
	struct mq_verb_one *ones; /* a batch: the verbs of each message */
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
	struct attachments *attachments;
	const struct slots_events *events;
	void *arg;
	char *path; /* of the command, absolute */
	int batch;  /* messages for one run */
	struct slot *all;
	int made;		     /* of these are ready for use, */
	int limit;		     /* and so many may be in use */
	void (*make)(struct slot *); /* makes one ready */
	int *runs;		     /* of each queue, */
	bool uneven;	       /* which may have different numbers of them */
	struct slot_list free; /* the last busy one first */
	int busy;	       /* slots that run or wait for answers */
	int resting;
	int running;	      /* messages in hands */
	double run_s;	      /* smoothed duration of a run; 0: unknown */
	double last_end;      /* steady time when a slot became free last */
	bool starved;	      /* no process could start: wait for a tick */
	bool starving;	      /* no process has started since; said */
	ev_timer batch_timer; /* until a batch has waited long enough */
};

/* The caller sets the members from loop to arg, and batch; make() completes each
 * slot. */
void slots_init(struct slots *, void (*make)(struct slot *));
/* The rules have changed: as many slots are in use as they say. */
void slots_resize(void *slots);
void slots_free(struct slots *);

/* --- hands ------------------------------------------------------------------ */

/* The first message in hand; NULL: none. */
struct message *slot_message(const struct slot *);
/* Appends a message to the hand. */
void slot_take(struct slot *, struct message *);
/* Takes a message out of the hand. */
void slot_release(struct slot *, struct message *);
/* Returns the last message in hand, as if it had not been started. */
void slot_return_last(struct slot *);
/* Returns all, the last first: so the oldest is in front again. */
void slot_return_all(struct slot *);

/* --- room ------------------------------------------------------------------- */

/* A free slot; NULL: none. */
struct slot *slots_free_one(const struct slots *);
/* Slots that could start now; may be below 0.  Of a queue: that it may use. */
long slots_idle(const struct slots *);
long slots_idle_for(const struct slots *, int queue);
/* Whether a message could be started now. */
bool slots_may_start(const struct slots *);
/* How many messages are worth having ahead of the idle slots. */
int slots_ahead(const struct slots *);
/* Gives held messages back if no slot became free for 1 s: another consumer may
 * have time for them.  True: done. */
bool slots_return_stale(struct slots *, bool idle);
/* A run begins that may crash this consumer: gives back messages that no other
 * slot can take at once. */
void slots_stand_alone(struct slots *);

/* --- runs ------------------------------------------------------------------- */

/* A run of the queue begins, or ends (-1). */
void slots_count(struct slots *, int queue, int n);
/* Starts the command for the messages in hand.  input: its stdin, which is taken;
 * -1: it could not be opened, with errno.  False: the command could not be
 * started, and the messages went back or were rejected. */
bool slot_start(struct slot *, int input);
/* The same of a command that was to start when its attachments were fetched; after
 * its end. */
bool slot_was_started(struct slot *);
/* The command has ended: sets pid to 0.  alone: no other process has its pipes. */
void slot_ended(struct slot *, int status, bool alone);
/* Closes the output of a command that has ended; as process_close_output(). */
const char *slot_close_output(struct slot *);
/* Asks for a duplicate of message `which` of the run; as of message/verb.h. */
void slot_ask_duplicate(void *slot, int which, const char *text);
/* Whether a verdict is a success or a failure; of several, the greater counts. */
enum slot_success { SLOT_NEITHER, SLOT_FAILURE, SLOT_SUCCESS };
enum slot_success slot_success_of(enum mq_verdict_kind);
/* A run, which began with the message, has ended with the verdict: if so did many, says
 * that the command is broken. */
void slot_ran(struct slot *, const struct message *, const struct mq_verdict *);
/* A run has ended: after failures the slot may rest. */
void slot_judged(struct slot *, enum slot_success);

/* --- for the tables of executors -------------------------------------------- */

int slots_running(const void *slots);
int slots_busy(const void *slots);
bool slots_all_rest(const void *slots);
/* Sends a signal to the process groups of all commands, as executor_kill(). */
void slots_kill(void *slots, int sig);
/* Another consumer has the message now: kills its run, whose end is reported.
 * True. */
bool slots_take_away(void *slots, struct message *);
/* Appends the long runs, as of queue/running.h. */
void slots_describe(const void *slots, struct mq_buf *);

#endif
