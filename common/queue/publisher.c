/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "publisher.h"

#include "base/clock.h"
#include "base/exit.h"
#include "calls.h"
#include "marks.h"

static struct mq_marks
marks_of(const struct mq_publisher *p)
{
	return (struct mq_marks){
	    p->redis, p->layout, p->queue, p->id, p->lasting};
}

/* On a cluster, sends commands without a key to the queue's node from now on. */
static void
settle_down(struct mq_publisher *p)
{
	const struct mq_marks marks = marks_of(p);
	struct mq_command c = mq_marks_about(&marks, "EXISTS");

	if (c.slot != -1)
		p->redis->home = c.slot;
	mq_command_free(&c);
}

void
mq_publisher_init(struct mq_publisher *p, struct mq_redis *r,
    const struct mq_layout *layout, const char *queue,
    const struct mq_attributes *attributes, mq_verdict_fn *take, void *arg)
{
	struct mq_idgen random = {0};

	*p = (struct mq_publisher){.redis = r,
	    .layout = layout,
	    .queue = queue,
	    .attributes = attributes,
	    .take = take,
	    .arg = arg,
	    .marks = true,
	    .confirmed_last = -1};
	mq_id_random(&random, p->id, MQ_ID_LEN);
	settle_down(p);
}

/* --- opening -------------------------------------------------------------------- */

/*
 * Questions of one round: the connection's name, the time, whether the queue is listed, has a
 * limit, and can be used.  RIGHTS tests the commands of a new connection that must find out
 * which plain commands were done: without effect here, and refused where not permitted.
 */
enum { NAME, TIME, KNOWN, LIMIT, USE, RIGHTS, QUESTIONS = RIGHTS + 4 };
static const char *const rights[] = {"MULTI",
    "CLIENT LIST ID 9223372036854775807", "CLIENT KILL ID 9223372036854775807",
    "EXEC"};

struct opening {
	struct mq_publisher *publisher;
	bool has_options, known, refused;
};

static void
build_question(void *arg, size_t i, struct mq_command *c)
{
	const struct opening *o = arg;
	const struct mq_publisher *p = o->publisher;

	switch (i) {
	case NAME:
		mq_marks_name(c, p->id);
		break;
	case TIME:
		mq_command_plain(c, "TIME");
		break;
	case KNOWN:
		p->layout->known(c, p->queue, false);
		break;
	case LIMIT:
		mq_command_plain(c, "HEXISTS");
		p->layout->extra->key(c, p->queue, "settings");
		mq_command_str(c, MQ_MAX_LENGTH);
		break;
	case USE:
		p->layout->probe(c, NULL, p->queue, o->has_options);
		break;
	default:
		mq_command_plain(c, rights[i - RIGHTS]);
	}
}

/* Whether the last error means that scripts cannot be used: plain messages need none. */
static bool
is_scriptless(const struct mq_redis *r)
{
	return mq_error_barred(r->status, r->error) &&
	    (strcasestr(r->error, "'eval") != NULL ||
		strcasestr(r->error, "`eval") != NULL ||
		strstr(r->error, MQ_REDIS_LACKS "EVAL") != NULL);
}

static int
store_answer(void *arg, size_t i, redisReply *reply)
{
	struct opening *o = arg;
	struct mq_publisher *p = o->publisher;
	bool good = reply->type != REDIS_REPLY_ERROR;
	bool yes = reply->type == REDIS_REPLY_INTEGER && reply->integer != 0;

	switch (i) {
	case NAME:
		p->named = good;
		break;
	case TIME:
		if (mq_reply_time_us(reply, &p->clock_us) == 0)
			p->clock_us -= mq_clock_steady_us();
		break;
	case KNOWN:
		o->known = yes;
		break;
	case LIMIT:
		p->limited = yes;
		break;
	case USE:
		o->refused = mq_redis_refused(p->redis, reply) &&
		    (o->has_options || !is_scriptless(p->redis));
		break;
	default:
		p->by_command &= good;
	}
	return 0;
}

enum mq_call
mq_publisher_open(struct mq_publisher *p, bool has_options, bool make,
    int64_t *clock_us, bool *yes)
{
	/* Plain commands need a command that marks them. */
	bool by_command =
	    (has_options || p->lasting) && p->layout->publish_mark != NULL;
	struct opening o = {p, has_options, false, false};
	int rv;

	p->by_command = by_command;
	if (mq_ask_each(p->redis, by_command ? QUESTIONS : RIGHTS,
		build_question, store_answer, &o) == -1)
		return MQ_CALL_LOST;
	if (o.refused)
		return MQ_CALL_REFUSED;
	if (p->clock_us != 0)
		*clock_us = p->clock_us;
	*yes = o.known && !make;
	if (o.known)
		return MQ_CALL_DONE;
	/* An error reply to KNOWN comes again. */
	rv = make ? mq_queue_make(p->redis, p->layout, p->queue, p->attributes,
			MQ_MAKE, yes) :
		    mq_queue_known(p->redis, p->layout, p->queue, yes);
	return rv == 0 ? MQ_CALL_DONE : MQ_CALL_REFUSED;
}

/* --- counts ------------------------------------------------------------------ */

static void
build_count(const struct mq_publisher *p, struct mq_command *c, long long n)
{
	mq_command_plain(c, "HINCRBY");
	p->layout->extra->key(c, p->queue, "counters");
	mq_command_add(c, "published %lld", n);
}

/* Counts messages that were published without a count; the next command notices a lost
 * connection. */
static void
count_rest(struct mq_publisher *p)
{
	struct mq_command c = mq_redis_command(p->redis);

	if (p->uncounted == 0)
		return;
	build_count(p, &c, p->uncounted);
	p->uncounted = 0;
	freeReplyObject(mq_redis_answer(p->redis, &c));
	mq_command_free(&c);
}

int
mq_publisher_wait_durable(
    const struct mq_publisher *p, const struct mq_durable *durable)
{
	struct mq_command write = mq_redis_command(p->redis);
	int rv;

	/* WAIT covers this connection's writes: one must be newer than all messages. */
	if (!p->ours)
		build_count(p, &write, 0);
	rv = mq_durable_wait(p->redis, durable, p->ours ? NULL : &write);
	mq_command_free(&write);
	return rv;
}

/* --- filling a batch ----------------------------------------------------------- */

/* A message that is due sooner may be due by the server's clock already. */
#define AT_LEAST_MS	60000
#define UNDER_WAY_BYTES ((size_t)2 * 1024 * 1024) /* about the most */

/* Whether another publisher, who asks for the marks later, can kill this one's connection first: a
 * transaction that came behind the question would not be seen. */
static bool
can_be_killed(const struct mq_publisher *p)
{
	return p->named && p->by_command;
}

/* Adds what the publisher knows of the server to how the next message is published. */
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
	/* Only the script enforces a limit, makes attachments stay, and is refused without the
	 * right to its mark. */
	scripted = p->limited || how->files != NULL ||
	    (p->lasting && !(p->marked && can_be_killed(p)));
	if (scripted && !how->has_options)
		how->has_options = how->same_header = true;
	how->order_only &= !scripted;
	/* Only the script puts a message that is due into ready. */
	how->by_command = can_be_killed(p) &&
	    (how->when.kind != MQ_WHEN_AT ||
		how->when.ms >= now_us / 1000 + AT_LEAST_MS);
}

static bool
is_plain(const struct mq_publisher *p, const struct mq_publishing *how)
{
	return p->layout->publish_mark != NULL &&
	    p->layout->publish_mark(NULL, p->queue, how, 0);
}

/* With limits, each batch goes alone, so that the accepted messages are the first ones.  Later
 * batches must not overtake one without a mark, if the server does not know the script or,
 * on a cluster, the queue is moving; nor the first batch, whose mark may be refused; nor plain
 * ones a script, which may have to come again. */
bool
mq_publisher_full(struct mq_publisher *p, const struct mq_publishing *how)
{
	struct mq_publishing whole = *how;
	bool alone;

	complete(p, &whole);
	if (!is_plain(p, &whole))
		alone = !p->marks || p->limited || how->limits.ready >= 0 ||
		    how->limits.delayed >= 0;
	else if (p->marks)
		alone = !p->marked ||
		    (p->kept > 0 && !p->batches[p->kept - 1].plain);
	else
		alone = mq_redis_command(p->redis).cluster;
	p->overtaken &= p->kept > 0;
	return p->kept > (alone ? 0 : MQ_MARKS - 1) || p->overtaken ||
	    (p->kept > 0 && p->bytes > UNDER_WAY_BYTES);
}

static void
begin(const struct mq_publisher *p, unsigned i, struct mq_batch *b)
{
	b->how.mark.behind = i > 0 ? p->batches[i - 1].how.mark.before : -1;
	b->command.cluster = mq_redis_command(p->redis).cluster;
	p->layout->publish(&b->command, p->queue, &b->how);
	b->plain = is_plain(p, &b->how);
	b->start = b->command.wire.len;
	b->start_args = b->command.args;
}

/* Gives a batch another head before the same messages. */
static void
begin_anew(struct mq_publisher *p, unsigned i)
{
	struct mq_batch *b = &p->batches[i], old = *b;

	b->command = (struct mq_command){0};
	begin(p, i, b);
	mq_command_tail(&b->command, &old.command, old.start,
	    old.command.args - old.start_args);
	p->bytes += mq_batch_bytes(b) - mq_batch_bytes(&old);
	mq_command_free(&old.command);
}

void
mq_publisher_add(struct mq_publisher *p, const struct mq_publishing *how,
    const char unique[MQ_ID_LEN + 1], const char *id,
    const struct mq_buf *header, const char *payload, size_t n)
{
	struct mq_batch *b = &p->batches[p->kept];

	if (b->count++ == 0) {
		b->how = *how;
		b->how.mark =
		    (struct mq_mark){.publisher = p->marks ? p->id : NULL,
			.place = (int)(p->begun++ % MQ_MARKS) +
			    (p->lasting ? MQ_MARKS : 0),
			.before = p->sent};
		complete(p, &b->how);
		begin(p, p->kept, b);
	}
	p->layout->publish_add(
	    &b->command, &b->how, unique, header, payload, n);
	if (id != NULL)
		mq_buf_add(&b->ids, id, MQ_ID_LEN);
	if (b->how.now_us > 0)
		p->last_us = b->how.now_us++;
}

/* --- sending ------------------------------------------------------------------- */

/* The commands of a plain batch, and their replies. */
enum { MULTI, PUBLISH, BEHIND, EXEC, REPLIES };

/* Sends a plain batch and its mark in one transaction; or without a mark, and then the command
 * that lists the queue again in case it was deleted. */
static int
send_plain(const struct mq_publisher *p, struct mq_batch *b)
{
	bool marked = b->how.mark.publisher != NULL;
	struct mq_command multi = mq_redis_command(p->redis), exec = multi,
			  behind = multi;
	struct mq_command *const all[REPLIES] = {
	    &multi, &b->command, &behind, &exec};
	int i, rv = 0;

	mq_command_plain(&multi, "MULTI");
	if (marked)
		(void)p->layout->publish_mark(
		    &behind, p->queue, &b->how, b->count);
	else
		p->layout->open(&behind, p->queue, p->attributes, false);
	mq_command_plain(&exec, "EXEC");
	for (i = marked ? MULTI : PUBLISH;
	     i <= (marked ? EXEC : BEHIND) && rv == 0; i++) {
		all[i]->transaction = marked;
		rv = mq_redis_append(p->redis, all[i]);
	}
	mq_command_free(&multi);
	mq_command_free(&behind);
	mq_command_free(&exec);
	return rv == 0 ? mq_redis_flush(p->redis) : -1;
}

/* Sends batch number i, with eval as the text of its script. */
static int
send_batch(struct mq_publisher *p, unsigned i, bool eval)
{
	struct mq_batch *b = &p->batches[i];
	long long behind = i > 0 ? p->batches[i - 1].how.mark.before : -1;
	struct mq_command text;
	int rv;

	if (!b->plain && b->how.mark.behind != behind)
		begin_anew(p, i);
	b->sent_ms = mq_clock_steady_ms();
	b->first = eval && behind == -1;
	if (b->plain)
		return send_plain(p, b);
	if (!eval)
		return mq_redis_send(p->redis, &b->command);
	text = mq_command_eval(&b->command);
	rv = mq_redis_send(p->redis, &text);
	mq_command_free(&text);
	return rv;
}

int
mq_publisher_send(struct mq_publisher *p)
{
	/* A batch is sent again to a server that may not know the script. */
	bool eval = p->under_way < p->kept;
	const struct mq_batch *next = mq_publisher_next(p);

	if (next->count > 0) {
		p->sent += next->count;
		p->bytes += mq_batch_bytes(next);
		p->kept++;
	}
	while (p->under_way < p->kept) {
		if (send_batch(p, p->under_way++, eval) == -1)
			return -1;
		eval &= p->batches[p->under_way - 1].plain;
	}
	return 0;
}

/* --- answers ------------------------------------------------------------------- */

#define KEEP_BYTES 262144 /* most memory that an empty batch keeps */

/* Removes batch number i. */
static void
remove_batch(struct mq_publisher *p, unsigned i)
{
	struct mq_batch b = p->batches[i];

	p->bytes -= mq_batch_bytes(&b);
	p->under_way -= i < p->under_way;
	b.count = b.breaks = 0;
	mq_buf_clear(&b.ids);
	if (b.command.wire.cap > KEEP_BYTES)
		mq_command_free(&b.command);
	memmove(
	    &p->batches[i], &p->batches[i + 1], (--p->kept - i) * sizeof(b));
	p->batches[p->kept] = b;
}

/* Chooses the reply to the batch of a transaction.  If MULTI itself was refused, each command
 * was carried out by itself.  An error of the mark does not concern the batch. */
static redisReply **
judge_plain(struct mq_publisher *p, struct mq_batch *b, redisReply *r[REPLIES])
{
	redisReply *exec = r[EXEC];

	if (exec != NULL && exec->type == REDIS_REPLY_ARRAY &&
	    exec->elements == 2) {
		p->marks &= exec->element[1]->type != REDIS_REPLY_ERROR ||
		    exec->element[0]->type == REDIS_REPLY_ERROR;
		p->limited |= exec->element[1]->type == REDIS_REPLY_INTEGER &&
		    exec->element[1]->integer == 1;
		return &exec->element[0];
	}
	if (exec == NULL || r[PUBLISH]->type != REDIS_REPLY_STATUS) {
		p->marks &=
		    exec == NULL || r[PUBLISH]->type == REDIS_REPLY_ERROR;
		return &r[PUBLISH];
	}
	if (r[BEHIND]->type != REDIS_REPLY_ERROR)
		return &r[EXEC];
	/* Without the right to the mark, batches go without, unless it is needed. */
	if (!p->lasting &&
	    mq_error_barred(mq_error_status(r[BEHIND]->str), r[BEHIND]->str)) {
		p->marks = false;
		b->how.mark.publisher = NULL;
	}
	return &r[BEHIND];
}

/* Reads the replies to a batch, and returns that to its own command; NULL: the connection is
 * lost. */
static redisReply *
receive_reply(struct mq_publisher *p, struct mq_batch *b)
{
	bool marked = b->plain && b->how.mark.publisher != NULL;
	int i = marked ? MULTI : PUBLISH;
	int last = marked ? EXEC : b->plain ? BEHIND : PUBLISH;
	redisReply *r[REPLIES] = {NULL}, **chosen, *reply = NULL;

	while (i <= last && (r[i] = mq_redis_reply(p->redis)) != NULL)
		i++;
	if (i > last) {
		chosen = judge_plain(p, b, r);
		reply = *chosen;
		*chosen = NULL;
	}
	for (i = 0; i < REPLIES; i++)
		freeReplyObject(r[i]);
	return reply;
}

static bool
parse_verdicts(
    struct mq_publisher *p, const struct mq_batch *b, const redisReply *reply)
{
	enum mq_published verdict;
	/* Behind the letters are the ids of joined messages. */
	size_t at = (size_t)b->count;
	const char *id;
	long long number;
	int i;

	for (i = 0; i < b->count; i++) {
		number = b->how.mark.before + i + 1;
		verdict = mq_layout_published(reply, i);
		id = NULL;
		if (verdict == MQ_PUBLISHED_NONSENSE)
			return false;
		if (verdict == MQ_PUBLISHED_REPLACED) {
			p->take(p->arg, verdict, number, NULL);
			verdict = MQ_PUBLISHED;
		}
		if (verdict == MQ_PUBLISHED_JOINED) {
			id = reply->str + at;
			at += MQ_ID_LEN;
			if (at > reply->len)
				return false;
		} else if (verdict == MQ_PUBLISHED && b->ids.len > 0) {
			id = b->ids.data + (size_t)i * MQ_ID_LEN;
		}
		/* Another connection wrote the original of a duplicate. */
		if (verdict == MQ_PUBLISHED || id != NULL ||
		    verdict == MQ_PUBLISHED_DUPLICATE)
			p->ours = verdict == MQ_PUBLISHED;
		p->take(p->arg, verdict, number, id);
	}
	return true;
}

static void
confirm(struct mq_publisher *p, const struct mq_batch *b)
{
	p->confirmed += b->count;
	p->confirmed_last = MAX(p->confirmed_last, b->how.mark.before);
	p->confirmed_ms = mq_clock_steady_ms();
	p->marked |= p->marks;
}

/* The outcome of a batch by its reply. */
static enum mq_call
judge_by_answer(struct mq_publisher *p, struct mq_batch *b)
{
	bool marked = b->how.mark.publisher != NULL;
	redisReply *reply = receive_reply(p, b);
	enum mq_call result = MQ_CALL_DONE;

	if (reply == NULL)
		return MQ_CALL_LOST;
	if (((mq_reply_noscript(reply) || reply->type == REDIS_REPLY_NIL) &&
		!b->first) ||
	    marked != (b->how.mark.publisher != NULL)) {
		result = MQ_CALL_AGAIN;
	} else if (mq_reply_busy(reply)) {
		/* Later batches may be done, or not: only the marks can tell. */
		(void)mq_redis_refused(p->redis, reply);
		result = MQ_CALL_LOST;
	} else if (mq_redis_refused(p->redis, reply)) {
		result = MQ_CALL_REFUSED;
	} else if (!parse_verdicts(p, b, reply)) {
		(void)mq_nonsense(p->redis);
		result = MQ_CALL_REFUSED;
	} else {
		confirm(p, b);
		if (b->plain && !marked)
			p->uncounted += b->count;
	}
	freeReplyObject(reply);
	return result;
}

/* The outcome of a batch by its mark.  REFUSED: the mark may have expired. */
static enum mq_call
judge_by_mark(struct mq_publisher *p, const struct mq_batch *b)
{
	/* An empty mark: all messages were published. */
	redisReply reply = {.type = REDIS_REPLY_INTEGER};
	long long last;
	/* Batches under way have different marks. */
	const char *text =
	    mq_mark_find(p->last_marks, b->how.mark.before, &last);

	/* A missing mark of an old batch may have expired. */
	if (text == NULL &&
	    mq_clock_steady_ms() - b->sent_ms <= MQ_MARKS_SURE_MS)
		return MQ_CALL_AGAIN;
	if (text != NULL && *text != '\0') {
		reply.type = REDIS_REPLY_STRING;
		reply.len = strlen(text);
		reply.str = (char *)(uintptr_t)text;
	}
	if (text == NULL || !parse_verdicts(p, b, &reply)) {
		mq_redis_fail(p->redis, MQ_EXIT_UNAVAILABLE, MQ_REDIS_LATE);
		return MQ_CALL_REFUSED;
	}
	confirm(p, b);
	return MQ_CALL_DONE;
}

/* Removes the batches from number i on that are done; the others stay in their order.  False:
 * one was refused. */
static bool
judge_from(struct mq_publisher *p, unsigned i, bool by_marks)
{
	bool good = true;
	enum mq_call result;
	struct mq_batch *b;

	while (i < p->kept) {
		b = &p->batches[i];
		result = by_marks ? judge_by_mark(p, b) : judge_by_answer(p, b);
		good &= result != MQ_CALL_REFUSED;
		if (result == MQ_CALL_DONE)
			remove_batch(p, i);
		else
			i++;
	}
	return good;
}

enum mq_call
mq_publisher_answer(struct mq_publisher *p)
{
	enum mq_call result = judge_by_answer(p, p->batches);

	if (result == MQ_CALL_AGAIN) {
		/* No batch that must follow was done.  A refused one is refused again
		 * when it is the oldest. */
		(void)judge_from(p, 1, false);
		if (mq_redis_lost(p->redis))
			return MQ_CALL_LOST;
		p->under_way = 0;
	} else if (result != MQ_CALL_LOST) {
		remove_batch(p, 0);
	}
	if (p->under_way == 0)
		count_rest(p);
	return result;
}

void
mq_publisher_free(struct mq_publisher *p)
{
	const struct mq_marks marks = marks_of(p);
	struct mq_command c;
	int i;

	if (p->marked && !p->loose && !mq_redis_lost(p->redis)) {
		c = mq_marks_about(&marks, "UNLINK");
		(void)mq_redis_send(p->redis, &c);
		mq_command_free(&c);
	}
	for (i = 0; i < MQ_MARKS; i++) {
		mq_command_free(&p->batches[i].command);
		mq_buf_free(&p->batches[i].ids);
	}
	freeReplyObject(p->last_marks);
}

/* --- a new connection ----------------------------------------------------------- */

/* Whether all kept batches are scripts, which find their marks themselves. */
static bool
all_scripts(const struct mq_publisher *p)
{
	unsigned i = 0;

	while (i < p->kept && !p->batches[i].plain)
		i++;
	return i == p->kept;
}

bool
mq_publisher_can_resume(struct mq_publisher *p)
{
	bool scripts = all_scripts(p);
	unsigned i;

	for (i = 0; i < p->kept; i++)
		if (p->batches[i].how.mark.publisher == NULL)
			return false;
	/* Without a name, the former connection cannot be killed. */
	p->loose |= p->kept > 0 && !p->named && scripts;
	return p->kept == 0 || (p->marks && (p->named || scripts));
}

enum mq_call
mq_publisher_resume(struct mq_publisher *p, long long *missing, bool *proven)
{
	const struct mq_marks marks = marks_of(p);
	enum mq_call result;
	long long last;

	*missing = 0;
	*proven = p->ours = false;
	if (p->kept == 0 && !p->marks)
		return MQ_CALL_DONE;
	settle_down(p);
	result = mq_marks_read(
	    &marks, p->sent, all_scripts(p), &p->loose, &p->last_marks);
	if (result != MQ_CALL_DONE)
		return result;
	(void)mq_mark_find(p->last_marks, -1, &last);
	*proven = last >= p->confirmed_last;
	/* The batch of the last mark had at least one message. */
	if (!*proven &&
	    (last != -1 ||
		mq_clock_steady_ms() - p->confirmed_ms <= MQ_MARKS_SURE_MS))
		*missing = p->confirmed - (last + 1);
	if (*missing == 0 && !judge_from(p, 0, true))
		return MQ_CALL_REFUSED;
	p->under_way = 0;
	p->overtaken = p->kept > 0;
	/* Nothing was written on this connection yet. */
	p->ours = false;
	return MQ_CALL_DONE;
}

/* --- a former publisher ------------------------------------------------------ */

void
mq_publisher_keep_marks(struct mq_publisher *p)
{
	p->lasting = true;
}

void
mq_publisher_continue(struct mq_publisher *p, const char id[MQ_ID_LEN + 1],
    unsigned long begun, long long sent)
{
	strlcpy(p->id, id, sizeof(p->id));
	p->lasting = true;
	p->begun = begun;
	p->sent = sent;
	p->confirmed_ms = mq_clock_steady_ms();
}

enum mq_call
mq_publisher_read_marks(struct mq_publisher *p)
{
	const struct mq_marks marks = marks_of(p);

	/* Marks of the former publisher go with this one. */
	p->marked = true;
	return mq_marks_read(
	    &marks, p->sent, !can_be_killed(p), &p->loose, &p->last_marks);
}

bool
mq_publisher_skip(struct mq_publisher *p)
{
	struct mq_batch *b = &p->batches[p->kept];
	redisReply reply = {.type = REDIS_REPLY_INTEGER};
	long long of;
	const char *text = mq_mark_at(p->last_marks, b->how.mark.place, &of);

	if (text == NULL || of < b->how.mark.before)
		return false;
	/* A later batch of the same place has taken that of this one's reply. */
	if (of == b->how.mark.before && *text != '\0') {
		reply.type = REDIS_REPLY_STRING;
		reply.len = strlen(text);
		reply.str = (char *)(uintptr_t)text;
	}
	(void)parse_verdicts(p, b, &reply);
	mq_publisher_pass(p);
	return true;
}

void
mq_publisher_pass(struct mq_publisher *p)
{
	const struct mq_batch *b = &p->batches[p->kept];

	p->sent += b->count;
	p->bytes += mq_batch_bytes(b);
	p->kept++;
	remove_batch(p, p->kept - 1);
}

void
mq_publisher_forget(struct mq_publisher *p)
{
	const struct mq_batch *next = mq_publisher_next(p);

	if (next->count > 0) {
		p->bytes += mq_batch_bytes(next);
		p->kept++;
	}
	while (p->kept > 0)
		remove_batch(p, p->kept - 1);
	p->marked = false;
}

#define LIMIT_MIN ((size_t)1024 * 1024) /* least bytes that servers refuse */

long long
mq_publisher_drop(struct mq_publisher *p, bool said)
{
	long long number;
	struct mq_batch *b;
	unsigned i, at = 0;

	for (i = 1; i < p->kept; i++)
		if (mq_batch_bytes(&p->batches[i]) >
		    mq_batch_bytes(&p->batches[at]))
			at = i;
	b = &p->batches[at];
	if (p->kept == 0 || mq_batch_bytes(b) < LIMIT_MIN ||
	    (!said && ++b->breaks < 2))
		return 0;
	number = b->how.mark.before + 1;
	remove_batch(p, at);
	return number;
}
