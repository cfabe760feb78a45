#include "ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit.h"
#include "base/xalloc.h"

/* How many questions may be without an answer at a time, and how many are sent
 * together: few, so that the server does not wait for all of them. */
#define WINDOW	 2048
#define TOGETHER 128

int
mq_nonsense(struct mq_redis *r)
{
	return mq_redis_fail(r, MQ_EXIT_UNAVAILABLE, "unexpected reply");
}

static redisReply *
refuse_nonsense(struct mq_redis *r, redisReply *reply)
{
	(void)mq_nonsense(r);
	freeReplyObject(reply);
	return NULL;
}

redisReply *
mq_call(struct mq_redis *r, struct mq_command *c, int type)
{
	redisReply *reply = mq_redis_call(r, c);

	mq_command_free(c);
	return reply == NULL || type == -1 || reply->type == type ?
	    reply :
	    refuse_nonsense(r, reply);
}

bool
mq_reply_strings(const redisReply *reply)
{
	size_t i;

	if (reply->type != REDIS_REPLY_ARRAY)
		return false;
	for (i = 0; i < reply->elements; i++)
		if (reply->element[i]->type != REDIS_REPLY_STRING)
			return false;
	return true;
}

redisReply *
mq_call_strings(struct mq_redis *r, struct mq_command *c)
{
	redisReply *reply = mq_call(r, c, -1);

	return reply == NULL || mq_reply_strings(reply) ?
	    reply :
	    refuse_nonsense(r, reply);
}

int
mq_call_number(struct mq_redis *r, struct mq_command *c, long long *n)
{
	redisReply *reply = mq_call(r, c, REDIS_REPLY_INTEGER);

	if (reply == NULL)
		return -1;
	*n = reply->integer;
	freeReplyObject(reply);
	return 0;
}

int
mq_call_done(struct mq_redis *r, struct mq_command *c)
{
	redisReply *reply = mq_redis_answer(r, c);
	bool missed = reply != NULL && c->optional && mq_reply_missing(reply);
	int rv =
	    reply == NULL || (!missed && mq_redis_refused(r, reply)) ? -1 : 0;

	mq_command_free(c);
	freeReplyObject(reply);
	return rv;
}

struct questions {
	mq_ask_fn *ask;
	mq_take_fn *take;
	void *arg;
	size_t n;
	bool errors; /* take() gets error replies, too */
};

/* Takes one reply, and frees it unless it is kept. */
static int
take_reply(
    struct mq_redis *r, const struct questions *q, size_t i, redisReply *reply)
{
	int rv = -1;

	if (reply == NULL)
		return -1;
	if (!q->errors && mq_reply_missing(reply)) {
		rv = 0;
	} else if (q->errors || !mq_redis_refused(r, reply)) {
		rv = q->take(q->arg, i, reply);
		if (rv == -1)
			(void)mq_nonsense(r);
	}
	if (rv != MQ_KEEP)
		freeReplyObject(reply);
	return rv == -1 ? -1 : 0;
}

static int
ask_questions(struct mq_redis *r, const struct questions *q)
{
	struct mq_command c = mq_redis_command(r);
	size_t sent = 0, taken = 0, i, stop;
	/* Those that the server did not know the script of, or was too busy for: rare,
	 * but many at once. */
	size_t *again = NULL, again_n = 0, cap = 0;
	redisReply *reply;
	int rv = 0;

	while (rv == 0 && taken < q->n) {
		for (; rv == 0 && sent < q->n && sent - taken < WINDOW;
		     sent++) {
			q->ask(q->arg, sent, &c);
			rv = mq_redis_append(r, &c);
			if (rv == 0 && sent % TOGETHER == TOGETHER - 1)
				rv = mq_redis_flush(r);
		}
		if (rv == 0)
			rv = mq_redis_flush(r);
		stop = sent == q->n ? q->n : taken + TOGETHER;
		for (; rv == 0 && taken < stop; taken++) {
			reply = mq_redis_reply(r);
			if (reply == NULL ||
			    (!mq_reply_noscript(reply) &&
				!mq_reply_busy(reply))) {
				rv = take_reply(r, q, taken, reply);
				continue;
			}
			freeReplyObject(reply);
			if (again_n == cap) {
				cap = cap * 2 + 16;
				again = mq_xreallocarray(
				    again, cap, sizeof(*again));
			}
			again[again_n++] = taken;
		}
	}
	for (i = 0; rv == 0 && i < again_n; i++) {
		q->ask(q->arg, again[i], &c);
		rv = take_reply(r, q, again[i], mq_redis_answer(r, &c));
	}
	mq_command_free(&c);
	free(again);
	return rv;
}

int
mq_ask_all(
    struct mq_redis *r, size_t n, mq_ask_fn *ask, mq_take_fn *take, void *arg)
{
	return ask_questions(r, &(struct questions){ask, take, arg, n, false});
}

int
mq_ask_each(
    struct mq_redis *r, size_t n, mq_ask_fn *ask, mq_take_fn *take, void *arg)
{
	return ask_questions(r, &(struct questions){ask, take, arg, n, true});
}

int
mq_reply_time(const redisReply *time, int64_t *ms)
{
	long long s, us;

	if (!mq_reply_strings(time) || time->elements != 2)
		return -1;
	s = strtoll(time->element[0]->str, NULL, 10);
	us = strtoll(time->element[1]->str, NULL, 10);
	if (s < 0 || s > MQ_TIME_MAX / 1000 || us < 0 || us > 999999)
		return -1;
	*ms = s * 1000 + us / 1000;
	return 0;
}

int
mq_server_time(struct mq_redis *r, int64_t *ms)
{
	struct mq_command c = mq_redis_command(r);
	redisReply *time;
	int rv;

	mq_command_plain(&c, "TIME");
	time = mq_call(r, &c, -1);
	if (time == NULL)
		return -1;
	rv = mq_reply_time(time, ms);
	freeReplyObject(time);
	return rv == 0 ? 0 : mq_nonsense(r);
}

void
mq_keys_ask(struct mq_command *c, const char *cursor, const char *pattern)
{
	mq_command_plain(c, "SCAN");
	mq_command_str(c, cursor);
	mq_command_str(c, "MATCH");
	mq_command_str(c, pattern);
	mq_command_str(c, "COUNT");
	mq_command_int(c, MQ_CURSOR_STEP);
}

redisReply *
mq_cursor_take(char cursor[MQ_CURSOR_SIZE], const redisReply *reply)
{
	*cursor = '\0';
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    reply->element[0]->type != REDIS_REPLY_STRING ||
	    !mq_reply_strings(reply->element[1]))
		return NULL;
	if (strcmp(reply->element[0]->str, "0") != 0)
		strlcpy(cursor, reply->element[0]->str, MQ_CURSOR_SIZE);
	return reply->element[1];
}
