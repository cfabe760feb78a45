#include "publisher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"

/* No script copies longer batches for want of a question. */
#define TRIAL_BYTES 65536
/* Messages that are due so soon may be so already. */
#define AT_LEAST_MS 60000

/* The memory that an empty batch may keep. */
#define KEEP_BYTES 262144

/* The replies to a transaction of two commands. */
enum { MULTI, PUBLISH, MARK, EXEC, REPLIES };

/* "BEFORE REPLY"; NULL when it is not. */
static const char *
take_apart(const redisReply *value, long long *before)
{
	char *end;

	if (value->type != REDIS_REPLY_STRING || value->str[0] < '0' ||
	    value->str[0] > '9')
		return NULL;
	*before = strtoll(value->str, &end, 10);
	return *end == ' ' ? end + 1 : NULL;
}

long long
mq_marks_last(const redisReply *reply)
{
	long long last = -1, before;
	size_t i;

	for (i = 1; i < reply->elements; i += 2)
		if (take_apart(reply->element[i], &before) != NULL &&
		    before > last)
			last = before;
	return last;
}

/* Adds what the publisher knows of the server to how the next message goes out. */
static void
complete(const struct mq_publisher *p, struct mq_publishing *how)
{
	int64_t now_us = p->clock_us + mq_clock_steady_us();
	bool scripted;

	if (p->clock_us == 0)
		now_us = 0;
	else if (now_us <= p->last_us)
		now_us = p->last_us + 1;
	how->now_us = now_us;
	/* Only the script counts those that are there, and makes files stay. */
	scripted = p->limited || how->files != NULL;
	if (scripted && !how->special)
		how->special = how->alike = true;
	how->ordered &= !scripted;
	/* What may be due already has to be asked for, and no clock is exact. */
	how->direct = p->named && p->direct &&
	    (how->when.kind != MQ_WHEN_AT ||
		how->when.ms >= now_us / 1000 + AT_LEAST_MS);
}

/* Whether a plain command publishes them, and another one marks them. */
static bool
is_plain(const struct mq_publisher *p, const struct mq_publishing *how)
{
	return p->layout->publish_mark != NULL &&
	    p->layout->publish_mark(NULL, p->queue, how, 0);
}

/* With limits, so that the accepted messages are the first ones.  A batch without a mark
 * must not be overtaken by those behind it, if the server does not know the script or, on
 * a cluster, the queue is moving; nor must the first one, which may have to do without. */
bool
mq_publisher_alone(
    const struct mq_publisher *p, const struct mq_publishing *how)
{
	bool limited =
	    p->limited || how->limits.ready >= 0 || how->limits.delayed >= 0;
	struct mq_publishing whole = *how;

	complete(p, &whole);
	if (!is_plain(p, &whole))
		return limited || !p->marks;
	return p->marks ? !p->marked : p->behind.cluster;
}

void
mq_post_begin(
    struct mq_publisher *p, struct mq_post *b, const struct mq_publishing *how)
{
	b->how = *how;
	b->how.mark = (struct mq_mark){.publisher = p->marks ? p->id : NULL,
	    .place = (int)(p->batches++ % MQ_MARKS),
	    .before = p->sent};
	complete(p, &b->how);
	b->way = !is_plain(p, &b->how) ? MQ_WAY_SCRIPT :
	    p->marks		       ? MQ_WAY_MARKED :
					 MQ_WAY_BARE;
	b->command.cluster = mq_redis_command(p->redis).cluster;
	b->count = 0;
	b->sent_ms = 0;
	p->layout->publish(&b->command, p->queue, &b->how);
	b->start = b->command.wire.len;
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

/* The same messages, behind the beginning of another command. */
static void
change_way(const struct mq_publisher *p, struct mq_post *b, enum mq_way way)
{
	struct mq_command old = b->command;
	size_t from = b->start;

	b->command = (struct mq_command){.cluster = old.cluster};
	b->how.trial = way == MQ_WAY_TRIAL;
	p->layout->publish(&b->command, p->queue, &b->how);
	b->start = b->command.wire.len;
	mq_command_tail(&b->command, &old, from, b->count);
	mq_command_free(&old);
	b->way = way;
}

bool
mq_post_trial(const struct mq_publisher *p, struct mq_post *b, bool yes)
{
	if (yes &&
	    (!(p->layout->has & MQ_HAS_TRIALS) || b->way != MQ_WAY_MARKED ||
		mq_post_bytes(b) > TRIAL_BYTES))
		return false;
	change_way(p, b, yes ? MQ_WAY_TRIAL : MQ_WAY_MARKED);
	return true;
}

/* MULTI, the batch, the command behind it, EXEC. */
static int
send_marked(struct mq_publisher *p, struct mq_post *b)
{
	struct mq_command multi = mq_redis_command(p->redis), exec = multi;
	struct mq_command *const all[REPLIES] = {
	    &multi, &b->command, &p->behind, &exec};
	int i, rv = 0;

	mq_command_plain(&multi, "MULTI");
	(void)p->layout->publish_mark(&p->behind, p->queue, &b->how, b->count);
	mq_command_plain(&exec, "EXEC");
	for (i = 0; i < REPLIES && rv == 0; i++) {
		all[i]->transaction = true;
		rv = mq_redis_append(p->redis, all[i]);
	}
	mq_command_free(&multi);
	mq_command_free(&exec);
	return rv == 0 ? mq_redis_flush(p->redis) : -1;
}

int
mq_post_send(struct mq_publisher *p, struct mq_post *b,
    const struct mq_post *behind, bool eval)
{
	char number[MQ_MARK_BEHIND + 1];
	struct mq_command text;
	int rv;

	/* The queue has had a limit only since the batch was begun, or since that
	 * is known: the script looks at it. */
	if (p->limited && (b->way == MQ_WAY_MARKED || b->way == MQ_WAY_BARE) &&
	    !b->how.special && b->how.when.kind == MQ_WHEN_NOW) {
		complete(p, &b->how);
		change_way(p, b, MQ_WAY_SCRIPT);
	}
	if (b->sent_ms == 0)
		p->sent += b->count;
	b->sent_ms = mq_clock_steady_ms();
	switch (b->way) {
	case MQ_WAY_MARKED:
		return send_marked(p, b);
	case MQ_WAY_BARE:
		b->command.transaction = false;
		p->layout->open(&p->behind, p->queue, p->attributes, false);
		return mq_redis_append(p->redis, &b->command) == -1 ?
		    -1 :
		    mq_redis_send(p->redis, &p->behind);
	case MQ_WAY_SCRIPT:
		if (b->how.mark.publisher == NULL)
			break;
		snprintf(number, sizeof(number), "%*lld", MQ_MARK_BEHIND,
		    behind != NULL ? behind->how.mark.before : -1);
		memcpy(b->command.wire.data + b->start - strlen("\r\n") -
			MQ_MARK_BEHIND,
		    number, MQ_MARK_BEHIND);
		break;
	case MQ_WAY_TRIAL:
		break;
	}
	if (!eval)
		return mq_redis_send(p->redis, &b->command);
	text = mq_command_eval(&b->command);
	rv = mq_redis_send(p->redis, &text);
	mq_command_free(&text);
	return rv;
}

/* All or nothing was done, unless MULTI itself was refused: then each for
 * itself.  An error of the mark is none of the batch. */
static redisReply **
judge_transaction(
    struct mq_publisher *p, struct mq_post *b, redisReply *r[REPLIES])
{
	redisReply *exec = r[EXEC];

	if (exec->type == REDIS_REPLY_ARRAY && exec->elements == 2) {
		p->marks &= exec->element[1]->type != REDIS_REPLY_ERROR ||
		    exec->element[0]->type == REDIS_REPLY_ERROR;
		p->limited |= exec->element[1]->type == REDIS_REPLY_INTEGER &&
		    exec->element[1]->integer == 1;
		return &exec->element[0];
	}
	if (r[PUBLISH]->type == REDIS_REPLY_INTEGER) {
		p->marks = false;
		return &r[PUBLISH];
	}
	if (r[PUBLISH]->type == REDIS_REPLY_ERROR)
		return &r[PUBLISH];
	/* The server does not let this user do it, or does not know how. */
	if (r[MARK]->type == REDIS_REPLY_ERROR &&
	    (mq_error_status(r[MARK]->str) == MQ_EXIT_NOPERM ||
		strncmp(r[MARK]->str, "ERR unknown command", 19) == 0)) {
		p->marks = false;
		b->how.mark.publisher = NULL;
		b->way = MQ_WAY_BARE;
	}
	return r[MARK]->type == REDIS_REPLY_ERROR ? &r[MARK] : &r[EXEC];
}

/* As a reply to the batch's own command; NULL: the connection is lost. */
static redisReply *
take_reply(struct mq_publisher *p, struct mq_post *b)
{
	static const int replies[] = {[MQ_WAY_SCRIPT] = 1,
	    [MQ_WAY_TRIAL] = 1,
	    [MQ_WAY_BARE] = 2,
	    [MQ_WAY_MARKED] = REPLIES};
	redisReply *r[REPLIES] = {NULL}, **chosen, *reply = NULL;
	int i, n = replies[b->way];

	for (i = 0; i < n && (r[i] = mq_redis_reply(p->redis)) != NULL; i++)
		;
	if (i == n) {
		chosen = n == REPLIES ? judge_transaction(p, b, r) : &r[0];
		reply = *chosen;
		*chosen = NULL;
	}
	for (i = 0; i < n; i++)
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

enum mq_call
mq_post_answer(
    struct mq_publisher *p, struct mq_post *b, mq_verdict_fn *take, void *arg)
{
	enum mq_way way = b->way;
	redisReply *reply = take_reply(p, b);
	enum mq_call result = MQ_CALL_DONE;

	if (reply == NULL)
		return MQ_CALL_LOST;
	if ((way == MQ_WAY_TRIAL && mq_redis_refused(p->redis, reply)) ||
	    mq_reply_noscript(reply) || reply->type == REDIS_REPLY_NIL ||
	    way != b->way) {
		result = MQ_CALL_AGAIN;
	} else if (way == MQ_WAY_TRIAL && reply->type == REDIS_REPLY_INTEGER &&
	    reply->integer == 0) {
		mq_redis_fail(
		    p->redis, MQ_EXIT_AGAIN, "the queue was deleted meanwhile");
		result = MQ_CALL_AGAIN;
	} else if (mq_reply_busy(reply)) {
		/* What was sent behind it may be done, or not. */
		(void)mq_redis_refused(p->redis, reply);
		result = MQ_CALL_LOST;
	} else if (mq_redis_refused(p->redis, reply)) {
		result = MQ_CALL_REFUSED;
	} else if (!take_verdicts(b, reply, take, arg)) {
		mq_redis_fail(p->redis, MQ_EXIT_WRONGTYPE, "unexpected reply");
		result = MQ_CALL_REFUSED;
	} else {
		confirm(p, b);
		if (way == MQ_WAY_BARE)
			p->uncounted += b->count;
	}
	freeReplyObject(reply);
	return result;
}

enum mq_call
mq_post_settle(
    struct mq_publisher *p, struct mq_post *b, mq_verdict_fn *take, void *arg)
{
	/* Of one that has no text: all are there. */
	redisReply reply = {.type = REDIS_REPLY_INTEGER};
	const redisReply *marks = p->last_marks, *value;
	const char *text = NULL;
	long long before;
	size_t i;

	/* No known mark can be that of another batch under way. */
	for (i = 1; i < marks->elements && text == NULL; i += 2) {
		value = marks->element[i];
		text = take_apart(value, &before);
		if (text != NULL && before != b->how.mark.before)
			text = NULL;
		else if (text != NULL)
			reply.len = value->len - (size_t)(text - value->str);
	}
	/* A mark that is missing may have been there, too long ago. */
	if (text == NULL &&
	    mq_clock_steady_ms() - b->sent_ms <= MQ_MARKS_SURE_MS)
		return MQ_CALL_AGAIN;
	if (text != NULL && reply.len > 0) {
		reply.type = REDIS_REPLY_STRING;
		reply.str = (char *)(uintptr_t)text;
	}
	if (text == NULL || !take_verdicts(b, &reply, take, arg)) {
		mq_redis_fail(
		    p->redis, MQ_EXIT_UNAVAILABLE, "no answer for too long");
		return MQ_CALL_REFUSED;
	}
	confirm(p, b);
	return MQ_CALL_DONE;
}

void
mq_post_clear(struct mq_post *b, bool all)
{
	b->count = 0;
	if (all || b->command.wire.cap > KEEP_BYTES)
		mq_command_free(&b->command);
}
