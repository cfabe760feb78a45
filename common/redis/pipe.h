/*
 * A batch of commands that are sent all at once, and whose replies are then
 * all taken.  Scripts that the server does not know are sent again with their
 * text.  For layouts.
 */
#ifndef MQ_PIPE_H
#define MQ_PIPE_H

#include "connection.h"

/* A batch has at most so many commands. */
#define MQ_PIPE_MAX 1000

struct mq_pipe {
	struct mq_command commands[MQ_PIPE_MAX];
	redisReply *replies[MQ_PIPE_MAX];
	size_t n;
};

/* Where to build the next command; there must be less than MQ_PIPE_MAX. */
struct mq_command *mq_pipe_next(struct mq_pipe *);

/*
 * Sends all and takes all replies, of which some may be errors; replies[i]
 * belongs to the pipe, unless it is taken out and replaced by NULL.  Returns
 * 0, or -1 when the connection is lost, with the error in struct mq_redis.
 */
int mq_pipe_run(struct mq_redis *, struct mq_pipe *);

/* Begins a new batch. */
void mq_pipe_clear(struct mq_pipe *);
void mq_pipe_free(struct mq_pipe *);

#endif
