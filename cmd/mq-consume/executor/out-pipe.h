/*
 * Standard output, and what its reader has taken.  What stands in a pipe is lost
 * with its reader, so a message is done only when the reader has taken the last
 * byte of it: FIONREAD says how much is still in there.  Nothing tells when that
 * becomes less, unless the pipe was full; so it is looked at again and again
 * while there is something, less often while nothing moves, and not at all when
 * everything has been taken.  A full pipe tells only of whole pages: each tick
 * looks for the rest.
 */
#ifndef MQ_CONSUME_OUT_PIPE_H
#define MQ_CONSUME_OUT_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#include <ev.h>

struct out_pipe {
	struct ev_loop *loop;
	/* The reader may have taken something; it is gone. */
	void (*taken)(void *arg);
	void (*gone)(void *arg);
	void *arg;
	int fd;
	bool whole;	/* writes to it do not block, however long */
	bool piped;	/* what its reader has taken can be told */
	size_t written; /* bytes in all */
	size_t read;	/* of these, those that have arrived */
	double look_s;	/* until the next look */
	ev_io reader;	/* tells that there is none any more */
	ev_timer timer; /* until it is looked what has been taken */
};

void out_pipe_init(struct out_pipe *, struct ev_loop *,
    void (*taken)(void *arg), void (*gone)(void *arg), void *arg);
/* Nothing is looked at any more. */
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
/* Whether what arrives can be told. */
bool out_pipe_tells(const struct out_pipe *);
int out_pipe_fd(const struct out_pipe *);

#endif
