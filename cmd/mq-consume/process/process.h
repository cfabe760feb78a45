/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The process module starts the command with its directory, environment and pipes, and owns the
 * output of the runs, and the logs.  The module never judges a run, and knows no server. */
#ifndef PROCESS_H
#define PROCESS_H

#include <sys/stat.h>

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "mq-consume/fact.h"
#include "process/process.h"

/* A run: of a message, of a batch, or of a stream worker. */
struct run_info {
	const struct message *message; /* the first; NULL: stream worker */
	int batch;		       /* messages; 0: no batch */
	const char *files; /* directory of attachments; NULL: none */
			   /* See process/process.h; NULL: nothing. */
	int (*before)(void *arg);
	void *before_arg;
};

/* --- output ------------------------------------------------------------- */

/* The output of scripts goes to a target: our standard output, our standard error, or a log.  A
 * target does not block the loop: while it takes nothing, the pipes of runs are not read, and
 * the scripts block in their writes, as they would without us.  Our own messages and the ends of
 * runs wait in memory.  If 1 MiB waits, no more runs start if we copy standard output, too; else
 * later bytes of standard error are lost. */

struct kept;	   /* see kept.h */
struct piece;	   /* bytes that wait for a target */
struct run_output; /* the pipe of one run */
TAILQ_HEAD(run_output_list, run_output);

struct process;

/* Must not be moved in memory. */
struct target {
	struct process *process;
	int fd;
	size_t most;   /* bytes of a write that does not block */
	bool terminal; /* output in lines or runs is escaped */
	char *name;    /* for messages; free(); NULL: standard error */
	int error;     /* errno of the last write; 0: none */
	STAILQ_HEAD(pieces, piece) pieces;
	size_t lost;	/* bytes that were too many to wait */
	bool open_line; /* the last byte put was no newline */
	bool shown;	/* a line of target_show() is on the screen */
	ev_io io;	/* active while bytes wait */
	struct run_output_list queue; /* pipes that wait for the target */
};

/* Shows a line on a terminal until anything else is put; NULL: erases the line.  While bytes wait,
 * or an earlier line has no end yet, shows nothing. */
void target_show(struct target *, const char *line);

/*
 * The scripts' standard error and, with --log-dir or --output, standard output.  Each run has a
 * pipe, whose bytes are copied to our standard error, or to the log; the last bytes are kept for
 * the message's history.
 *
  * The form of --output decides how output reaches the target:
 *
 *	live	bytes as they come
 *	lines	whole lines, each behind the label of its run and a tab
 *	runs	the output of a run in one piece, when the run is over
 *
 * With lines or runs, a run has a second pipe for its standard output, unless that has the same
 * target as its standard error: then one pipe keeps the order of both.  With --output-keep, there
 * are always two.
 *
 * A process that a script has left behind may keep the pipe.  Such output is copied as well, but
 * belongs to no run.
 */

/* Bytes of a run's output that are kept, with room for a character that is cut. */
#define OUTPUT_TAIL (MQ_HISTORY_STDERR + 4)

/* Pipes that outlive their runs, at most. */
#define OUTPUTS_LINGERING_MAX 64

/* To be called first: our own messages go through the target as well. */
void outputs_init(struct process *);
/* Sets the descriptor of a queue's log, and takes it. */
void outputs_log(struct process *, int queue, int fd, const char *path);
/* To be called last.  Copies the output of processes that scripts have left behind; their later
 * output is lost. */
void outputs_end(struct process *);

/* With --result, the first bytes of a run's standard output, if a publisher waits for them, or
 * results are kept.  Such a run has a second pipe, too; its bytes also go to a log and are kept
 * as output, but to no other target. */
struct run_result {
	struct mq_buf bytes;
	size_t most; /* bytes */
	bool cut;    /* there were more */
};

/* NULL: nobody wants the result of the message (NULL: none). */
struct run_result *run_result_new(
    const struct options *, const struct message *);
void run_result_add(struct run_result *, const char *, size_t n);
void run_result_free(struct run_result *);

/* Makes the pipes for one run.  log: the queue, if there are logs.  result: stays the caller's,
 * until run_output_close(); NULL: none.  ends: set to the write ends
 * for standard error and standard output, which are the caller's; both may be the same
 * descriptor, and the second may be -1: our own.  NULL with errno. */
struct run_output *run_output_open(
    struct process *, int log, struct run_result *, int ends[2]);
/* Names the run, and logs its command; to be called before its output is read. */
void run_output_label(struct run_output *, const struct run_info *, pid_t);
/* Begins to copy the output as it comes. */
void run_output_listen(struct run_output *);
/* The end of the output since run_output_forget(); as run_output_close() returns it. */
const char *run_output_so_far(struct run_output *);
/* Copies the output in the pipe.  Returns whether no process can write more. */
bool run_output_ended(struct run_output *);
/* Drops the kept output. */
void run_output_forget(struct run_output *);
/* The run is over.  Copies the output in the pipe, without waiting, and returns the end of the
 * output: without its last newlines, with '?' for NUL, valid until the next call.  status: as of
 * waitpid(2).  how: the end of the run, for its log; empty: not logged. */
const char *run_output_close(struct run_output *, int status, const char *how);

/* --- joblog ------------------------------------------------------------- */

/*
 * The job log has a line for each run that has ended: the columns of GNU parallel's job log, then
 * ours:
 *
 *	Seq Host Starttime JobRuntime Send Receive Exitval Signal Command
 *	# Queue Id Attempt Slot Verdict Text
 *
 * Tabs separate the columns, and "-" is an empty one.  parallel --retry-failed gives Command and
 * all that follows to a shell, for which "#" makes a comment of our columns.  Each line is
 * appended by one write(2), so that many consumers can share the file.
 */

struct joblog {
	/* Set by the caller, who also sets both descriptors to -1. */
	const char *path; /* NULL: no log */
	const char *host;
	char *command; /* for a shell; free() */

	int fd;
	int in; /* the file, to count its lines; -1: not a regular file */
	off_t counted; /* bytes whose lines are counted */
	long lines;
	int error; /* errno of the last write; 0: none */
	bool torn; /* the last line written was cut */
};

/* Opens the file.  If that fails, ends the program; but a file opened before stays in use. */
void joblog_open(struct joblog *);
/* Writes a line for a run of the message.  status: as of waitpid(2); -1: the worker goes on.
 * verdict: in a word.  Reports a failure once, until a line is written again. */
void joblog_write(struct joblog *, const struct message *, int status,
    const char *verdict, const char *text);
void joblog_close(struct joblog *);

/* --- command ------------------------------------------------------------ */

struct command {
	char *path;   /* absolute, but links are not resolved */
	char *script; /* path; with --rq, the script that path runs */
	char *line;   /* as given, quoted for a shell, cut: for people */
	char *here;   /* our working directory */
};

/* The path of a command, as the shell finds it; free().  NULL: none. */
char *command_find(const char *name);

/* --- process -------------------------------------------------------------- */

/* Bytes that wait for targets, from which on no more runs start, or more bytes are lost. */
#define WAITING_MAX ((size_t)1 << 20)

struct process {
	/* Set by the caller; all else begins zeroed. */
	struct ev_loop *loop;
	const struct options *opt;
	struct mq_worker_setup *setup;
	struct facts *facts;
	struct kept *kept; /* NULL: output is not kept */

	/* Read by other modules; empty while printing. */
	struct command command;
	char host[256];

	/* The environment of a script: ours, without the variables of an outer consumer, plus
	 * MQ_* and, for old scripts, RQ's RQ_*.  A message cannot choose names of variables:
	 * headers become MQ_HEADER_..., and traceparent TRACEPARENT. */
	const char **environment;
	size_t inherited, cap;	 /* variables of ours; allocated */
	struct mq_buf variables; /* text of the variables of one run */
	struct joblog joblog;

	/* Targets and pipes of all runs. */
	struct target errors;	/* our standard error */
	struct target standard; /* our standard output, if apart */
	bool
	    apart; /* standard output of runs goes elsewhere than their errors */
	struct target *logs;		/* by queue; NULL without --log-dir */
	size_t waiting;			/* bytes that no target has taken */
	FILE *stream;			/* for mq_say(), to `errors` */
	struct run_output_list outputs; /* ended runs in that order */
	int lingering_count;		/* outputs of ended runs */
	char text[OUTPUT_TAIL + 1]; /* returned last by run_output_close() */
};

/* A running command, with our ends of its pipes; all are the caller's. */
struct run {
	pid_t pid; /* 0: not running */
	int verbs;
	int failure; /* with `before`: see struct mq_worker; else -1 */
	struct run_output *output;
	struct run_result *result; /* NULL: not wanted */
};

/* Takes over standard error, and finds the command; ends the program if that fails. */
void process_init(struct process *);
/* Raises the limit of descriptors, as far as allowed, for this many runs at once. */
void process_allow(struct process *, int slots);

/* To be called last: waits until standard error has taken all output. */
void process_end(struct process *);

/* Starts the command.  input: its stdin, which is taken; answers: its descriptor 4, which stays
 * the caller's; -1: not opened, with errno.  Returns 0, or an errno.  *dir: the directory of the
 * message, if it could not be made, free(); else NULL. */
int process_start(struct process *, const struct run_info *, int input,
    int answers, struct run *, char **dir);

static inline bool
is_live(const struct process *p)
{
	return p->opt->output == OUTPUT_LIVE;
}

/* Whether output that waits too long is lost: with --output=live, if only standard error is ours to
 * copy. */
static inline bool
drops_output(const struct process *p)
{
	return is_live(p) && p->kept == NULL;
}

/* Whether waiting output leaves room for another run; FACT_WAKE tells when bytes are written. */
static inline bool
process_may_run(const struct process *p)
{
	return drops_output(p) || p->waiting < WAITING_MAX;
}

/* After the end of a message: removes its directory, if that is empty. */
void process_remove_dir(const struct process *, const char *id);

/* Opens the log files, again if they are open. */
void process_open_logs(struct process *);

/* -I: why no argument can hold a payload of n bytes; NULL: it may fit.  No shell sees the payload:
 * it is part of one argument, whatever its bytes are. */
const char *arguments_refuse(const char *payload, size_t n);

#endif
