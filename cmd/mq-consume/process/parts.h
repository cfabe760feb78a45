/*
 * The inside of process.h, for the files of this folder.
 */
#ifndef PROCESS_PARTS_H
#define PROCESS_PARTS_H

#include <sys/queue.h>
#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <ev.h>

#include "base/buf.h"
#include "base/id.h"
#include "message/envelope.h"
#include "message/history.h"
#include "mq-consume/options.h"

/* --- environment -------------------------------------------------------- */

/*
 * The environment of a script: ours, without the variables of an outer consumer,
 * plus MQ_* and, for old scripts, RQ's RQ_*.  A message cannot choose names of
 * variables: headers become MQ_HEADER_..., and traceparent TRACEPARENT.
 */

/* A run: of a message, of a batch, or of a worker that stays. */
struct run_info {
	int log;	   /* index of the queue whose log it writes to */
	const char *queue; /* NULL: any of several */
	int batch;	   /* messages; 0: no batch */
	const char *first; /* id of the first message; NULL: worker */
	const char *id;	   /* of the message; NULL: batch or worker */
	long attempts;	   /* runs before this one, */
	int attempts_max;  /* of so many */
	const struct mq_envelope *envelope;
	const char *files; /* directory of its attachments; NULL: none */
	/* As of process/process.h. */
	int (*before)(void *arg);
	void *before_arg;
	bool stamped; /* the header is only the id, and not in the envelope */
};

struct environment {
	char host[256];
	const char **list;
	size_t fixed_count, cap; /* of list */
	struct mq_buf fixed, text;
	struct mq_buf url; /* that of the host, then of a message */
	size_t host_len;   /* of the URL of the host */
};

/* script: its absolute path. */
void environment_init(struct environment *, const char *script);
void environment_end(struct environment *);

/* The environment of one run, valid until the next call; real: the script
 * without links; dir: where it runs. */
char *const *environment_of(struct environment *, const struct run_info *,
    const char *real, const char *dir);

/* --- target ------------------------------------------------------------- */

/*
 * A target: where the output of scripts goes, that is our standard output, our
 * standard error, or a log.  A target does not block the loop.  Bytes that its file
 * does not take at once are kept, and written later.  A patient target keeps all, at
 * most 32 KiB of each piece in memory and the rest in a file; its owner starts no more
 * runs while the target is clogged.  Another one keeps 1 MiB, and the rest is lost.
 */

/* Bytes that wait: a few in memory, more in a file without a name in TMPDIR. */
struct spill {
	TAILQ_ENTRY(spill) link; /* the target's */
	struct mq_buf memory;	 /* all bytes, until there is a file */
	int fd;			 /* -1: no file */
	off_t start, end;	 /* the bytes that are not taken yet */
};

TAILQ_HEAD(spills, spill);

struct run_output; /* the pipe of one run */
TAILQ_HEAD(run_output_list, run_output);

/* Must not be moved in memory. */
struct target {
	struct ev_loop *loop;
	int fd;
	bool whole; /* a file: writes do not block */
	bool own;   /* fd is closed with the target */
	bool patient;
	bool terminal;	       /* output in lines or runs is escaped */
	char *path;	       /* or name; free(); NULL: standard error */
	int error;	       /* errno of the last write; 0: none */
	struct mq_buf kept;    /* bytes not written yet */
	size_t lost;	       /* bytes too many to keep */
	struct spills backlog; /* of a patient one, behind those */
	bool open_line;	       /* the last byte was no newline */
	bool shown;	       /* a line of target_show() is there */
	ev_io io;
	ev_timer more; /* goes on with a long backlog */

	/* The owner's, who sets them after target_init(). */
	void (*ready)(struct target *); /* some of what waited is written */
	struct outputs *outputs;
	struct run_output_list waiting; /* until the target is ready */
	bool full;			/* output could not be kept; said */
};

/* For our own descriptor 1 or 2; or for a log, whose descriptor is taken. */
void target_init(struct target *, struct ev_loop *, int fd, bool patient);
void target_init_log(
    struct target *, struct ev_loop *, int fd, const char *path, bool patient);
/* Goes on with a new file of the same path, whose descriptor is taken. */
void target_reopen(struct target *, int fd);
/* Nothing waits. */
bool target_ready(const struct target *);
/* Writes n bytes, now or later; they stay together. */
void target_put(struct target *, const char *, size_t n);
/* The same with all bytes of a spill, which is taken. */
void target_move(struct target *, struct spill *);
/* A stream into the target, for whole lines; for fclose(3). */
FILE *target_stream(struct target *);
/*
 * Shows a line on a terminal, for as long as nothing else is put; NULL: none any more.
 * It is left out while bytes are kept, or another line has no end yet.
 */
void target_show(struct target *, const char *line);
/* So much waits that no more runs should start. */
bool target_clogged(const struct target *);
/* Writes what waits, while some is taken within 5 s and no signal comes; closes and
 * frees. */
void target_end(struct target *);

/* An empty one, to be moved to a target. */
struct spill *spill_new(void);
/* Appends n bytes; or adds none, and returns false with errno. */
bool spill_add(struct spill *, const void *, size_t n);

/* --- rq ----------------------------------------------------------------- */

/*
 * --rq: the directory that RQ gives a script.  DIR/ID has
 *
 *	job	where the script runs, kept over its attempts
 *	msg	the message, as RQ writes it
 *	attach	its attachments
 */

/* Makes DIR/ID/job, which *dir becomes instead of DIR/ID.  0, or -1 with errno. */
int rq_make_dir(char **dir);
/* Writes what is beside it, from the environment of the run.  0, or -1 with errno. */
int rq_fill_dir(const char *job, char *const *environment);
/* Removes what is in DIR/ID, but for what a script has left. */
void rq_empty_dir(const char *dir);

/* --- run-output --------------------------------------------------------- */

/*
 * The scripts' standard error and, with --log-dir or --output, standard output.  Each
 * run has a pipe.  Its bytes are copied to our standard error, or to the log, and the
 * last ones are kept for the message's history.  While the target is full, the
 * scripts block in their writes, as they would without us.
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

#define OUTPUT_LABEL (MQ_ID_MAX + 16)

/* Bytes of a run's output that are kept; room for a character that is cut, too. */
#define OUTPUT_TAIL (MQ_HISTORY_STDERR + 4)

/* Pipes that outlive their runs. */
#define OUTPUTS_LINGERING_MAX 64

/* Where the output of all runs goes, and their pipes. */
struct outputs {
	struct ev_loop *loop;
	enum output_form form;
	struct target errors;	/* our standard error */
	struct target standard; /* our standard output, if apart */
	bool apart;		/* runs have a second pipe */
	struct target *logs;	/* NULL without --log-dir */
	int log_count;
	FILE *stream;			  /* what mq_say() writes to */
	struct run_output_list running;	  /* whose runs go on */
	struct run_output_list lingering; /* whose runs are over */
	int lingering_count;
	void (*flows)(void *arg); /* less output waits; NULL: nobody asks */
	void *arg;
	char text[OUTPUT_TAIL + 1]; /* returned last by run_output_close() */
};

/* To be called first: our own messages go through the target as well. */
void outputs_init(struct outputs *, struct ev_loop *, enum output_form);
/* Log i of n goes to this descriptor, which is taken. */
void outputs_log(struct outputs *, int i, int n, int fd, const char *path);
/* Whether so much output waits that no run should start. */
bool outputs_clogged(const struct outputs *);
/*
 * To be called last.  Copies the output of processes that scripts have left
 * behind; later output is lost.
 */
void outputs_end(struct outputs *);

/* Pipes for one run, which go to that log, if there are logs.  ends: the other ends,
 * the caller's: for standard error, and for standard output, which may be the same
 * descriptor, or -1 for ours.  NULL with errno. */
struct run_output *run_output_open(struct outputs *, int log, int ends[2]);
/* What stands before lines of the run: see above. */
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
