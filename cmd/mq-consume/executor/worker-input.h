/*
 * The standard input of a worker that stays: a pipe.  Messages are written as the
 * worker reads, and FIONREAD tells how much has been read.
 */
#ifndef MQ_CONSUME_WORKER_INPUT_H
#define MQ_CONSUME_WORKER_INPUT_H

#include <ev.h>

#include "mq-consume/message.h"

struct worker_input {
	struct ev_loop *loop;
	/* Nobody reads the pipe any more. */
	void (*closed)(void *arg);
	void *arg;
	int fd;	   /* our end of the pipe; -1: closed */
	int other; /* a read end, once ours is closed; -1: closed */
	bool last; /* no more messages come */
	bool cut;  /* nobody reads the pipe */
	struct mq_buf out;
	size_t start;	/* bytes of out that have been written */
	size_t written; /* bytes in all */
	size_t read;	/* bytes of these that were read, at the last poll */
	ev_io room;	/* active while out waits for the pipe */
};

/* Opens the pipe, and returns the worker's end; -1 with errno. */
int worker_input_open(struct worker_input *, struct ev_loop *,
    void (*closed)(void *arg), void *arg);
void worker_input_free(struct worker_input *);

/* Whether the input takes more messages. */
bool worker_input_wants(const struct worker_input *);
/* Appends a message; worker_input_flush() writes it, at once or later. */
void worker_input_write(
    struct worker_input *, struct message *, enum mq_framing);
void worker_input_flush(struct worker_input *);
/* No more messages come: the worker finds the end of its input after these. */
void worker_input_last(struct worker_input *);
/* Nobody reads any more: closes the pipe. */
void worker_input_cut(struct worker_input *);
/* Finds out whether anybody reads; if not, calls closed(). */
void worker_input_check(struct worker_input *);
/* Whether our end is closed; no more messages come; nobody reads. */
bool worker_input_ended(const struct worker_input *);
bool worker_input_is_last(const struct worker_input *);
bool worker_input_is_cut(const struct worker_input *);

/* Finds out how much has been read. */
void worker_input_poll(struct worker_input *);
/* Whether some of a message, or all of it, was read at the last poll. */
bool worker_input_partly_read(
    const struct worker_input *, const struct message *);
bool worker_input_read(const struct worker_input *, const struct message *);
/* Takes the last message out again.  False: the worker may read it. */
bool worker_input_take_back(struct worker_input *, const struct message *);

#endif
