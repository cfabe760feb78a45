/*
 * The job log: a line for each run that has ended, in the columns of GNU parallel's
 * job log where they mean the same:
 *
 *	Endtime Queue Id Attempt Slot Host JobRuntime Exitval Verdict Text
 *
 * Tabs separate the columns, and "-" is an empty one.  Each line is written by one
 * write(2) to the end of the file, so that many consumers can share it.
 */
#ifndef MQ_CONSUME_JOBLOG_H
#define MQ_CONSUME_JOBLOG_H

#include <stdbool.h>

struct joblog {
	const char *path; /* NULL: no log */
	const char *host;
	int fd;
	int error; /* errno of the last write; 0: none */
	bool torn; /* the last line was cut */
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
void joblog_init(struct joblog *, const char *path, const char *host);
/* Opens the file anew; if that fails, goes on with the old one. */
void joblog_reopen(struct joblog *);
/* Does nothing without a log.  A failure is said, once until a line is written. */
void joblog_write(struct joblog *, const struct job *);
void joblog_end(struct joblog *);

#endif
