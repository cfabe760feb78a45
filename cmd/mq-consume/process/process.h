/*
 * Processes: starts the command with its directory, environment and pipes, and
 * owns what the runs write to standard error and the logs.  Messages, queues
 * and the server are not its business.
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
	struct command command; /* empty while printing, as the next */
	struct environment environment;
};

/* A command that runs, with our ends of its pipes: the caller's. */
struct run {
	pid_t pid;
	int verbs;   /* never blocks */
	int answers; /* blocks */
	struct run_output *output;
};

/* Takes standard error, and finds the command, if there is one; ends the program
 * if that fails. */
void process_init(struct process *, struct mq_worker_setup *, struct ev_loop *,
    const struct options *);

/* The last of all: waits for what standard error has not taken. */
void process_end(struct process *);

/*
 * Starts the command.  Takes the descriptor input; -1: none could be opened, and
 * errno says why.  Returns 0, or what kept the command from being started; then
 * *dir is the message's directory, allocated, if that could not be made, or
 * NULL.
 */
int process_start(struct process *, const struct run_info *, int input,
    struct run *, char **dir);

/* A message has ended: removes its directory when the script has left nothing
 * there. */
void process_remove_dir(const struct process *, const char *id);

/* After a HUP. */
void process_reopen_logs(struct process *);

/* The command's absolute path, for people. */
const char *process_script(const struct process *);

/* The host's name for scripts and histories; empty while printing. */
const char *process_host(const struct process *);

#endif
