/* What the files of this folder share. */
#ifndef MQ_CONSUME_EXECUTOR_PARTS_H
#define MQ_CONSUME_EXECUTOR_PARTS_H

#include "base/timer.h"
#include "executor.h"
#include "mq-consume/process/process.h"

struct requests;

/* --- rest.c: commands that fail ----------------------------------------------- */

/* So many messages in a row say that the command is broken, and not the messages. */
#define BROKEN_RUNS 10

/* Zeroed: there is none. */
struct broken_runs {
	int count; /* messages in a row for which the command could not run */
	char ids[BROKEN_RUNS][MQ_ID_MAX + 1];
};

/* A run of the message has ended; broken: as if the command could not run.  True: the
 * tenth in a row that ended so, each of another message. */
bool broken_runs_add(struct broken_runs *, const char *id, bool broken);
/* Whether ten have ended so, and none otherwise since. */
bool broken_runs_are_many(const struct broken_runs *);
/* How long a slot rests after that many failures in a row, in seconds. */
double rest_s(const struct options *, int failures);

/* --- slots -------------------------------------------------------------------- */

/* Slots: the places where commands run, for run.c and stream.c.  A slot has messages
 * from the start of their run until their verdict. */

/* The standard input of a worker that stays: a pipe.  Messages are written as the
 * worker reads, and FIONREAD tells how much has been read. */
struct worker_input {
	int fd;	   /* our end of the pipe; -1: closed */
	int other; /* a read end, once ours is closed; -1: closed */
	bool last; /* no more messages come */
	bool cut;  /* nobody reads the pipe */
	struct mq_buf out;
	size_t start;	/* bytes of out that have been written */
	size_t written; /* bytes in all */
	size_t read;	/* bytes of these that were read, at the last look */
	ev_io room;	/* active while out waits for the pipe */
};

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
};

struct slot {
	struct executor *executor;
	struct messages messages; /* by `line`, in the order of their starts */
	int count;		  /* of these */
	size_t bytes;		  /* of their elements */
	TAILQ_ENTRY(slot) free;
	bool is_free; /* listed: it has no messages, and does not rest */
	struct run run;
	int status;		   /* of the last run, as of waitpid(2) */
	struct mq_answers answers; /* the worker's descriptor 4 */
	struct requests *requests;
	bool waits;	    /* until its requests are answered */
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
	struct mq_timer timer;	  /* --timeout, then the KILL after the TERM */
	struct mq_timer restart;  /* of a worker that stays */
	struct mq_verbs verbs; /* of a batch: with those about each message */
	struct stream_worker worker;
};

TAILQ_HEAD(slot_list, slot);

/* --- printing ----------------------------------------------------------------- */

/*
 * Printing, in place of a command.  Payloads are written to stdout.  A message is
 * acked when its last byte is written or, if stdout is a pipe, when the reader
 * has taken that byte: bytes in a pipe are lost with the reader.  With
 * --at-most-once, a message is acked first, and its payload is written when the ack
 * is confirmed.
 *
 * FIONREAD says how many bytes are still in the pipe.  No event tells when bytes are
 * taken, unless the pipe was full.  So a timer looks: less often while nothing moves,
 * not at all while the pipe is empty.  A full pipe becomes ready only for whole pages;
 * each tick looks for the rest.
 */

struct printer {
	int fd;
	bool whole;		 /* long writes do not block */
	bool piped;		 /* FIONREAD tells what the reader has taken */
	bool terminal;		 /* stdout is one: control bytes are escaped */
	bool lost;		 /* stdout cannot be written any more */
	size_t written;		 /* bytes */
	size_t read;		 /* bytes of these that have arrived */
	double look_s;		 /* until the next look */
	ev_io reader;		 /* tells when the reader is gone */
	struct mq_timer timer;	 /* until the next look */
	struct messages printed; /* not done, in order */
	long arrived;		 /* count of messages */
	int acked;		 /* first, in this turn */
	struct mq_buf out;
	size_t start; /* bytes of out already written */
	ev_io room;   /* active while there is output */
};

/* Without a command: looks what standard output is. */
void print_init(struct executor *);

/* --- all of it ------------------------------------------------------------------ */

/* A way of running messages; its functions are as those of executor.h. */
struct executor_table {
	struct executor_way way;
	bool (*wants)(
	    struct executor *, const struct start_terms *, int *queue);
	bool (*take)(struct executor *, struct message *);
	void (*begin)(struct executor *); /* NULL: take() does all */
	void (*started)(struct executor *, const struct start_terms *);
	void (*stop)(struct executor *);
	long (*room)(const struct executor *, int queue, bool careful);
	void (*tick)(struct executor *);

	/* Where there are slots, which are the arguments, or the data of the io. */
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

	/* Of slots; none is made while messages are printed. */
	int batch; /* messages for one run */
	struct slot *all;
	int made;	       /* of these are ready for use */
	int limit;	       /* so many may be in use */
	int busy;	       /* that run or wait for answers */
	int resting;	       /* after failures */
	int *runs;	       /* of each queue, */
	bool uneven;	       /* which may have different numbers of them */
	struct slot_list free; /* the last busy one first */
	struct slot *filled;   /* takes the next message */
	struct mq_buf input;   /* of its run: a batch */
	double run_s;	       /* smoothed duration of a run; 0: unknown */
	double last_end;       /* steady time when a slot became free last */
	bool starved;	       /* no process could start: wait for a tick */
	bool starving;	       /* no process has started since; said */
	struct broken_runs broken_runs;
	struct mq_timer batch_timer; /* until a batch has waited long enough, */
	double batch_due;	     /* at this steady time */
};

/* --- slot.c: messages of slots ------------------------------------------------- */

/* Makes a slot ready for use, which is zeroed. */
void slot_init(struct slot *, struct executor *, int number);
/* Appends a message, which is running. */
void slot_take(struct slot *, struct message *);
/* A message has ended, and leaves the slot.  errors: the end of the stderr of its run. */
void slot_end(struct slot *, struct message *, const struct mq_verdict *,
    const char *errors);
/* The same with one that goes back, and does not leave the slot yet. */
void slot_break_off(struct slot *, struct message *, const struct mq_verdict *,
    const char *errors);
/* Returns a message, as if it had not been started. */
void slot_return(struct slot *, struct message *);
/* Returns all. */
void slot_return_all(struct slot *);

/* --- slot.c: room -------------------------------------------------------------- */

/* Whether a message could be started now, if there was a slot. */
bool slots_may_start(const struct executor *, const struct start_terms *);
/* Slots that could start now; may be below 0. */
long slots_idle(const struct executor *);
/* The same of a queue: that it may use. */
long slots_idle_for(const struct executor *, int queue);
/* A run of the queue begins (1), or ends (-1); 0: its rules have changed. */
void slots_count(struct executor *, int queue, int n);
/* Has held messages given back if no slot became free for 1 s: another consumer may
 * have time for them.  True: done. */
bool slots_return_stale(struct executor *, bool idle);
/* Of a timer whose argument is the executor: there may be something to start. */
void executor_wake(void *executor);

/* --- slot.c: runs -------------------------------------------------------------- */

/* Starts the command for the messages of the slot, or a worker that stays.  input: its
 * stdin, which is taken; -1: it could not be opened, with errno.  False: the command could
 * not be started, and the messages went back or have ended. */
bool slot_start(struct slot *, int input);
/* The command of the slot could not be started after all. */
void slot_not_started(struct slot *, int error);
/* From now on the pipes of the command are watched. */
void slot_listen(struct slot *);
/* The timer of the slot fires after so many seconds; 0: never. */
void slot_set_timer(struct slot *, double after);
/* Closes the output of a command that has ended, whose log says how; as
 * run_output_close(). */
const char *slot_close_output(struct slot *);
/* Whether a verdict is a success or a failure; of several, the greater counts. */
enum slot_success { SLOT_NEITHER, SLOT_FAILURE, SLOT_SUCCESS };
enum slot_success slot_success_of(enum mq_verdict_kind);
/* After a failure: whether our standard output has lost its reader, which would explain
 * it.  If so, the consumer ends, and the message goes back. */
bool executor_unread(struct executor *);
/* A run, which began with the message, has ended with the verdict: if so did many, says
 * that the command is broken. */
void slot_ran(struct slot *, const struct message *, const struct mq_verdict *);
/* A run has ended: after failures the slot may rest. */
void slot_judged(struct slot *, enum slot_success);

#endif
