/*
 * What a worker that stays reads on its standard input: a pipe, into which
 * messages are put as it takes them, and of which it can be told how much has
 * been read.
 */
#ifndef MQ_CONSUME_WORKER_INPUT_H
#define MQ_CONSUME_WORKER_INPUT_H

#include <ev.h>

#include "mq-consume/message.h"

struct worker_input {
	struct ev_loop *loop;
	/* Nobody reads any more. */
	void (*closed)(void *arg);
	void *arg;
	int fd; /* our end of the pipe; -1: nobody reads, or there is no more */
	int other; /* its other end, once ours is closed; -1: not open */
	bool last; /* nothing more is to be put */
	bool cut;  /* nobody can read what is in the pipe */
	struct mq_buf out;
	size_t start;	/* bytes of out that have been written */
	size_t written; /* in all */
	size_t taken;	/* of these, read when it was looked at last */
	ev_io room;	/* the pipe takes more; while there is some */
};

/* Opens a pipe, and returns the end of it that is the worker's; -1 with errno.
 */
int worker_input_open(struct worker_input *, struct ev_loop *,
    void (*closed)(void *arg), void *arg);
void worker_input_free(struct worker_input *);

/* Whether it can take more. */
bool worker_input_wants(const struct worker_input *);
/* Puts a message behind the others, to be written by worker_input_flush(), or
 * later. */
void worker_input_put(struct worker_input *, struct message *, enum mq_framing);
void worker_input_flush(struct worker_input *);
/* Nothing more comes: the worker is to find the end, behind what it has. */
void worker_input_last(struct worker_input *);
/* Nobody reads any more. */
void worker_input_cut(struct worker_input *);
/* Finds out whether that is so. */
void worker_input_check(struct worker_input *);
/* Whether our end is closed; nothing more is to be put; nobody reads. */
bool worker_input_ended(const struct worker_input *);
bool worker_input_is_last(const struct worker_input *);
bool worker_input_is_cut(const struct worker_input *);

/* Finds out how much has been read. */
void worker_input_look(struct worker_input *);
/* Whether any of a message, or all of it, had been read when it was looked. */
bool worker_input_begun(const struct worker_input *, const struct message *);
bool worker_input_whole(const struct worker_input *, const struct message *);
/* Takes the message that was put last out again.  False: it may be read. */
bool worker_input_take_back(struct worker_input *, const struct message *);

#endif
