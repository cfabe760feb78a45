/*
 * How messages are run, or printed: one table for the modes, and what the engine must know
 * of each.
 */
#ifndef EXECUTOR_H
#define EXECUTOR_H

#include <stdbool.h>

#include <ev.h>

#include "base/buf.h"
#include "message/verdict.h"
#include "mq-consume/attachments/attachments.h"
#include "mq-consume/duplicates/requests.h"
#include "mq-consume/inbox/inbox.h"
#include "mq-consume/message.h"
#include "mq-consume/options.h"
#include "mq-consume/outbox/outbox.h"
#include "mq-consume/policy.h"
#include "mq-consume/process/process.h"
#include "mq-consume/session/session.h"
#include "process/process.h"

/* --- executor -------------------------------------------------------------- */

/*
 * The executor runs messages, in one of four ways, each with a table:
 *
 *	fork.c		one process a message
 *	batch.c		one process for several messages
 *	stream.c	workers that stay
 *	print.c		printing, without a command
 *
 * An executor takes messages from the inbox, asks the policy, starts processes,
 * and reports ends.  An executor never claims or settles a message.
 */

struct executor_table {
	bool runs;  /* runs a command, in slots; else messages are printed */
	bool stays; /* its workers must end before the connection leaves */
	bool flows; /* claims before it starts what it has */
	bool many;  /* messages end many at a time */
	bool bulk;  /* a run has several messages of one queue */
	/* work: struct slots, or struct printer. */
	void (*init)(void *work);
	long (*room)(const void *work, int queue);
	bool (*wants_few)(const void *work, int queue); /* NULL: no */
	void (*start)(void *work);
	void (*tick)(void *work);
};

extern const struct executor_table executor_fork, executor_batch,
    executor_stream, executor_print, executor_print_once;

struct slots;
struct printer;

/* Its table says which of the two works. */
struct executor {
	const struct executor_table *table;
	struct slots *slots;
	struct printer *printer;
};

/* Before any other: makes slots, or the printer, ready. */
void executor_init(const struct executor *);
/* The table for these options. */
const struct executor_table *executor_for(const struct options *);
/* How many messages one run has at most. */
int executor_batch_size(const struct options *);

/* How many more messages of a queue are worth claiming; may be below 0. */
long executor_room(const struct executor *, int queue);
/* Whether a claim of fewer messages than are held is worth a round. */
bool executor_wants_few(const struct executor *, int queue);
/* The rules of a queue have changed. */
void executor_resize(const struct executor *);
/* Starts as many messages of the inbox as it can. */
void executor_start(const struct executor *);
/* Returns unbegun messages of a paused queue to the inbox; or of all queues, and
 * with `now` also begun ones. */
void executor_take_back(const struct executor *, int queue);
void executor_take_back_all(const struct executor *, bool now);
/* Another consumer has the message now.  True: the executor will report its end;
 * false: the executor has forgotten the message. */
bool executor_take_away(const struct executor *, struct message *);
/* The ack of a message that is not done yet is confirmed. */
void executor_acked(const struct executor *, const struct message *);
/* Whether acked messages are not done yet. */
bool executor_owes(const struct executor *);
/* How many messages it has; how many commands run or wait for answers. */
int executor_running(const struct executor *);
int executor_busy(const struct executor *);
/* Whether all slots rest after failures. */
bool executor_rests(const struct executor *);
/* Appends the long runs, as of queue/stats.h. */
void executor_describe(const struct executor *, struct mq_buf *);
/* Sends a signal to all commands; but for STOP and CONT, messages that are not done go
 * back. */
void executor_kill(const struct executor *, int sig);
/* Once a second. */
void executor_tick(const struct executor *);
/* Ends workers that stay. */
void executor_stop(const struct executor *);

/* --- out-pipe ----------------------------------------------------------- */

/*
 * Standard output, and how much of it the reader has taken.  Bytes in a pipe are
 * lost with the reader.  So a message is done only when the reader has taken its
 * last byte: FIONREAD says how many bytes are still in the pipe.  No event tells
 * when bytes are taken, unless the pipe was full.  So a timer looks: less often
 * while nothing moves, not at all while the pipe is empty.  A full pipe becomes
 * ready only for whole pages; each tick looks for the rest.
 */

struct out_pipe {
	struct ev_loop *loop;
	int fd;
	bool whole;	/* long writes do not block */
	bool piped;	/* FIONREAD tells what the reader has taken */
	size_t written; /* bytes */
	size_t read;	/* bytes of these that have arrived */
	double look_s;	/* until the next look */
	ev_io reader;	/* tells when the reader is gone */
	ev_timer timer; /* until the next look */
};

/* --- worker-input ------------------------------------------------------- */

/*
 * The standard input of a worker that stays: a pipe.  Messages are written as the
 * worker reads, and FIONREAD tells how much has been read.
 */

struct worker_input {
	struct ev_loop *loop;
	/* Nobody reads the pipe any more. */
	void (*closed)(void *arg);
	void *arg;
	int fd;	   /* our end of the pipe; -1: closed */
	int other; /* a read end, once ours is closed; -1: closed */
	bool last; /* no more messages come */
	bool cut;  /* nobody reads the pipe */
	struct mq_buf out;
	size_t start;	/* bytes of out that have been written */
	size_t written; /* bytes in all */
	size_t read;	/* bytes of these that were read, at the last poll */
	ev_io room;	/* active while out waits for the pipe */
};

/* Opens the pipe, and returns the worker's end; -1 with errno. */
int worker_input_open(struct worker_input *, struct ev_loop *,
    void (*closed)(void *arg), void *arg);
void worker_input_free(struct worker_input *);

/* Whether the input takes more messages. */
bool worker_input_wants(const struct worker_input *);
/* Appends a message; worker_input_flush() writes it, at once or later. */
void worker_input_write(
    struct worker_input *, struct message *, enum mq_framing);
void worker_input_flush(struct worker_input *);
/* No more messages come: the worker finds the end of its input after these. */
void worker_input_last(struct worker_input *);
/* Nobody reads any more: closes the pipe. */
void worker_input_cut(struct worker_input *);
/* Finds out whether anybody reads; if not, calls closed(). */
void worker_input_check(struct worker_input *);
/* Whether our end is closed; no more messages come; nobody reads. */
bool worker_input_ended(const struct worker_input *);
bool worker_input_is_last(const struct worker_input *);
bool worker_input_is_cut(const struct worker_input *);

/* Finds out how much has been read. */
void worker_input_poll(struct worker_input *);
/* Whether some of a message, or all of it, was read at the last poll. */
bool worker_input_partly_read(
    const struct worker_input *, const struct message *);
bool worker_input_read(const struct worker_input *, const struct message *);
/* Takes the last message out again.  False: the worker may read it. */
bool worker_input_take_back(struct worker_input *, const struct message *);

/* --- slots -------------------------------------------------------------- */

/*
 * Slots: the places where commands run, for fork.c, batch.c and stream.c.  A slot
 * has messages in its hand from the start of their run until their verdict.
 */

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
	const struct session *session;
	const struct result_rules *results;
	fact_fn *hear;
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
void slots_resize(struct slots *);
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

/* --- for executor.c --------------------------------------------------------- */

/* Sends a signal to the process groups of all commands, as executor_kill(). */
void slots_kill(struct slots *, int sig);
/* Kills the run of a message, whose end is reported. */
void slots_take_away(struct message *);
/* Appends the long runs, as of queue/stats.h. */
void slots_describe(const struct slots *, struct mq_buf *);
/* Ends workers that stay. */
void slots_stop(struct slots *);

/* --- printer ------------------------------------------------------------ */

/*
 * Printing, in place of a command.  Payloads are written to stdout.  A message is
 * acked when its last byte is written or, if stdout is a pipe, when the reader
 * has taken that byte.  With --at-most-once, a message is acked first, and its
 * payload is written when the ack is confirmed.
 */

struct printer {
	struct ev_loop *loop;
	const struct options *opt;
	struct inbox *inbox;
	struct policy *policy;
	struct outbox *outbox;
	fact_fn *hear;
	void *arg;
	struct out_pipe pipe;
	bool terminal;		 /* stdout is one: control bytes are escaped */
	bool lost;		 /* stdout cannot be written any more */
	struct messages printed; /* not done, in order */
	int running;		 /* count of printed */
	long arrived;		 /* count of messages */
	struct mq_buf out;
	size_t start; /* bytes of out already written */
	ev_io room;   /* active while there is output */
};

void printer_free(struct printer *);

/* As those of the executor.  What is acked first must be printed, and does not go
 * back. */
void printer_take_back(struct printer *, int queue);
void printer_take_back_all(struct printer *, bool now);
void printer_take_away(struct printer *, struct message *);
void printer_acked(struct printer *, const struct message *);
bool printer_owes(const struct printer *);

#endif
