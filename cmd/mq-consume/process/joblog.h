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
#ifndef MQ_CONSUME_JOBLOG_H
#define MQ_CONSUME_JOBLOG_H

#include <stdbool.h>
#include <sys/types.h>

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
