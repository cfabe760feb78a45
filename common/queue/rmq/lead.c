/*
 * The rmq layout: large messages that become ready again.
 */
#include "lead.h"

#include <ctype.h>
#include <string.h>

#include "base/id.h"
#include "keys.h"
#include "message/envelope.h"
#include "redis/ask.h"
#include "scripts.h"

/* A message on its way: its header there and in ready, and its payload. */
struct lead {
	const char *queue, *to;
	bool delayed;
	const char *old, *payload;
	size_t old_len, payload_len;
	struct mq_buf header;
	char id[MQ_ID_LEN + 1]; /* the payload of its stub */
};

static void
add_from(struct mq_command *c, const struct lead *l)
{
	rmq_key_queue(c, l->queue, l->delayed ? "delayed" : "rejected");
}

/* The replies to n commands that were sent.  *last is that to the last one, NULL if
 * any is an error.  Returns -1 when the connection is lost. */
static int
read_replies(struct mq_redis *r, int n, redisReply **last)
{
	bool good = true;

	for (*last = NULL; n > 0; n--) {
		freeReplyObject(*last);
		*last = mq_redis_reply(r);
		if (*last == NULL)
			return -1;
		good &= (*last)->type != REDIS_REPLY_ERROR;
	}
	if (!good) {
		freeReplyObject(*last);
		*last = NULL;
	}
	return 0;
}

/* Watches where the message is, and reads the next one there.  The empty transaction
 * ends what was watched before, and shows that move() may have one: else the
 * server would carry out its commands one by one. */
static int
look(struct mq_redis *r, const struct lead *l, int64_t now_ms,
    redisReply **reply)
{
	struct mq_command c = {0};
	int rv;

	mq_command_plain(&c, "MULTI");
	rv = mq_redis_append(r, &c);
	mq_command_plain(&c, "EXEC");
	if (rv == 0)
		rv = mq_redis_append(r, &c);
	mq_command_plain(&c, "WATCH");
	add_from(&c, l);
	if (rv == 0)
		rv = mq_redis_append(r, &c);
	mq_command_plain(&c, l->delayed ? "ZRANGEBYSCORE" : "LRANGE");
	add_from(&c, l);
	mq_command_words(&c, l->delayed ? "-inf" : "-1 -1");
	if (l->delayed) {
		mq_command_int(&c, now_ms);
		mq_command_words(&c, "LIMIT 0 1");
	}
	if (rv == 0)
		rv = mq_redis_send(r, &c);
	mq_command_free(&c);
	return rv == 0 ? read_replies(r, 4, reply) : -1;
}

/* The number of runs begins anew; see lua/lib/moves.lua. */
static void
write_header(struct lead *l)
{
	static const char name[] = "\"Mq-Attempt\":[\"";
	const char *end = l->old + l->old_len, *at, *behind;

	at = l->delayed || l->old_len == 0 ?
	    NULL :
	    memmem(l->old, l->old_len, name, sizeof(name) - 1);
	if (at == NULL) {
		mq_buf_add(&l->header, l->old, l->old_len);
		return;
	}
	at += sizeof(name) - 1;
	for (behind = at; behind < end && isdigit((unsigned char)*behind);
	     behind++)
		;
	mq_buf_add(&l->header, l->old, (size_t)(at - l->old));
	mq_buf_addstr(&l->header, "0");
	mq_buf_add(&l->header, behind, (size_t)(end - behind));
}

/* False: the message is not for this way. */
static bool
take_apart(struct lead *l, const redisReply *reply)
{
	const redisReply *e;
	const char *line = NULL;
	size_t prefix = l->delayed ? MQ_ID_LEN : 0;
	struct mq_idgen ids = {0};

	if (reply == NULL || reply->type != REDIS_REPLY_ARRAY ||
	    reply->elements != 1)
		return false;
	e = reply->element[0];
	if (e->type != REDIS_REPLY_STRING || e->len < MQ_LARGE + prefix)
		return false;
	l->old = e->str + prefix;
	if (mq_envelope_signed(l->old, e->len - prefix)) {
		line = memchr(l->old, '\n', e->len - prefix);
		if (line == NULL)
			return false;
		l->old_len = (size_t)(line + 1 - l->old);
	}
	l->payload = l->old + l->old_len;
	l->payload_len = e->len - prefix - l->old_len;
	mq_id_random(&ids, l->id, MQ_ID_LEN);
	write_header(l);
	return true;
}

static void
add_stub(
    struct mq_command *c, const struct lead *l, const char *header, size_t len)
{
	mq_command_parts(
	    c, (const struct mq_part[]){{header, len}, {l->id, MQ_ID_LEN}}, 2);
}

static int
send_script(struct mq_redis *r, const struct lead *l, struct mq_command *c)
{
	mq_command_script(c, &rmq_script_lead, RMQ_QUEUE_KEYS + 2);
	rmq_queue_keys(c, l->to);
	add_from(c, l);
	mq_command_str(c, RMQ_QUEUES);
	mq_command_str(c, l->delayed ? "delayed" : "rejected");
	add_stub(c, l, l->old, l->old_len);
	add_stub(c, l, l->header.data, l->header.len);
	return mq_redis_send_eval(r, c);
}

static int
send_exchange(struct mq_redis *r, const struct lead *l, struct mq_command *c)
{
	const struct mq_part whole[] = {
	    {l->header.data, l->header.len}, {l->payload, l->payload_len}};

	mq_command_plain(c, "LINSERT");
	rmq_key_queue(c, l->to, "ready");
	mq_command_str(c, "AFTER");
	add_stub(c, l, l->header.data, l->header.len);
	mq_command_parts(c, whole, 2);
	if (mq_redis_append(r, c) == -1)
		return -1;
	mq_command_plain(c, "LREM");
	rmq_key_queue(c, l->to, "ready");
	mq_command_int(c, 1);
	add_stub(c, l, l->header.data, l->header.len);
	return mq_redis_append(r, c);
}

/* *done: the message has moved. */
static int
move(struct mq_redis *r, const struct lead *l, bool *done)
{
	struct mq_command c = {0};
	redisReply *exec = NULL;
	int rv;

	mq_command_plain(&c, "MULTI");
	rv = mq_redis_append(r, &c);
	if (rv == 0)
		rv = send_script(r, l, &c);
	if (rv == 0)
		rv = send_exchange(r, l, &c);
	mq_command_plain(&c, "EXEC");
	if (rv == 0)
		rv = mq_redis_send(r, &c);
	mq_command_free(&c);
	if (rv == 0)
		rv = read_replies(r, 5, &exec);
	*done = exec != NULL && exec->type == REDIS_REPLY_ARRAY &&
	    exec->elements > 0 &&
	    exec->element[0]->type == REDIS_REPLY_INTEGER &&
	    exec->element[0]->integer == 1;
	freeReplyObject(exec);
	return rv;
}

int
rmq_lead_large(struct mq_redis *r, const char *queue, const char *to,
    int64_t now_ms, bool *done)
{
	struct lead l = {.queue = queue, .to = to, .delayed = now_ms > 0};
	redisReply *reply = NULL;
	int rv = look(r, &l, now_ms, &reply);

	*done = false;
	if (rv == 0 && take_apart(&l, reply))
		rv = move(r, &l, done);
	freeReplyObject(reply);
	mq_buf_free(&l.header);
	return rv;
}
