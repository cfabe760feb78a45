/*
 * Standard output, and how much of it the reader has taken.  Bytes in a pipe are
 * lost with the reader.  So a message is done only when the reader has taken its
 * last byte: FIONREAD says how many bytes are still in the pipe.  No event tells
 * when bytes are taken, unless the pipe was full.  So a timer looks: less often
 * while nothing moves, not at all while the pipe is empty.  A full pipe becomes
 * ready only for whole pages; each tick looks for the rest.
 */
#ifndef MQ_CONSUME_OUT_PIPE_H
#define MQ_CONSUME_OUT_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#include <ev.h>

struct out_pipe {
	struct ev_loop *loop;
	/* The reader may have taken bytes. */
	void (*taken)(void *arg);
	/* The reader is gone. */
	void (*gone)(void *arg);
	void *arg;
	int fd;
	bool whole;	/* long writes do not block */
	bool piped;	/* FIONREAD tells what the reader has taken */
	size_t written; /* bytes */
	size_t read;	/* bytes of these that have arrived */
	double look_s;	/* until the next look */
	ev_io reader;	/* tells when the reader is gone */
	ev_timer timer; /* until the next look */
};

/* Returns the descriptor to be written to. */
int out_pipe_init(struct out_pipe *, struct ev_loop *, void (*taken)(void *arg),
    void (*gone)(void *arg), void *arg);
/* Stops the looks. */
void out_pipe_end(struct out_pipe *);

/* Finds out how much of what was written has arrived. */
void out_pipe_look(struct out_pipe *);
/* Looks again later, if it is wanted. */
void out_pipe_watch(struct out_pipe *, bool wanted);

/* Writes some of n bytes; as write(2). */
ssize_t out_pipe_write(struct out_pipe *, const void *, size_t n);
/* How many bytes have been written, and have arrived. */
size_t out_pipe_written(const struct out_pipe *);
size_t out_pipe_arrived(const struct out_pipe *);
/* Whether out_pipe_arrived() is what a reader has taken. */
bool out_pipe_tells(const struct out_pipe *);

#endif
