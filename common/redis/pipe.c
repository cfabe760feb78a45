#include "pipe.h"

#include <stdlib.h>

struct mq_command *
mq_pipe_next(struct mq_pipe *p)
{
	return &p->commands[p->n++];
}

static int
take(struct mq_redis *r, struct mq_pipe *p, size_t i)
{
	if (p->replies[i] != NULL)
		freeReplyObject(p->replies[i]);
	p->replies[i] = mq_redis_reply(r);
	return p->replies[i] == NULL ? -1 : 0;
}

/* Index of the first call from i on of a script that is not known, or n. */
static size_t
unknown(const struct mq_pipe *p, size_t i)
{
	while (i < p->n &&
	    (p->commands[i].script == NULL ||
		!mq_reply_noscript(p->replies[i])))
		i++;
	return i;
}

/* Calls the first of them with its text, which makes it known, and the others
 * as before. */
static int
call_again(struct mq_redis *r, struct mq_pipe *p, size_t first)
{
	size_t i;

	if (mq_redis_send_eval(r, &p->commands[first]) == -1 ||
	    take(r, p, first) == -1)
		return -1;
	for (i = unknown(p, first + 1); i < p->n; i = unknown(p, i + 1))
		if (mq_redis_send(r, &p->commands[i]) == -1)
			return -1;
	for (i = unknown(p, first + 1); i < p->n; i = unknown(p, i + 1))
		if (take(r, p, i) == -1)
			return -1;
	return 0;
}

int
mq_pipe_run(struct mq_redis *r, struct mq_pipe *p)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (mq_redis_append(r, &p->commands[i]) == -1)
			return -1;
	if (mq_redis_flush(r) == -1)
		return -1;
	for (i = 0; i < p->n; i++)
		if (take(r, p, i) == -1)
			return -1;
	for (i = unknown(p, 0); i < p->n; i = unknown(p, i + 1))
		if (call_again(r, p, i) == -1)
			return -1;
	return 0;
}

void
mq_pipe_clear(struct mq_pipe *p)
{
	size_t i;

	for (i = 0; i < p->n; i++) {
		if (p->replies[i] != NULL)
			freeReplyObject(p->replies[i]);
		p->replies[i] = NULL;
	}
	p->n = 0;
}

void
mq_pipe_free(struct mq_pipe *p)
{
	size_t i;

	mq_pipe_clear(p);
	for (i = 0; i < MQ_PIPE_MAX; i++)
		mq_command_free(&p->commands[i]);
}
