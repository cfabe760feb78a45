/* The process module starts the command with its directory, environment and pipes.  The
 * module owns the standard error of the runs, and the logs.  The module never judges a
 * run, and knows no server. */
#ifndef PROCESS_H
#define PROCESS_H

#include <sys/stat.h>

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "mq-consume/fact.h"
#include "process/process.h"

/* A run: of a message, of a batch, or of a worker that stays. */
struct run_info {
	const struct message *message; /* the first; NULL: worker */
	int batch;		       /* messages; 0: no batch */
	const char *files; /* directory of its attachments; NULL: none */
	/* As of process/process.h. */
	int (*before)(void *arg);
	void *before_arg;
};

/* --- output ------------------------------------------------------------- */

/* A target: where the output of scripts goes, that is our standard output, our
 * standard error, or a log.  A target does not block the loop: while it takes nothing,
 * the pipes of runs are not read, and the scripts block in their writes, as they would
 * without us.  Our own messages and the ends of runs wait in memory.  With --output=lines
 * or runs no more runs start when 1 MiB waits; else more is lost. */

struct piece;	   /* bytes that wait */
struct run_output; /* the pipe of one run */
TAILQ_HEAD(run_output_list, run_output);

struct process;

/* Must not be moved in memory. */
struct target {
	struct process *process;
	int fd;
	bool terminal; /* output in lines or runs is escaped */
	char *name;    /* for messages; free(); NULL: standard error */
	int error;     /* errno of the last write; 0: none */
	STAILQ_HEAD(pieces, piece) pieces;
	size_t lost;		      /* bytes too many to wait */
	bool open_line;		      /* the last byte was no newline */
	bool shown;		      /* a line of target_show() is there */
	ev_io io;		      /* active while bytes wait */
	struct run_output_list queue; /* pipes with bytes for it */
};

/* Shows a line on a terminal, for as long as nothing else is put; NULL: none any more.
 * It is left out while bytes wait, or another line has no end yet. */
void target_show(struct target *, const char *line);

/*
 * The scripts' standard error and, with --log-dir or --output, standard output.  Each
 * run has a pipe.  Its bytes are copied to our standard error, or to the log, and the
 * last ones are kept for the message's history.
 *
 * On its way to the target, output has the form of --output:
 *
 *	live	as it comes
 *	lines	whole lines, each behind the label of its run and a tab
 *	runs	all of a run in one piece, when the run is over
 *
 * With lines or runs, a run has a second pipe for its standard output, unless that
 * goes where its standard error goes: then one pipe keeps their order.
 *
 * A process that a script has left behind may keep the pipe.  Its output is copied
 * as well, but belongs to no run.
 */

/* Bytes of a run's output that are kept; room for a character that is cut, too. */
#define OUTPUT_TAIL (MQ_HISTORY_STDERR + 4)

/* Pipes that outlive their runs. */
#define OUTPUTS_LINGERING_MAX 64

/* To be called first: our own messages go through the target as well. */
void outputs_init(struct process *);
/* The log of a queue goes to this descriptor, which is taken. */
void outputs_log(struct process *, int queue, int fd, const char *path);
/* To be called last.  Copies the output of processes that scripts have left behind; later
 * output is lost. */
void outputs_end(struct process *);

/* Pipes for one run, which go to that log, if there are logs.  ends: the other ends,
 * the caller's: for standard error, and for standard output, which may be the same
 * descriptor, or -1 for ours.  NULL with errno. */
struct run_output *run_output_open(struct process *, int log, int ends[2]);
/* Names the run, before any of its output is read, and writes its command into its log. */
void run_output_label(struct run_output *, const struct run_info *, pid_t);
/* Begins to copy the output as it comes. */
void run_output_listen(struct run_output *);
/* The output since it was forgotten last; as run_output_close(). */
const char *run_output_so_far(struct run_output *);
/* Copies what there is; whether no process can write more. */
bool run_output_ended(struct run_output *);
/* Drops the output kept until now. */
void run_output_forget(struct run_output *);
/* The run is over.  Copies the rest, without waiting, and returns the end of the
 * output: without its last newlines, with '?' for NUL, valid until the next call.  how the
 * run has ended stands in its log; empty: nowhere. */
const char *run_output_close(struct run_output *, const char *how);

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
	/* Set by the caller, and both descriptors to -1. */
	const char *path; /* NULL: no log */
	const char *host;
	char *command; /* for a shell; free() */

	int fd;
	int in;	       /* the same file, to count its lines; -1: it has none */
	off_t counted; /* bytes of it */
	long lines;    /* in these */
	int error;     /* errno of the last write; 0: none */
	bool torn;     /* the last line was cut */
};

/* Opens the file, or opens it anew.  If that fails, ends the program; or goes on with the
 * old one. */
void joblog_open(struct joblog *);
/* The message has run.  status: as of waitpid(2); -1: the worker goes on.  verdict: in a
 * word.  A failure is said, once until a line is written. */
void joblog_write(struct joblog *, const struct message *, int status,
    const char *verdict, const char *text);
void joblog_close(struct joblog *);

/* --- command ------------------------------------------------------------ */

struct command {
	char *path;   /* absolute, but links are not resolved */
	char *script; /* path, or what stands behind "bash -lc" if --rq */
	char *line;   /* as given, for people; quoted for a shell, cut */
	char *here;   /* our own directory */
};

/* The path of a command, as the shell finds it; allocated.  NULL: none. */
char *command_find(const char *name);

/* --- process -------------------------------------------------------------- */

struct process {
	/* Set by the caller, but for these zeroed. */
	struct ev_loop *loop;
	const struct options *opt;
	struct mq_worker_setup *setup;
	struct facts *facts;

	/* Others read the command, and the host, which histories have, too; both are empty
	 * while printing. */
	struct command command;
	char host[256];

	/* The environment of a script: ours, without the variables of an outer consumer,
	 * plus MQ_* and, for old scripts, RQ's RQ_*.  A message cannot choose names of
	 * variables: headers become MQ_HEADER_..., and traceparent TRACEPARENT. */
	const char **environment;
	size_t inherited, cap;	 /* of it */
	struct mq_buf variables; /* the others, of one run */
	struct joblog joblog;

	/* Where the output of all runs goes, and their pipes. */
	struct target errors;		/* our standard error */
	struct target standard;		/* our standard output, if apart */
	bool apart;			/* runs have a second pipe */
	struct target *logs;		/* by queue; NULL without --log-dir */
	size_t waiting;			/* bytes that no target has taken */
	FILE *stream;			/* what mq_say() writes to */
	struct run_output_list outputs; /* those that are over in that order */
	int lingering_count;		/* of these: whose runs are over */
	char text[OUTPUT_TAIL + 1]; /* returned last by run_output_close() */
};

/* A command that runs, with our ends of its pipes; all are the caller's. */
struct run {
	pid_t pid; /* 0: it does not run */
	int verbs;
	int failure; /* of one with `before`: as in struct mq_worker; else -1 */
	struct run_output *output;
};

/* Takes standard error, and finds the command, if any; ends the program if that
 * fails. */
void process_init(struct process *);
/* So many runs at a time are to have their descriptors, as far as that is allowed.  Can be
 * called again, for more. */
void process_allow(struct process *, int slots);

/* To be called last: waits until standard error has taken all output. */
void process_end(struct process *);

/* Starts the command.  input: its stdin, which is taken; answers: its descriptor
 * 4, which stays the caller's.  Either is -1 if it could not be opened, with
 * errno.  Returns 0, or an errno.  If the message's directory could not be made,
 * *dir is its name, allocated; else NULL. */
int process_start(struct process *, const struct run_info *, int input,
    int answers, struct run *, char **dir);

/* Whether output of earlier runs leaves room for that of another one; FACT_WAKE tells when
 * some is written. */
bool process_may_run(const struct process *);

/* A message has ended: removes its directory if it is empty. */
void process_remove_dir(const struct process *, const char *id);

/* Opens the log files, or opens them anew. */
void process_open_logs(struct process *);

/* -I: why no argument can hold a payload of n bytes; NULL: one may.  No shell sees the
 * payload: it is part of one argument, whatever its bytes are. */
const char *arguments_refuse(const char *payload, size_t n);

#endif
