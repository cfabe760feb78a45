/*
 * A sink: output that must not keep the loop waiting, to our standard error or a
 * log file.  Bytes that the file does not take at once are kept, and written when
 * it does.  A sink stays where it was made.
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

/* False: bytes put now would have to be kept, so it is better not to. */
bool sink_ready(const struct sink *);

/*
 * Writes or keeps n bytes.  At most 1 MiB is kept; the rest is lost, which is
 * said later.  Bytes that cannot be written, as the disk is full or nobody reads
 * them, are lost, too; for a file that is said at once.
 */
void sink_put(struct sink *, const void *, size_t n);

/* A line buffered stream that puts; fclose(3) it.  Ends the program when there
 * is no memory. */
FILE *sink_stream(struct sink *);

/*
 * Writes the bytes that are kept, as long as some are taken within 5 s and no
 * signal comes, and frees what the sink has.
 */
void sink_end(struct sink *);

#endif
