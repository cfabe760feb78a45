/*
 * A batch of commands that are sent all at once, and whose replies are then
 * all taken.  Scripts that the server does not know are sent again with their
 * text.  For layout-rmq*.c only.
 */
#ifndef MQ_RMQ_PIPE_H
#define MQ_RMQ_PIPE_H

#include "redis.h"

/* A batch has at most so many commands. */
#define RMQ_PIPE_MAX 1000

struct rmq_pipe {
	struct mq_command commands[RMQ_PIPE_MAX];
	redisReply *replies[RMQ_PIPE_MAX];
	size_t n;
};

/* Where to build the next command; there must be less than RMQ_PIPE_MAX. */
struct mq_command *rmq_pipe_next(struct rmq_pipe *);

/*
 * Sends all and takes all replies, of which some may be errors; replies[i]
 * belongs to the pipe, unless it is taken out and replaced by NULL.  Returns
 * 0, or -1 when the connection is lost, with the error in struct mq_redis.
 */
int rmq_pipe_run(struct mq_redis *, struct rmq_pipe *);

/* Begins a new batch. */
void rmq_pipe_clear(struct rmq_pipe *);
void rmq_pipe_free(struct rmq_pipe *);

#endif
