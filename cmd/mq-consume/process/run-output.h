/*
 * The scripts' standard error and, with --log-dir or --output, standard output.  Each
 * run has a pipe.  Its bytes are copied to our standard error, or to the log, and the
 * last ones are kept for the message's history.  While the target is full, the
 * scripts block in their writes, as they would without us.
 *
 * With --output lines or runs, a run has a second pipe for its standard output,
 * unless that goes where its standard error goes: then one pipe keeps their order.
 *
 * A process that a script has left behind may keep the pipe.  Its output is copied
 * as well, but belongs to no run.
 */
#ifndef MQ_CONSUME_RUN_OUTPUT_H
#define MQ_CONSUME_RUN_OUTPUT_H

#include <sys/queue.h>

#include <stdbool.h>

#include <ev.h>

#include "gather.h"
#include "message/history.h"

/* Bytes of a run's output that are kept; room for a character that is cut, too. */
#define OUTPUT_TAIL (MQ_HISTORY_STDERR + 4)

/* Pipes that outlive their runs. */
#define OUTPUTS_LINGERING_MAX 64

struct run_output; /* the pipe of one run */
TAILQ_HEAD(run_output_list, run_output);

struct output_target {
	struct target target;
	struct run_outputs *runs;
	struct run_output_list waiting; /* until the target is ready */
};

/* The pipes of all runs. */
struct run_outputs {
	struct ev_loop *loop;
	enum output_form form;
	struct run_output_list running;	  /* whose runs go on */
	struct run_output_list lingering; /* whose runs are over */
	int lingering_count;
	void (*flows)(void *arg); /* less output waits; NULL: nobody asks */
	void *arg;
	char text[OUTPUT_TAIL + 1]; /* returned last by run_output_close() */
};

void run_outputs_init(struct run_outputs *, struct ev_loop *, enum output_form);
/* For a target that has been made. */
void output_target_init(struct output_target *, struct run_outputs *);
/* Copies what there is for a target. */
void run_outputs_copy(struct run_outputs *, const struct output_target *);
/* The last output of processes that outlived their runs. */
void run_outputs_end(struct run_outputs *);

/* --- one run ---------------------------------------------------------------- */

/* Pipes for one run, for standard error and, unless that is NULL, for standard output.
 * The other ends are the caller's.  NULL with errno. */
struct run_output *run_output_open(struct run_outputs *,
    struct output_target *errors, struct output_target *standard, int ends[2]);

/* What stands before lines of the run: see gather.h. */
void run_output_label(struct run_output *, const char *label);

/* Writes a line of ours. */
void run_output_say(struct run_output *, const char *line);

/* Begins to copy the output as it comes. */
void run_output_listen(struct run_output *);

/* The output since it was forgotten last; as run_output_close(). */
const char *run_output_so_far(struct run_output *);

/* Copies what there is; whether no process can write more. */
bool run_output_ended(struct run_output *);

/* Whether no process can write into the pipes, nor into the pipe that `other` reads,
 * and nothing is in any: one call instead of a read of each. */
bool run_output_silent(struct run_output *, int other);

/* Drops the output kept until now. */
void run_output_forget(struct run_output *);

/*
 * The run is over.  Copies the rest, without waiting, and returns the end of the
 * output: without its last newlines, with '?' for NUL, valid until the next call.
 */
const char *run_output_close(struct run_output *);

#endif
