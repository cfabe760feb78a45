/*
 * The executor runs messages, in one of four ways, each with a table:
 *
 *	run.c		one process a message, or for several messages
 *	stream.c	workers that stay
 *	print.c		printing, without a command
 *
 * An executor takes messages from the inbox, asks the policy, starts processes,
 * and reports ends.  An executor never claims or settles a message.
 */
#ifndef EXECUTOR_H
#define EXECUTOR_H

#include "mq-consume/duplicates.h"
#include "mq-consume/outbox/outbox.h"

struct executor;
struct slot;

/* When acks that wait for others leave: once nothing is held, */
enum executor_acks {
	ACKS_AT_ONCE,	/* as each run has one message; */
	ACKS_AT_REST,	/* and nothing runs, as messages end many at a time; */
	ACKS_FOR_OTHERS /* the same, if one holds a key or a group */
};

struct executor_table {
	bool flows; /* claims before it starts what it has */
	enum executor_acks acks;
	/* As of struct requests, with a slot: where there are slots. */
	void (*answered)(void *slot, bool all);
	/* How many more messages of a queue are worth claiming; may be below 0. */
	long (*room)(const struct executor *, int queue);
	/* Starts as many messages of the inbox as it can. */
	void (*start)(struct executor *);
	/* Once a second. */
	void (*tick)(struct executor *);
};

extern const struct executor_table executor_fork, executor_batch,
    executor_stream, executor_print;

void executor_init(struct executor *);
void executor_free(struct executor *);

/* Whether a claim of fewer messages than are held is worth a round. */
bool executor_wants_few(const struct executor *, int queue);
/* The rules of a queue have changed. */
void executor_resize(struct executor *);
/* Returns messages that are printed, of a queue or of all (-1), to the inbox; begun: also
 * those whose output has begun.  What is acked first does not go back. */
void executor_take_back(struct executor *, int queue, bool begun);
/* Another consumer has the message now.  True: the executor will report its end;
 * false: the executor has forgotten the message. */
bool executor_take_away(struct executor *, struct message *);
/* Ends the run of a message for an operator: TERM, and KILL after the grace time; its
 * others go back.  False: no command runs on it. */
bool executor_stop_run(struct executor *, struct message *, enum mq_stop how);
/* The ack of a message that is not done yet is confirmed. */
void executor_acked(struct executor *, const struct message *);
/* Whether acked messages are not done yet. */
bool executor_owes(const struct executor *);
/* Appends the long runs, as of queue/stats.h. */
void executor_describe(const struct executor *, struct mq_buf *);
/* Sends a signal to the process groups of all commands; but for STOP and CONT, messages
 * that are not done go back. */
void executor_kill(struct executor *, int sig);
/* Ends workers that stay. */
void executor_stop(struct executor *);

/* --- what is shared by files of this folder ------------------------------- */

/* Slots: the places where commands run, for run.c and stream.c.  A slot
 * has messages in its hand from the start of their run until their verdict. */

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
	ev_timer restart;
};

struct slot {
	struct executor *executor;
	struct messages hand; /* in order */
	int count;	      /* of hand */
	size_t bytes;	      /* of the elements in hand */
	TAILQ_ENTRY(slot) free;
	bool is_free; /* listed: nothing in hand, and it does not rest */
	struct run run;
	int status;		   /* of the last run, as of waitpid(2) */
	struct mq_answers answers; /* the worker's descriptor 4 */
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
	ev_timer patience;     /* until its pipes are watched */
	ev_timer timer;	       /* --timeout, then the KILL after the TERM */
	struct mq_verbs verbs; /* of a batch: with those about each message */
	struct stream_worker worker;
};

TAILQ_HEAD(slot_list, slot);

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
	ev_timer timer;		 /* until the next look */
	struct messages printed; /* not done, in order */
	long arrived;		 /* count of messages */
	struct mq_buf out;
	size_t start; /* bytes of out already written */
	ev_io room;   /* active while there is output */
};

/* --- all of it ---------------------------------------------------------- */

struct executor {
	/* Set by the caller, but for these zeroed. */
	struct ev_loop *loop;
	const struct options *opt;
	struct inbox *inbox;
	struct policy *policy;
	struct outbox *outbox;
	struct mq_children *children;
	struct process *process;
	struct duplicates *duplicates;
	struct session *session;
	const struct executor_table *table;
	fact_fn *hear;
	void *arg;

	/* Others read these. */
	int running; /* messages in hands, or printed and not done */
	int busy;    /* slots that run or wait for answers */
	int resting; /* slots that do after failures */
	int limit;   /* so many slots may be in use */
	struct printer printer;

	/* Of slots; none is made while messages are printed. */
	int batch; /* messages for one run */
	struct slot *all;
	int made;	       /* of these are ready for use */
	int *runs;	       /* of each queue, */
	bool uneven;	       /* which may have different numbers of them */
	struct slot_list free; /* the last busy one first */
	double run_s;	       /* smoothed duration of a run; 0: unknown */
	double last_end;       /* steady time when a slot became free last */
	bool starved;	       /* no process could start: wait for a tick */
	bool starving;	       /* no process has started since; said */
	ev_timer batch_timer;  /* until a batch has waited long enough */
};

/* Without a command: looks what standard output is. */
void print_init(struct executor *);

/* --- hands ------------------------------------------------------------------ */

/* Starts with a message of the inbox: appends it to the hand; or rejects it.  why: it
 * cannot be run; NULL: it can.  Whether it is in hand. */
bool slot_take(struct slot *, struct message *, const char *why);
/* Takes a message out of the hand. */
void slot_release(struct slot *, struct message *);
/* Returns a message in hand, as if it had not been started. */
void slot_return(struct slot *, struct message *);
/* Returns all, the last first: so the oldest is in front again. */
void slot_return_all(struct slot *);

/* --- room ------------------------------------------------------------------- */

/* Whether a message could be started now. */
bool slots_may_start(const struct executor *);
/* Whether no more messages come, but for those that are held. */
bool slots_have_last(const struct executor *);
/* Gives held messages back if no slot became free for 1 s: another consumer may
 * have time for them.  True: done. */
bool slots_return_stale(struct executor *, bool idle);

/* Of a timer whose data is the executor: there may be something to start. */
void executor_on_time(struct ev_loop *, ev_timer *, int events);

/* --- runs ------------------------------------------------------------------- */

/* A run of the queue begins (1), or ends (-1); 0: its rules have changed. */
void slots_count(struct executor *, int queue, int n);
typedef void slot_io(struct ev_loop *, ev_io *, int events);
typedef void slot_timer(struct ev_loop *, ev_timer *, int events);
/* Starts the command for the messages in hand.  input: its stdin, which is taken;
 * -1: it could not be opened, with errno.  The callbacks have the slot as their data: for
 * its verbs, of slot_listen(); for the timer of the slot, which is not started yet; and
 * for the end.  False: the command could not be started, and the messages went back or
 * were rejected. */
bool slot_start(struct slot *, int input, slot_io *on_verbs,
    slot_timer *on_timeout, mq_child_ended *);
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
 * it.  If so, says it, and stops the consumer; the message goes back. */
bool executor_unread(struct executor *);
/* A run, which began with the message, has ended with the verdict: if so did many, says
 * that the command is broken. */
void slot_ran(struct slot *, const struct message *, const struct mq_verdict *);
/* A run has ended: after failures the slot may rest. */
void slot_judged(struct slot *, enum slot_success);

#endif
