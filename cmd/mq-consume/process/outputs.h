/*
 * The scripts' standard error and, with --log-dir, standard output.  Each run has a
 * pipe.  Its bytes are copied to our standard error, or to the log, and the last
 * ones are kept for the message's history.  While the sink is full, the scripts
 * block in their writes, as they would without us.
 *
 * A process that a script has left behind may keep the pipe.  Its output is copied
 * as well, but belongs to no run.
 */
#ifndef MQ_CONSUME_OUTPUTS_H
#define MQ_CONSUME_OUTPUTS_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdio.h>

#include <ev.h>

#include "message/history.h"
#include "sink.h"

/* Bytes of a run's output that are kept; room for a character that is cut, too. */
#define OUTPUT_TAIL (MQ_HISTORY_STDERR + 4)

/* Pipes that outlive their runs. */
#define OUTPUTS_LINGERING_MAX 64

struct run_output; /* the pipe of one run */
TAILQ_HEAD(run_output_list, run_output);

struct output_target {
	struct sink sink;
	struct run_output_list waiting; /* until the sink is ready */
};

struct outputs {
	struct ev_loop *loop;
	struct output_target errors; /* our standard error */
	struct output_target *logs;  /* NULL without --log-dir */
	int log_count;
	FILE *stream;			  /* what mq_say() writes to */
	struct run_output_list running;	  /* whose runs go on */
	struct run_output_list lingering; /* whose runs are over */
	int lingering_count;
	char text[OUTPUT_TAIL + 1]; /* returned last by run_output_close() */
};

/* To be called first: our own messages go through the sink as well. */
void outputs_init(struct outputs *, struct ev_loop *);

/*
 * To be called last.  Copies the output of processes that scripts have left
 * behind; later output is lost.
 */
void outputs_end(struct outputs *);

/* Log i of n goes to this descriptor, which is taken. */
void outputs_log(struct outputs *, int i, int n, int fd, const char *path);

/* Writes a line into log i, if there are logs. */
void outputs_log_line(struct outputs *, int i, const char *line);

bool outputs_has_logs(const struct outputs *);

/* --- one run ---------------------------------------------------------------- */

/* A pipe for one run, which goes to log i, if there are logs; its other end,
 * *end, is the caller's.  NULL with errno. */
struct run_output *run_output_open(struct outputs *, int i, int *end);

/* Begins to copy the output as it comes. */
void run_output_listen(struct run_output *);

/* The output since it was forgotten last; as run_output_close(). */
const char *run_output_so_far(struct run_output *);

/* Copies what there is; whether no process can write more. */
bool run_output_ended(struct run_output *);

/* Whether no process can write into the pipe, nor into the pipe that `other` reads,
 * and nothing is in either: one call instead of a read of each. */
bool run_output_silent(struct run_output *, int other);

/* Drops the output kept until now. */
void run_output_forget(struct run_output *);

/*
 * The run is over.  Copies the rest, without waiting, and returns the end of the
 * output: without its last newlines, with '?' for NUL, valid until the next call.
 */
const char *run_output_close(struct run_output *);

#endif
