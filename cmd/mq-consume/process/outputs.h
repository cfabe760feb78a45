/*
 * Where the output of all runs goes: our standard error, the logs of --log-dir and,
 * with --output lines or runs, our standard output.
 */
#ifndef MQ_CONSUME_OUTPUTS_H
#define MQ_CONSUME_OUTPUTS_H

#include <stdbool.h>
#include <stdio.h>

#include "run-output.h"

struct outputs {
	struct run_outputs runs;
	struct output_target errors;   /* our standard error */
	struct output_target standard; /* our standard output, if apart */
	bool apart;		       /* runs have a second pipe */
	struct output_target *logs;    /* NULL without --log-dir */
	int log_count;
	FILE *stream; /* what mq_say() writes to */
};

/* To be called first: our own messages go through the target as well. */
void outputs_init(struct outputs *, struct ev_loop *, enum output_form);

/*
 * To be called last.  Copies the output of processes that scripts have left
 * behind; later output is lost.
 */
void outputs_end(struct outputs *);

/* Log i of n goes to this descriptor, which is taken. */
void outputs_log(struct outputs *, int i, int n, int fd, const char *path);

bool outputs_has_logs(const struct outputs *);

/* Whether so much output waits that no run should start. */
bool outputs_clogged(const struct outputs *);

/* Pipes for one run, which go to log i, if there are logs.  ends: the other ends, the
 * caller's: for standard error, and for standard output, which may be the same
 * descriptor, or -1 for ours.  NULL with errno. */
struct run_output *outputs_open_run(struct outputs *, int i, int ends[2]);

#endif
