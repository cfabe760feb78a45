#include "publisher.h"

#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "redis/error.h"

/* The memory that an empty batch may keep. */
#define KEEP_BYTES 262144

/* The replies to a transaction of two commands. */
enum { MULTI, PUBLISH, MARK, EXEC, REPLIES };

void
mq_post_begin(
    struct mq_publisher *p, struct mq_post *b, const struct mq_publishing *how)
{
	b->how = *how;
	b->how.mark = (struct mq_mark){.publisher = p->marks ? p->id : NULL,
	    .place = (int)(p->batches++ % MQ_MARKS),
	    .before = p->sent};
	mq_publisher_complete(p, &b->how);
	b->whole = !p->layout->publish_mark(NULL, p->queue, &b->how, 0);
	b->command.cluster = mq_redis_command(p->redis).cluster;
	b->count = 0;
	b->sent_ms = 0;
	p->layout->publish(&b->command, p->queue, &b->how);
	b->start = b->command.wire.len;
}

static int
append_plain(struct mq_publisher *p, const char *name)
{
	struct mq_command c = mq_redis_command(p->redis);
	int rv;

	mq_command_plain(&c, name);
	rv = mq_redis_append(p->redis, &c);
	mq_command_free(&c);
	return rv;
}

void
mq_post_add(struct mq_publisher *p, struct mq_post *b,
    const char unique[MQ_ID_LEN + 1], const struct mq_buf *header,
    const char *payload, size_t n)
{
	p->layout->publish_add(
	    &b->command, &b->how, unique, header, payload, n);
	b->count++;
	if (b->how.now_us > 0)
		p->last_us = b->how.now_us++;
}

/* The second command makes the queue known again, if somebody has deleted it. */
static int
send_unmarked(struct mq_publisher *p, struct mq_post *b)
{
	p->layout->open(&p->behind, p->queue, p->attributes, false);
	if (mq_redis_append(p->redis, &b->command) == -1)
		return -1;
	return mq_redis_send(p->redis, &p->behind);
}

static bool
is_trial(const struct mq_post *b)
{
	return b->plain.args > 0;
}

int
mq_post_send(struct mq_publisher *p, struct mq_post *b,
    const struct mq_post *behind, bool eval)
{
	struct mq_redis *r = p->redis;

	if (p->limited)
		mq_post_limit(p, b);
	if (b->whole && !is_trial(b) && b->how.mark.publisher != NULL)
		mq_mark_put_behind(&b->command, b->start,
		    behind != NULL ? behind->how.mark.before : -1);
	if (b->sent_ms == 0)
		p->sent += b->count;
	b->sent_ms = mq_clock_steady_ms();
	if (b->whole)
		return eval ? mq_redis_send_eval(r, &b->command) :
			      mq_redis_send(r, &b->command);
	if (b->how.mark.publisher == NULL)
		return send_unmarked(p, b);
	(void)p->layout->publish_mark(&p->behind, p->queue, &b->how, b->count);
	if (append_plain(p, "MULTI") == -1 ||
	    mq_redis_append(r, &b->command) == -1 ||
	    mq_redis_append(r, &p->behind) == -1 ||
	    append_plain(p, "EXEC") == -1)
		return -1;
	return mq_redis_flush(r);
}

static redisReply *
take_out(redisReply **reply)
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
	    (mq_error_status(reply->str) == MQ_EXIT_NOPERM ||
		strncmp(reply->str, "ERR unknown command", 19) == 0);
}

/*
 * All or nothing was done, unless MULTI itself was refused: then each for
 * itself.  An error of the mark is none of the batch.
 */
static redisReply *
judge_transaction(
    struct mq_publisher *p, struct mq_post *b, redisReply *r[REPLIES])
{
	redisReply *exec = r[EXEC];

	if (exec->type == REDIS_REPLY_ARRAY && exec->elements == 2) {
		p->marks &= exec->element[1]->type != REDIS_REPLY_ERROR ||
		    exec->element[0]->type == REDIS_REPLY_ERROR;
		p->limited |= mq_publisher_is_limit(exec->element[1]);
		return take_out(&exec->element[0]);
	}
	if (r[PUBLISH]->type == REDIS_REPLY_INTEGER) {
		p->marks = false;
		return take_out(&r[PUBLISH]);
	}
	if (r[PUBLISH]->type == REDIS_REPLY_ERROR)
		return take_out(&r[PUBLISH]);
	if (not_allowed(r[MARK])) {
		p->marks = false;
		b->how.mark.publisher = NULL;
	}
	return take_out(
	    r[MARK]->type == REDIS_REPLY_ERROR ? &r[MARK] : &r[EXEC]);
}

/* As a reply to the batch's own command; NULL: the connection is lost. */
static redisReply *
take_reply(struct mq_publisher *p, struct mq_post *b)
{
	redisReply *r[REPLIES] = {NULL}, *reply = NULL;
	int i, n = b->how.mark.publisher == NULL ? 2 : REPLIES;

	if (b->whole)
		return mq_redis_reply(p->redis);
	for (i = 0; i < n && (r[i] = mq_redis_reply(p->redis)) != NULL; i++)
		;
	if (i == n)
		reply =
		    n == REPLIES ? judge_transaction(p, b, r) : take_out(&r[0]);
	for (i = 0; i < n; i++)
		if (r[i] != NULL)
			freeReplyObject(r[i]);
	return reply;
}

static bool
take_verdicts(const struct mq_post *b, const redisReply *reply,
    mq_verdict_fn *take, void *arg)
{
	enum mq_published verdict;
	/* The ids stand behind the letters. */
	size_t at = (size_t)b->count;
	bool joins;
	int i;

	for (i = 0; i < b->count; i++) {
		verdict = mq_layout_published(reply, i);
		joins = verdict == MQ_PUBLISHED_JOINED;
		if (verdict == MQ_PUBLISHED_NONSENSE ||
		    (joins && at + MQ_ID_LEN > reply->len))
			return false;
		take(arg, i, verdict, joins ? reply->str + at : NULL);
		at += joins ? MQ_ID_LEN : 0;
	}
	return true;
}

static void
confirm(struct mq_publisher *p, const struct mq_post *b)
{
	p->confirmed += b->count;
	if (p->confirmed_last < b->how.mark.before)
		p->confirmed_last = b->how.mark.before;
	p->confirmed_ms = mq_clock_steady_ms();
	p->marked |= p->marks;
}

/* Whether a trial was; if not, with the error. */
static bool
is_accepted(struct mq_publisher *p, const redisReply *reply)
{
	if (mq_redis_refused(p->redis, reply))
		return false;
	if (reply->type == REDIS_REPLY_INTEGER && reply->integer == 0) {
		mq_redis_fail(
		    p->redis, MQ_EXIT_AGAIN, "the queue was deleted meanwhile");
		return false;
	}
	return true;
}

enum mq_call
mq_post_answer(
    struct mq_publisher *p, struct mq_post *b, mq_verdict_fn *take, void *arg)
{
	bool had_mark = b->how.mark.publisher != NULL;
	redisReply *reply = take_reply(p, b);
	enum mq_call result = MQ_CALL_DONE;

	if (reply == NULL)
		return MQ_CALL_LOST;
	if (is_trial(b) && !is_accepted(p, reply)) {
		freeReplyObject(reply);
		return MQ_CALL_AGAIN;
	}
	/* What was sent behind it may be done, or not. */
	if (mq_reply_busy(reply)) {
		(void)mq_redis_refused(p->redis, reply);
		freeReplyObject(reply);
		return MQ_CALL_LOST;
	}
	if (mq_reply_noscript(reply) || reply->type == REDIS_REPLY_NIL ||
	    (had_mark && b->how.mark.publisher == NULL)) {
		freeReplyObject(reply);
		return MQ_CALL_AGAIN;
	}
	if (mq_redis_refused(p->redis, reply)) {
		result = MQ_CALL_REFUSED;
	} else if (!take_verdicts(b, reply, take, arg)) {
		mq_redis_fail(p->redis, MQ_EXIT_WRONGTYPE, "unexpected reply");
		result = MQ_CALL_REFUSED;
	} else {
		confirm(p, b);
		if (!b->whole && b->how.mark.publisher == NULL)
			p->uncounted += b->count;
	}
	freeReplyObject(reply);
	return result;
}

enum mq_call
mq_post_settle(
    struct mq_publisher *p, struct mq_post *b, mq_verdict_fn *take, void *arg)
{
	redisReply reply = {.type = REDIS_REPLY_INTEGER};
	const char *letters =
	    mq_mark_find(p->last_marks, &b->how.mark, &reply.len);

	/* A mark that is missing may have been there, too long ago. */
	if (letters == NULL &&
	    mq_clock_steady_ms() - b->sent_ms <= MQ_MARKS_SURE_MS)
		return MQ_CALL_AGAIN;
	if (letters != NULL && reply.len > 0) {
		reply.type = REDIS_REPLY_STRING;
		reply.str = (char *)(uintptr_t)letters;
	}
	if (letters == NULL || !take_verdicts(b, &reply, take, arg)) {
		mq_redis_fail(
		    p->redis, MQ_EXIT_UNAVAILABLE, "no answer for too long");
		return MQ_CALL_REFUSED;
	}
	confirm(p, b);
	return MQ_CALL_DONE;
}

void
mq_post_clear(struct mq_post *b)
{
	b->count = 0;
	mq_command_free(&b->plain);
	if (b->command.wire.cap > KEEP_BYTES)
		mq_command_free(&b->command);
}

void
mq_post_free(struct mq_post *b)
{
	mq_post_clear(b);
	mq_command_free(&b->command);
}
