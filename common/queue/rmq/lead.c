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

/* Watches where the message is, and reads the next one there.  The empty transaction
 * ends what was watched before, and shows that the other one may come: else the
 * server would carry out its commands one by one. */
static int
add_look(const struct lead *l, int64_t now_ms, struct mq_command c[MQ_LEAD])
{
	mq_command_plain(&c[0], "MULTI");
	mq_command_plain(&c[1], "EXEC");
	mq_command_plain(&c[2], "WATCH");
	add_from(&c[2], l);
	mq_command_plain(&c[3], l->delayed ? "ZRANGEBYSCORE" : "LRANGE");
	add_from(&c[3], l);
	mq_command_words(&c[3], l->delayed ? "-inf" : "-1 -1");
	if (l->delayed) {
		mq_command_int(&c[3], now_ms);
		mq_command_words(&c[3], "LIMIT 0 1");
	}
	return 4;
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

static void
add_script(const struct lead *l, struct mq_command *c)
{
	mq_command_script(c, &rmq_script_lead, RMQ_QUEUE_KEYS + 2);
	rmq_queue_keys(c, l->to);
	add_from(c, l);
	mq_command_str(c, RMQ_QUEUES);
	mq_command_str(c, l->delayed ? "delayed" : "rejected");
	add_stub(c, l, l->old, l->old_len);
	add_stub(c, l, l->header.data, l->header.len);
}

static int
add_move(struct lead *l, const redisReply *reply, struct mq_command c[MQ_LEAD])
{
	if (!take_apart(l, reply))
		return 0;
	const struct mq_part whole[] = {
	    {l->header.data, l->header.len}, {l->payload, l->payload_len}};

	mq_command_plain(&c[0], "MULTI");
	add_script(l, &c[1]);
	mq_command_plain(&c[2], "LINSERT");
	rmq_key_queue(&c[2], l->to, "ready");
	mq_command_str(&c[2], "AFTER");
	add_stub(&c[2], l, l->header.data, l->header.len);
	mq_command_parts(&c[2], whole, 2);
	mq_command_plain(&c[3], "LREM");
	rmq_key_queue(&c[3], l->to, "ready");
	mq_command_int(&c[3], 1);
	add_stub(&c[3], l, l->header.data, l->header.len);
	mq_command_plain(&c[4], "EXEC");
	mq_buf_free(&l->header);
	return 5;
}

int
rmq_lead_look(const char *queue, int64_t now_ms, struct mq_command c[MQ_LEAD])
{
	return add_look(
	    &(struct lead){.queue = queue, .delayed = true}, now_ms, c);
}

int
rmq_lead_move(
    const char *queue, const redisReply *reply, struct mq_command c[MQ_LEAD])
{
	return add_move(
	    &(struct lead){.queue = queue, .to = queue, .delayed = true}, reply,
	    c);
}

/* --- on a connection that waits ------------------------------------------------ */

/* Sends n commands, and frees them.  *last is the reply to the last one, NULL if any is
 * an error.  Returns -1 when the connection is lost. */
static int
call(struct mq_redis *r, struct mq_command *c, int n, redisReply **last)
{
	bool good = true;
	int i, rv = 0;

	*last = NULL;
	for (i = 0; i < n; i++) {
		if (rv == 0)
			rv = c[i].script != NULL ?
			    mq_redis_send_eval(r, &c[i]) :
			    mq_redis_append(r, &c[i]);
		mq_command_free(&c[i]);
	}
	for (i = 0; i < n && rv == 0; i++) {
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
	return rv;
}

int
rmq_lead_large(struct mq_redis *r, const char *queue, const char *to,
    int64_t now_ms, bool *done)
{
	struct lead l = {.queue = queue, .to = to, .delayed = now_ms > 0};
	struct mq_command c[MQ_LEAD] = {{.script = NULL}};
	redisReply *reply, *exec = NULL;
	int rv;

	*done = false;
	/* Its transaction names no node. */
	if (mq_redis_command(r).cluster)
		return 0;
	rv = call(r, c, add_look(&l, now_ms, c), &reply);

	if (rv == 0)
		rv = call(r, c, add_move(&l, reply, c), &exec);
	*done = exec != NULL && mq_layout_led(exec);
	freeReplyObject(exec);
	freeReplyObject(reply);
	return rv;
}
