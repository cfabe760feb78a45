/*
 * How the programs of runs are started, fed, watched, ended and noted, whatever they are
 * for.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "mq-consume/options.h"
#include "parts.h"
#include "process/process.h"

/* --- command ------------------------------------------------------------ */

/*
 * A command: where it is, and where it runs.
 */

struct command {
	char **argv;
	char *path;   /* absolute, but links are not resolved */
	char *script; /* the same, behind a prefix such as "bash -lc" if --rq */
	bool rq;      /* its directories are those of RQ */
	char *line;   /* as given, for people; quoted for a shell, cut */
	char *here;   /* our own directory */
	const char *work_dir; /* --work-dir; NULL: none */
};

/* The path of a command, as the shell finds it; allocated.  NULL: none. */
char *command_find(const char *name);

/* Appends a word to a command line, quoted for a shell. */
void command_add_word(struct mq_buf *line, const char *word);

/* --- process -------------------------------------------------------------- */

/*
 * The process module starts the command with its directory, environment and
 * pipes.  The module owns the standard error of the runs, and the logs.
 *
 * The module calls only common/base, common/process and the envelope of
 * common/message.  The module never judges a run, and knows no queue or server.
 */

struct process {
	const struct options *opt;
	struct mq_worker_setup *setup;
	struct outputs outputs;
	struct command command;		/* empty while printing */
	struct environment environment; /* empty while printing */
};

/* How a run is called in logs and before lines; empty: nobody needs that. */
struct run_log {
	char label[OUTPUT_LABEL]; /* id, ID+N of a batch, or worker PID */
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

/* --- arguments ---------------------------------------------------------- */

/*
 * -I: the payload as an argument.  No shell sees it: a payload is part of one
 * argument, whatever its bytes are.
 */

/* Whether the token is in an argument behind the command's name. */
bool arguments_have(char *const *argv, const char *token);

/* Why no argument can hold these n bytes; NULL: one may. */
const char *arguments_refuse(const char *payload, size_t n);

/*
 * The command with the payload in place of each token, but for the command's name
 * and without one newline at the payload's end; allocated in one piece.  The payload
 * must be one that arguments_refuse() lets pass.  NULL with errno E2BIG: the
 * kernel takes no argument or no command line of that length.
 */
char **arguments_fill(
    char *const *argv, const char *token, const char *payload, size_t n);

/* --- joblog ------------------------------------------------------------- */

/*
 * The job log: a line for each run that has ended, in the columns of GNU parallel's
 * job log, and behind them:
 *
 *	Seq Host Starttime JobRuntime Send Receive Exitval Signal Command
 *	# Queue Id Attempt Slot Verdict Text
 *
 * Tabs separate the columns, and "-" is an empty one.  The "#" makes a comment of our
 * columns, since parallel --retry-failed gives all that begins with Command to a shell.
 * Each line is written by one write(2) to the end of the file, so that many consumers
 * can share it.
 */

struct joblog {
	const char *path; /* NULL: no log */
	const char *host;
	char *command; /* for a shell */
	int fd;
	int in;	       /* the same file, to count its lines; -1: it has none */
	off_t counted; /* bytes of it */
	long lines;    /* in these */
	int error;     /* errno of the last write; 0: none */
	bool torn;     /* the last line was cut */
};

struct job {
	const char *queue, *id, *verdict, *text;
	long attempt;
	int slot; /* from 1 */
	double seconds;
	int status; /* as of waitpid(2); -1: the worker goes on */
};

/* path: may be NULL.  Ends the program if the file cannot be opened.  host stays the
 * caller's. */
void joblog_init(
    struct joblog *, const char *path, const char *host, char *const *command);
/* Opens the file anew; if that fails, goes on with the old one. */
void joblog_reopen(struct joblog *);
/* Does nothing without a log.  A failure is said, once until a line is written. */
void joblog_write(struct joblog *, const struct job *);
void joblog_end(struct joblog *);

#endif
