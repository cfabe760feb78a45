/*
 * Where output goes that must not keep the loop waiting: our standard error,
 * or a log file.  What it does not take at once is kept, and written when it
 * does.  A sink stays where it was made.
 */
#ifndef MQ_CONSUME_SINK_H
#define MQ_CONSUME_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <ev.h>

#include "base/buf.h"

struct sink {
	struct ev_loop *loop;
	int fd;
	bool whole;	    /* writes to it do not block: a file */
	bool own;	    /* fd is to be closed with it */
	char *path;	    /* free(); NULL: standard error */
	int error;	    /* why the last write failed; 0: it did not */
	struct mq_buf kept; /* not written yet */
	size_t lost;	    /* bytes that were too much to be kept */
	ev_io io;
	void (*ready)(void *arg); /* nothing is kept any more; set by its
				  * maker */
	void *arg;
};

/* For standard error. */
void sink_init_stderr(struct sink *, struct ev_loop *);

/* For a file; the sink takes the descriptor and a copy of the path. */
void sink_init(struct sink *, struct ev_loop *, int fd, const char *path);

/* Goes on with another file of the same path. */
void sink_move(struct sink *, int fd);

/* False: what is put now has to be kept, so it is better not to. */
bool sink_ready(const struct sink *);

/*
 * Writes or keeps n bytes; no more than a megabyte is kept, the rest is lost,
 * and that is told later.  What cannot be written, as there is no room on the
 * disk or nobody reads it, is lost, too; for a file that is told at once.
 */
void sink_put(struct sink *, const void *, size_t n);

/* A line buffered stream that puts; fclose(3) it.  Ends the program when there
 * is no memory. */
FILE *sink_stream(struct sink *);

/*
 * Writes what is kept, as long as any of it is taken within five seconds and
 * no signal comes, and frees what the sink has.
 */
void sink_end(struct sink *);

#endif
