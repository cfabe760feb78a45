/*
 * A sink: output to standard error, standard output or a log file that does not
 * block the loop.  Bytes that the file does not take at once are kept, and written
 * later.  A sink must not be moved in memory.
 */
#ifndef MQ_CONSUME_SINK_H
#define MQ_CONSUME_SINK_H

#include <stdbool.h>
#include <stddef.h>

#include <ev.h>

#include "base/buf.h"

struct sink {
	struct ev_loop *loop;
	int fd;
	bool whole;	    /* a file: writes do not block */
	bool own;	    /* fd is closed with the sink */
	char *path;	    /* or name; free(); NULL: standard error */
	int error;	    /* errno of the last write; 0: none */
	struct mq_buf kept; /* bytes not written yet */
	size_t lost;	    /* bytes too many to keep */
	bool line_open;	    /* the last byte was no newline */
	bool shown;	    /* a line of sink_show() is there */
	ev_io io;
	void (*ready)(void *arg); /* all kept bytes are written; the owner's */
	void *arg;
};

/* For our own standard output or standard error: 1 or 2. */
void sink_init_standard(struct sink *, struct ev_loop *, int which);

/* For a file; the sink takes the descriptor and a copy of the path. */
void sink_init(struct sink *, struct ev_loop *, int fd, const char *path);

/* Goes on with a new file of the same path. */
void sink_move(struct sink *, int fd);

/* False: bytes put now would be kept. */
bool sink_ready(const struct sink *);

/*
 * Writes or keeps n bytes.  At most 1 MiB is kept; the rest is lost, which is said
 * later.  Bytes whose write fails are lost as well; for a file that is said at
 * once.
 */
void sink_put(struct sink *, const void *, size_t n);

/*
 * Shows a line on a terminal, for as long as nothing else is put; NULL: none any more.
 * It is left out while bytes are kept, or another line has no end yet.
 */
void sink_show(struct sink *, const char *line);

/* Writes the kept bytes, while some are taken within 5 s and no signal comes.
 * Whether all are written. */
bool sink_wait(struct sink *);

/* The same; closes and frees. */
void sink_end(struct sink *);

#endif
