/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* For files of this folder. */
#ifndef MQ_CONSUME_EXECUTOR_PARTS_H
#define MQ_CONSUME_EXECUTOR_PARTS_H

#include "base/timer.h"
#include "executor.h"
#include "mq-consume/process/process.h"

struct requests;

/* --- rest.c: commands that fail ----------------------------------------------- */

/* If the command could not run for this many different messages in a row, the command is broken,
 * not the messages. */
#define BROKEN_RUNS 10

struct broken_runs {
	int count; /* messages in a row */
	char ids[BROKEN_RUNS][MQ_ID_MAX + 1];
};

/* A run of the message has ended; broken: the command could not run.  Returns whether this run
 * shows that the command is broken. */
bool broken_runs_add(struct broken_runs *, const char *id, bool broken);
/* Whether the command is broken, and no run has ended otherwise since. */
bool broken_runs_are_many(const struct broken_runs *);
/* Seconds that a slot rests after some failures in a row. */
double rest_s(const struct options *, int failures);

/* --- slots -------------------------------------------------------------------- */

/* A slot is a place where a command runs, for run.c and stream.c.  Messages are in a slot from
 * the start of their run until their verdict. */

/* The standard input of a stream worker: a pipe.  Messages are written as the worker reads;
 * FIONREAD tells how much has been read. */
struct worker_input {
	int fd;	   /* write end of the pipe; -1: closed */
	int other; /* a read end of ours, once fd is closed; -1: closed */
	bool last; /* no more messages come */
	bool cut;  /* the worker no longer reads the pipe */
	struct mq_buf out;
	size_t start;	/* bytes of out that have been written */
	size_t written; /* bytes in all */
	size_t read;	/* bytes that the worker had read at the last look */
	ev_io room;	/* active while out waits for the pipe */
};

struct stream_worker {
	struct worker_input input;
	struct mq_buf unparsed; /* verbs */
	double heard_at;	/* monotonic time of the last verbs */
	bool silence_said;	/* since then */
	bool terminated;	/* timed out, and sent TERM */
	const struct message
	    *timed_out;		    /* message on which it did; NULL: none */
	bool verbs_closed;	    /* the worker has closed descriptor 3 */
	const char *protocol_error; /* NULL: none */
	long judged;		    /* messages in its life */
	double message_s;	    /* smoothed seconds a message; 0: unknown */
	double wait_s;		    /* seconds to the next start; 0: none */
};

struct slot {
	struct executor *executor;
	struct messages messages; /* by `line`, in the order of their starts */
	int count;		  /* messages */
	size_t bytes;		  /* elements of the messages */
	TAILQ_ENTRY(slot) free;
	bool is_free; /* listed: no message, no rest */
	struct run run;
	int status;		   /* last run, as of waitpid(2) */
	struct mq_answers answers; /* the worker's descriptor 4 */
	struct requests *requests;
	bool waits;	    /* for answers to its requests */
	double born;	    /* monotonic time of the start of the command */
	double started;	    /* monotonic time of the run, or the last verb */
	int64_t started_ms; /* unix time; 0: unknown */
	double ran_s;	    /* seconds of the last run, or for the last verb */
	bool timed_out;
	bool killed;	      /* to stop: its messages go back */
	int failures;	      /* in a row */
	struct mq_timer rest; /* after failures */
	struct mq_child child;
	ev_io verbs_io;
	struct mq_timer patience; /* until its pipes are watched */
	struct mq_timer timer;	  /* --timeout, then from TERM to KILL */
	struct mq_timer restart;  /* stream: until the next worker */
	struct mq_verbs verbs;	  /* batch: with those about each message */
	struct stream_worker worker;
};

TAILQ_HEAD(slot_list, slot);

/* --- printing ----------------------------------------------------------------- */

/*
 * Printing, in place of a command.  Payloads are written to stdout.  A message is acked when
 * its last byte is written; if stdout is a pipe, when the reader has taken that byte: bytes in
 * a pipe are lost with the reader.  With --at-most-once, a message is acked first, and its
 * payload is written when the ack is confirmed.
 *
 * FIONREAD says how many bytes are still in the pipe.  No event tells that bytes were taken,
 * unless the pipe was full.  So a timer looks: less often while nothing moves, not at all while
 * the pipe is empty.  A full pipe becomes ready only for whole pages; each tick looks for the
 * rest.
 */

struct printer {
	int fd;
	bool whole;		 /* long writes do not block */
	bool piped;		 /* FIONREAD tells what the reader has taken */
	bool terminal;		 /* control bytes are escaped */
	bool lost;		 /* stdout cannot be written any more */
	size_t written;		 /* bytes */
	size_t read;		 /* bytes that the reader has taken */
	double look_s;		 /* seconds until the next look */
	ev_io reader;		 /* tells when the reader is gone */
	struct mq_timer timer;	 /* until the next look */
	struct messages printed; /* not done, in order */
	long arrived;		 /* messages */
	int acked;		 /* messages acked first, in this turn */
	struct mq_buf out;
	size_t start; /* bytes of out already written */
	ev_io room;   /* active while there is output */
};

/* Without a command: finds out what standard output is. */
void print_init(struct executor *);

/* --- the executor ---------------------------------------------------------------- */

/* A way of running messages; its functions are as those of executor.h. */
struct executor_table {
	struct executor_way way;
	bool (*wants)(
	    struct executor *, const struct start_terms *, int *queue);
	bool (*take)(struct executor *, struct message *);
	void (*begin)(struct executor *); /* NULL: take() begins the run */
	void (*started)(struct executor *, const struct start_terms *);
	void (*stop)(struct executor *);
	long (*room)(const struct executor *, int queue, bool careful);
	void (*tick)(struct executor *);

	/* With slots, which are the arguments, or the data of the io. */
	void (*on_verbs)(struct ev_loop *, ev_io *, int events);
	void (*on_timeout)(void *slot);
	mq_child_ended *on_ended;
	void (*answered)(struct slot *, bool all);
};

extern const struct executor_table executor_fork, executor_batch,
    executor_stream, executor_print;

struct executor {
	struct ev_loop *loop;
	const struct options *opt;
	struct hand *hand;
	struct facts *facts;
	struct mq_children *children;
	struct process *process;
	const struct command *command;
	struct duplicates *duplicates;
	struct mq_server *server;
	const struct executor_table *table;
	struct executor_way way;
	struct printer printer;
	bool stopping; /* the consumer is to end */

	/* Slots; not used while messages are printed. */
	int batch; /* messages a run */
	struct slot *all;
	int made;	       /* slots initialised, from the first */
	int limit;	       /* slots that may be in use */
	int busy;	       /* slots that run, or wait for answers */
	int resting;	       /* slots that rest after failures */
	int *runs;	       /* busy slots for each queue */
	bool slots_differ;     /* queues have different numbers of slots */
	struct slot_list free; /* the last busy one first */
	struct slot *filled;   /* gets the next message */
	struct mq_buf input;   /* the batch for `filled` */
	double run_s;	       /* smoothed seconds of a run; 0: unknown */
	double last_end;       /* steady time when a slot became free last */
	bool starved;	       /* no process could start: wait for a tick */
	bool cannot_fork;      /* no process has started since then; said */
	struct broken_runs broken_runs;
	struct mq_timer batch_timer; /* until a batch has waited long enough */
	double batch_due;	     /* steady time at which the timer fires */
};

/* --- slot.c: messages of slots ------------------------------------------------- */

/* Makes a zeroed slot ready for use. */
void slot_init(struct slot *, struct executor *, int number);
/* Appends a running message. */
void slot_add(struct slot *, struct message *);
/* A message has ended, and leaves the slot.  errors: the end of the run's stderr. */
void slot_end(struct slot *, struct message *, const struct mq_verdict *,
    const char *errors);
/* The run of a message has ended, but the message is to go back by slot_return(). */
void slot_break_off(struct slot *, struct message *, const struct mq_verdict *,
    const char *errors);
/* Returns a message, or all, as if it had not been started. */
void slot_return(struct slot *, struct message *);
void slot_return_all(struct slot *);

/* --- slot.c: room -------------------------------------------------------------- */

/* Whether a message could start now, given a free slot. */
bool slots_may_start(const struct executor *, const struct start_terms *);
/* How many slots could start now, for any queue or for one; may be below 0. */
long slots_idle(const struct executor *);
long slots_idle_for(const struct executor *, int queue);
/* A run of the queue begins (1), or ends (-1); 0: its rules have changed. */
void slots_count(struct executor *, int queue, int n);
/* If no slot became free for 1 s, has unstarted messages given back: another consumer may have
 * time for them.  Returns whether it did. */
bool slots_return_stale(struct executor *, bool idle);
/* A timer's callback: wakes the engine. */
void executor_wake(void *executor);

/* --- slot.c: runs -------------------------------------------------------------- */

/* Starts the command for the messages of the slot, or a stream worker.  input: its stdin, which
 * is taken; -1: not opened, with errno.  False: the command could not be started, and the
 * messages went back or have ended. */
bool slot_start(struct slot *, int input);
/* The command could not be started: the messages go back, or (too long) the message ends. */
void slot_not_started(struct slot *, int error);
/* Begins to watch the pipes of the command. */
void slot_listen(struct slot *);
/* Sets the timer of the slot, in seconds; 0: stops it. */
void slot_set_timer(struct slot *, double after);
/* Closes the output of a command that has ended, and logs how it did; returns the end of its
 * stderr, as run_output_close(). */
const char *slot_close_output(struct slot *);
/* Whether a verdict is a success or a failure; among several, the greatest counts. */
enum slot_success { SLOT_NEITHER, SLOT_FAILURE, SLOT_SUCCESS };
enum slot_success slot_success_of(enum mq_verdict_kind);
/* After a failure: whether our standard output has lost its reader, which would explain the
 * failure.  If so, the consumer ends, and the caller returns the message. */
bool executor_unread(struct executor *);
/* A run, whose first message this is, has ended with the verdict: says it if the command is
 * broken. */
void slot_ran(struct slot *, const struct message *, const struct mq_verdict *);
/* A run has ended: after failures the slot may rest. */
void slot_judged(struct slot *, enum slot_success);

#endif
