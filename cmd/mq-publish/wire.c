/*
 * A batch as it goes to the server, and what comes back.  Where its command
 * does not mark it, that is done by a second one, in one transaction with it.
 */
#include <stdio.h>
#include <string.h>

#include "base/exit.h"
#include "publish.h"

/* The replies to a transaction of two commands. */
enum { MULTI, PUBLISH, MARK, EXEC, REPLIES };

static int
append_plain(struct publisher *p, const char *name)
{
	struct mq_command c = {0};
	int rv;

	mq_command_plain(&c, name);
	rv = mq_redis_append(&p->redis, &c);
	mq_command_free(&c);
	return rv;
}

/* The second command makes the queue known again, if somebody has deleted it. */
static int
send_unmarked(struct publisher *p, struct batch *b)
{
	p->layout->open(&p->mark, p->opt->queue, &p->opt->attributes);
	if (mq_redis_append(&p->redis, &b->command) == -1)
		return -1;
	return mq_redis_send(&p->redis, &p->mark);
}

int
publish_transmit(struct publisher *p, struct batch *b, bool eval)
{
	struct mq_redis *r = &p->redis;

	b->sent_ms = publish_now_ms();
	if (b->whole)
		return eval ? mq_redis_send_eval(r, &b->command) :
			      mq_redis_send(r, &b->command);
	if (b->mark.publisher == NULL)
		return send_unmarked(p, b);
	p->layout->publish_mark(&p->mark, p->opt->queue, &b->mark, b->count);
	if (append_plain(p, "MULTI") == -1 ||
	    mq_redis_append(r, &b->command) == -1 ||
	    mq_redis_append(r, &p->mark) == -1 || append_plain(p, "EXEC") == -1)
		return -1;
	return mq_redis_flush(r);
}

redisReply *
publish_answer(struct publisher *p, int64_t ms)
{
	const struct timespec patience = {ms / 1000, ms % 1000 * 1000000};
	struct mq_redis *r = &p->redis;
	redisReply *reply = NULL;
	bool readable = false;

	for (;;) {
		if (mq_redis_reply_so_far(r, readable, &reply) == -1)
			return NULL;
		if (reply != NULL)
			return reply;
		if (!publish_wait(p, r->context->fd, &patience)) {
			r->status = MQ_EXIT_UNAVAILABLE;
			snprintf(r->error, sizeof(r->error),
			    "%s: no answer for too long", r->server->name);
			return NULL;
		}
		readable = true;
	}
}

static redisReply *
take(redisReply **reply)
{
	redisReply *taken = *reply;

	*reply = NULL;
	return taken;
}

/* The server does not let this user do it, or does not know how. */
static bool
not_allowed(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR &&
	    (mq_reply_status(reply->str) == MQ_EXIT_NOPERM ||
		strncmp(reply->str, "ERR unknown command", 19) == 0);
}

/*
 * All or nothing was done, unless MULTI itself was refused: then each for
 * itself.  What was wrong with the mark is not wrong with the batch.
 */
static redisReply *
judge(struct publisher *p, struct batch *b, redisReply *r[REPLIES])
{
	redisReply *exec = r[EXEC];

	if (exec->type == REDIS_REPLY_ARRAY && exec->elements == 2) {
		p->marks &= exec->element[1]->type != REDIS_REPLY_ERROR ||
		    exec->element[0]->type == REDIS_REPLY_ERROR;
		return take(&exec->element[0]);
	}
	if (r[PUBLISH]->type == REDIS_REPLY_INTEGER) {
		p->marks = false;
		return take(&r[PUBLISH]);
	}
	if (r[PUBLISH]->type == REDIS_REPLY_ERROR)
		return take(&r[PUBLISH]);
	if (not_allowed(r[MARK])) {
		p->marks = false;
		b->mark.publisher = NULL;
	}
	return take(r[MARK]->type == REDIS_REPLY_ERROR ? &r[MARK] : &r[EXEC]);
}

redisReply *
publish_reply(struct publisher *p, struct batch *b)
{
	redisReply *r[REPLIES] = {NULL}, *reply = NULL;
	int i, n = b->mark.publisher == NULL ? 2 : REPLIES;

	if (b->whole)
		return publish_answer(p, PATIENCE_MS);
	for (i = 0; i < n; i++) {
		r[i] = publish_answer(p, PATIENCE_MS);
		if (r[i] == NULL)
			break;
	}
	if (i == n)
		reply = n == REPLIES ? judge(p, b, r) : take(&r[0]);
	for (i = 0; i < n; i++)
		if (r[i] != NULL)
			freeReplyObject(r[i]);
	return reply;
}
