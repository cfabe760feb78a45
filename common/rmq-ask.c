#include "rmq-ask.h"

#include <stdio.h>
#include <stdlib.h>

#include "exit.h"
#include "rmq-keys.h"
#include "xalloc.h"

/* How many questions may be without an answer at a time, and how many are sent
 * together: few, so that the server does not wait for all of them. */
#define WINDOW	 2048
#define TOGETHER 128

static int
send_and_free(struct mq_redis *r, struct mq_command *c)
{
	int rv = mq_redis_send(r, c);

	mq_command_free(c);
	return rv;
}

int
rmq_send_about_set(
    struct mq_redis *r, const char *verb, const char *key, const char *member)
{
	struct mq_command c = {0};

	mq_command_plain(&c, verb);
	mq_command_str(&c, key);
	if (member != NULL)
		mq_command_str(&c, member);
	return send_and_free(r, &c);
}

int
rmq_send_about_connection(struct mq_redis *r, const char *verb,
    const char *connection, const char *what, const char *member)
{
	struct mq_command c = {0};

	mq_command_plain(&c, verb);
	rmq_key_connection(&c, connection, what);
	if (member != NULL)
		mq_command_str(&c, member);
	return send_and_free(r, &c);
}

int
rmq_send_about_both(struct mq_redis *r, const char *verb,
    const char *connection, const char *queue, const char *what)
{
	struct mq_command c = {0};

	mq_command_plain(&c, verb);
	rmq_key_both(&c, connection, queue, what);
	return send_and_free(r, &c);
}

int
rmq_nonsense(struct mq_redis *r)
{
	r->status = MQ_EXIT_UNAVAILABLE;
	snprintf(r->error, sizeof(r->error), "%s: a reply that makes no sense",
	    r->server->name);
	return -1;
}

/* The next reply, which must be of this type; NULL with the error set. */
redisReply *
rmq_expect(struct mq_redis *r, int type)
{
	redisReply *reply = mq_redis_reply(r);

	if (reply == NULL)
		return NULL;
	if (!mq_redis_refused(r, reply) && reply->type == type)
		return reply;
	if (reply->type != REDIS_REPLY_ERROR)
		rmq_nonsense(r);
	freeReplyObject(reply);
	return NULL;
}

int
rmq_expect_number(struct mq_redis *r, long long *n)
{
	redisReply *reply = rmq_expect(r, REDIS_REPLY_INTEGER);

	if (reply == NULL)
		return -1;
	*n = reply->integer;
	freeReplyObject(reply);
	return 0;
}

/* Adds the next number to *sum. */
int
rmq_expect_more(struct mq_redis *r, long long *sum)
{
	long long n;

	if (rmq_expect_number(r, &n) == -1)
		return -1;
	*sum += n;
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
take(struct mq_redis *r, const struct rmq_questions *q, size_t i,
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
		rmq_nonsense(r);
		rv = -1;
	}
	freeReplyObject(reply);
	return rv;
}

static int
ask_again(struct mq_redis *r, const struct rmq_questions *q,
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
rmq_ask_all(struct mq_redis *r, const struct rmq_questions *q, size_t n)
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

redisReply *
rmq_connections(struct mq_redis *r)
{
	if (rmq_send_about_set(r, "SMEMBERS", RMQ_CONNECTIONS, NULL) == -1)
		return NULL;
	return rmq_expect(r, REDIS_REPLY_ARRAY);
}
