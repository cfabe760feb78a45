#include "ask.h"

#include <stdio.h>
#include <stdlib.h>

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
	r->status = MQ_EXIT_UNAVAILABLE;
	snprintf(r->error, sizeof(r->error), "%s: a reply that makes no sense",
	    r->server->name);
	return -1;
}

/* The next reply, which must be of this type; NULL with the error set. */
redisReply *
mq_expect(struct mq_redis *r, int type)
{
	redisReply *reply = mq_redis_reply(r);

	if (reply == NULL)
		return NULL;
	if (!mq_redis_refused(r, reply) && reply->type == type)
		return reply;
	if (reply->type != REDIS_REPLY_ERROR)
		mq_nonsense(r);
	freeReplyObject(reply);
	return NULL;
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
mq_expect_strings(struct mq_redis *r)
{
	redisReply *reply = mq_expect(r, REDIS_REPLY_ARRAY);

	if (reply == NULL || mq_reply_strings(reply))
		return reply;
	freeReplyObject(reply);
	(void)mq_nonsense(r);
	return NULL;
}

int
mq_expect_number(struct mq_redis *r, long long *n)
{
	redisReply *reply = mq_expect(r, REDIS_REPLY_INTEGER);

	if (reply == NULL)
		return -1;
	*n = reply->integer;
	freeReplyObject(reply);
	return 0;
}

/* Questions whose script the server did not know: rare, but many at once. */
struct unknown {
	size_t *i, n, cap;
};

static void
remember(struct unknown *u, size_t i)
{
	if (u->n == u->cap) {
		u->cap = u->cap * 2 + 16;
		u->i = mq_xreallocarray(u->i, u->cap, sizeof(*u->i));
	}
	u->i[u->n++] = i;
}

/* Takes one reply and frees it; unknown may be NULL. */
static int
take(struct mq_redis *r, const struct mq_questions *q, size_t i,
    redisReply *reply, struct unknown *u)
{
	int rv = 0;

	if (reply == NULL)
		return -1;
	if (u != NULL && mq_reply_noscript(reply)) {
		remember(u, i);
	} else if (mq_redis_refused(r, reply)) {
		rv = -1;
	} else if (q->take(q->arg, i, reply) == -1) {
		mq_nonsense(r);
		rv = -1;
	}
	freeReplyObject(reply);
	return rv;
}

static int
ask_again(struct mq_redis *r, const struct mq_questions *q,
    const struct unknown *u, struct mq_command *c)
{
	size_t i;

	for (i = 0; i < u->n; i++) {
		q->ask(q->arg, u->i[i], c);
		if (take(r, q, u->i[i], mq_redis_call(r, c), NULL) == -1)
			return -1;
	}
	return 0;
}

int
mq_ask_all(struct mq_redis *r, const struct mq_questions *q, size_t n)
{
	struct mq_command c = {0};
	struct unknown u = {0};
	size_t sent = 0, taken = 0, stop;
	int rv = 0;

	while (rv == 0 && taken < n) {
		for (; rv == 0 && sent < n && sent - taken < WINDOW; sent++) {
			q->ask(q->arg, sent, &c);
			rv = mq_redis_append(r, &c);
			if (rv == 0 && sent % TOGETHER == TOGETHER - 1)
				rv = mq_redis_flush(r);
		}
		if (rv == 0)
			rv = mq_redis_flush(r);
		stop = sent == n ? n : taken + TOGETHER;
		for (; rv == 0 && taken < stop; taken++)
			rv = take(r, q, taken, mq_redis_reply(r), &u);
	}
	if (rv == 0)
		rv = ask_again(r, q, &u, &c);
	mq_command_free(&c);
	free(u.i);
	return rv;
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
	struct mq_command c = {0};
	redisReply *time;
	int rv = 0;

	mq_command_plain(&c, "TIME");
	time = mq_redis_call(r, &c);
	mq_command_free(&c);
	if (time == NULL)
		return -1;
	if (mq_reply_time(time, ms) == -1)
		rv = mq_nonsense(r);
	freeReplyObject(time);
	return rv;
}

bool
mq_reply_good(struct mq_redis *r, struct mq_trouble *first,
    const redisReply *reply, int type)
{
	if (reply->type == type)
		return true;
	if (mq_reply_barred(reply)) {
		first->barred++;
		return false;
	}
	if (!mq_redis_refused(r, reply))
		(void)mq_nonsense(r);
	if (first->status == 0) {
		first->status = r->status;
		snprintf(first->error, sizeof(first->error), "%s", r->error);
	}
	return false;
}

int
mq_trouble_tell(struct mq_redis *r, const struct mq_trouble *first)
{
	if (first->status == 0)
		return 0;
	r->status = first->status;
	snprintf(r->error, sizeof(r->error), "%s", first->error);
	return -1;
}
