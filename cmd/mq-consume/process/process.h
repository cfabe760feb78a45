/*
 * The process module starts the command with its directory, environment and
 * pipes.  The module owns the standard error of the runs, and the logs.
 *
 * The module calls only common/base, common/process and the envelope of
 * common/message.  The module never judges a run, and knows no queue or server.
 */
#ifndef MQ_CONSUME_PROCESS_H
#define MQ_CONSUME_PROCESS_H

#include "command.h"
#include "environment.h"
#include "mq-consume/options.h"
#include "outputs.h"
#include "process/worker.h"

struct process {
	const struct options *opt;
	struct mq_worker_setup *setup;
	struct outputs outputs;
	struct command command;		/* empty while printing */
	struct environment environment; /* empty while printing */
};

/* How a run is called in logs and before lines; empty: nobody needs that. */
struct run_log {
	char label[GATHER_LABEL]; /* id, ID+N of a batch, or worker PID */
	char what[32];
};

/* A command that runs, with our ends of its pipes; all are the caller's. */
struct run {
	pid_t pid;
	int verbs;
	int failure; /* of one with `before`: as in struct mq_worker; else -1 */
	struct run_output *output;
	struct run_log log;
};

/* Takes standard error, and finds the command, if any; ends the program if that
 * fails. */
void process_init(struct process *, struct mq_worker_setup *, struct ev_loop *,
    const struct options *);
/* So many runs at a time are to have their descriptors. */
void process_allow(struct process *, int slots);

/* To be called last: waits until standard error has taken all output. */
void process_end(struct process *);

/*
 * Starts the command.  input: its stdin, which is taken; answers: its descriptor
 * 4, which stays the caller's.  Either is -1 if it could not be opened, with
 * errno.  Returns 0, or an errno.  If the message's directory could not be made,
 * *dir is its name, allocated; else NULL.
 */
int process_start(struct process *, const struct run_info *, int input,
    int answers, struct run *, char **dir);

/* The run is over: its log says how it ended.  As run_output_close(). */
const char *process_close_output(struct process *, struct run_output *,
    const struct run_log *, const char *how);

/* Whether output of earlier runs leaves room for that of another one. */
bool process_may_run(const struct process *);
/* flows(arg) will be called when some of that output is written. */
void process_on_flow(struct process *, void (*flows)(void *arg), void *arg);

/* A message has ended: removes its directory if it is empty. */
void process_remove_dir(const struct process *, const char *id);

/* Shows a line on standard error, which is a terminal, until something else is written;
 * NULL: none any more. */
void process_show(struct process *, const char *line);

/* Opens the log files, or opens them anew. */
void process_open_logs(struct process *);

/* The command's absolute path, for people. */
const char *process_script(const struct process *);

/* The command as it was given, in one line, for people. */
const char *process_command(const struct process *);

/* The host's name for scripts and histories; empty while printing. */
const char *process_host(const struct process *);

#endif
