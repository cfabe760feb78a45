#include "publisher.h"

#include "base/clock.h"
#include "base/exit.h"
#include "base/text.h"
#include "calls.h"

/* The name of its connection, before the id. */
#define NAME_START "mq-publish:"

static struct mq_command
about_marks(const struct mq_publisher *p, const char *verb)
{
	struct mq_command c = mq_redis_command(p->redis);

	mq_command_plain(&c, verb);
	mq_side_marks(p->layout->side, &c, p->queue, p->id);
	return c;
}

/* From now on, and on this connection, commands without a key are for the node that has
 * the queue, if there are several. */
static void
settle_down(struct mq_publisher *p)
{
	struct mq_command c = about_marks(p, "EXISTS");

	if (c.slot != -1)
		p->redis->home = c.slot;
	p->behind.cluster = c.cluster;
	mq_command_free(&c);
}

void
mq_publisher_init(struct mq_publisher *p, struct mq_redis *r,
    const struct mq_layout *layout, const char *queue,
    const struct mq_attributes *attributes)
{
	struct mq_idgen random = {0};

	*p = (struct mq_publisher){.redis = r,
	    .layout = layout,
	    .queue = queue,
	    .attributes = attributes,
	    .marks = true,
	    .confirmed_last = -1};
	mq_id_random(&random, p->id, MQ_ID_LEN);
	settle_down(p);
}

static void
build_name(const struct mq_publisher *p, struct mq_command *c)
{
	mq_command_plain(c, "CLIENT SETNAME");
	mq_command_fmt(c, NAME_START "%s", p->id);
}

/* By the reply to HGETALL on the marks, of which each is "BEFORE REPLY", what was the reply
 * to the batch with so many messages before it, empty: all are there; NULL: it has no mark.
 * *last: so many were before the last batch that was done; -1: none is known. */
static const char *
find_mark(const redisReply *marks, long long before, long long *last)
{
	const char *found = NULL, *value;
	long long of;
	size_t i, len;

	*last = -1;
	for (i = 1; i < marks->elements; i += 2) {
		if (marks->element[i]->type != REDIS_REPLY_STRING)
			continue;
		value = marks->element[i]->str;
		len = strcspn(value, " ");
		of = value[len] == ' ' ? mq_number(value, len, INT64_MAX) : -1;
		*last = MAX(*last, of);
		if (of != -1 && of == before)
			found = value + len + 1;
	}
	return found;
}

/* --- opening -------------------------------------------------------------------- */

/*
 * The questions of one round: the connection's name, the time, whether the queue is known,
 * whether it has a limit, and whether it can be used.  First, the rights to publish special
 * messages without a script, which is good only where a new connection can find out what
 * became of them.  These do nothing, and are refused where one of them is not
 * permitted.
 */
enum { NAME = 4, TIME, KNOWN, LIMIT, USE, QUESTIONS };
static const char *const rights[NAME] = {"MULTI",
    "CLIENT LIST ID 9223372036854775807", "CLIENT KILL ID 9223372036854775807",
    "EXEC"};

static void
build_question(
    const struct mq_publisher *p, int i, bool special, struct mq_command *c)
{
	switch (i) {
	case NAME:
		build_name(p, c);
		break;
	case TIME:
		mq_command_plain(c, "TIME");
		break;
	case KNOWN:
		p->layout->known(c, p->queue, false);
		break;
	case LIMIT:
		mq_command_plain(c, "HEXISTS");
		p->layout->side->key(c, p->queue, "settings");
		mq_command_str(c, MQ_MAX_LENGTH);
		break;
	case USE:
		p->layout->probe(c, NULL, p->queue, special);
		break;
	default:
		mq_command_plain(c, rights[i]);
		c->transaction = true;
	}
}

/* Those from `first` on; the caller frees the replies, of which some may be NULL.  False:
 * the connection is lost. */
static bool
ask_questions(const struct mq_publisher *p, int first, bool special,
    redisReply *reply[QUESTIONS])
{
	struct mq_command c = mq_redis_command(p->redis);
	int i, rv = 0;

	for (i = first; i < QUESTIONS && rv == 0; i++) {
		build_question(p, i, special, &c);
		rv = mq_redis_append(p->redis, &c);
	}
	mq_command_free(&c);
	if (rv == -1 || mq_redis_flush(p->redis) == -1)
		return false;
	for (i = first; i < QUESTIONS; i++)
		if ((reply[i] = mq_redis_reply(p->redis)) == NULL)
			return false;
	return true;
}

/* Whether the last error says that there are no scripts: plain messages need none. */
static bool
is_scriptless(const struct mq_redis *r)
{
	return mq_error_barred(r->status, r->error) &&
	    (strcasestr(r->error, "'eval") != NULL ||
		strcasestr(r->error, "`eval") != NULL ||
		strstr(r->error, MQ_REDIS_LACKS "EVAL") != NULL);
}

/* AGAIN: some answers were only that the server is busy. */
static enum mq_call
probe_queue(
    struct mq_publisher *p, bool special, int64_t *clock_us, bool *known)
{
	/* Only where a command behind the batch marks it. */
	int first = special && p->layout->publish_mark != NULL ? 0 : NAME, i;
	redisReply *reply[QUESTIONS] = {NULL};
	struct mq_command c = mq_redis_command(p->redis);
	enum mq_call result = MQ_CALL_LOST;
	bool busy = false;

	if (ask_questions(p, first, special, reply)) {
		result = MQ_CALL_DONE;
		p->direct = first == 0;
		for (i = first; i < NAME; i++)
			p->direct &= reply[i]->type != REDIS_REPLY_ERROR;
		p->named = reply[NAME]->type != REDIS_REPLY_ERROR;
		if (mq_reply_time_us(reply[TIME], &p->clock_us) == 0)
			*clock_us = p->clock_us -= mq_clock_steady_us();
		*known = reply[KNOWN]->type == REDIS_REPLY_INTEGER &&
		    reply[KNOWN]->integer != 0;
		p->limited = reply[LIMIT]->type == REDIS_REPLY_INTEGER &&
		    reply[LIMIT]->integer == 1;
		/* An error may go away when the question is repeated. */
		if (reply[USE]->type == REDIS_REPLY_ERROR) {
			build_question(p, USE, special, &c);
			if (mq_call_done(p->redis, &c) == -1 &&
			    (special || mq_redis_lost(p->redis) ||
				!is_scriptless(p->redis)))
				result = MQ_CALL_REFUSED;
		}
		for (i = NAME; i < USE; i++)
			busy |= mq_reply_busy(reply[i]);
		/* This waits until it is not. */
		if (result == MQ_CALL_DONE && busy) {
			build_question(p, TIME, special, &c);
			result = mq_call_done(p->redis, &c) == 0 ?
			    MQ_CALL_AGAIN :
			    MQ_CALL_REFUSED;
		}
	}
	for (i = first; i < QUESTIONS; i++)
		freeReplyObject(reply[i]);
	return result;
}

enum mq_call
mq_publisher_open(struct mq_publisher *p, bool special, bool make,
    int64_t *clock_us, bool *yes)
{
	bool known = false;
	enum mq_call result;
	int rv;

	settle_down(p);
	do
		result = probe_queue(p, special, clock_us, &known);
	while (result == MQ_CALL_AGAIN);
	*yes = known && !make;
	if (result != MQ_CALL_DONE || known)
		return result;
	/* Another answer is none, or an error, which comes again. */
	rv = make ? mq_queue_make(p->redis, p->layout, p->queue, p->attributes,
			MQ_MAKE, yes) :
		    mq_queue_known(p->redis, p->layout, p->queue, yes);
	return rv == 0 ? MQ_CALL_DONE : MQ_CALL_REFUSED;
}

int
mq_publisher_tick(struct mq_publisher *p, int64_t tick, long long *now)
{
	struct mq_command c = mq_redis_command(p->redis);

	mq_command_script(&c, &mq_script_tick);
	p->layout->side->key(&c, p->queue, "clock");
	mq_command_int(&c, tick);
	return mq_call_number(p->redis, &c, now);
}

/* --- batches ------------------------------------------------------------------- */

/* No script copies longer batches for want of a question. */
#define TRIAL_BYTES 65536
/* Messages that are due so soon may be so already. */
#define AT_LEAST_MS 60000

/* The memory that an empty batch may keep. */
#define KEEP_BYTES 262144

/* The replies to a transaction of two commands. */
enum { MULTI, PUBLISH, MARK, EXEC, REPLIES };

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
	b->first = eval && behind == NULL;
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
	    mq_error_barred(mq_error_status(r[MARK]->str), r[MARK]->str)) {
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
	    ((mq_reply_noscript(reply) || reply->type == REDIS_REPLY_NIL) &&
		!b->first) ||
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
		(void)mq_nonsense(p->redis);
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
	long long last;
	/* No known mark can be that of another batch under way. */
	const char *text = find_mark(p->last_marks, b->how.mark.before, &last);

	/* A mark that is missing may have been there, too long ago. */
	if (text == NULL &&
	    mq_clock_steady_ms() - b->sent_ms <= MQ_MARKS_SURE_MS)
		return MQ_CALL_AGAIN;
	if (text != NULL && *text != '\0') {
		reply.type = REDIS_REPLY_STRING;
		reply.len = strlen(text);
		reply.str = (char *)(uintptr_t)text;
	}
	if (text == NULL || !take_verdicts(b, &reply, take, arg)) {
		mq_redis_fail(p->redis, MQ_EXIT_UNAVAILABLE, MQ_REDIS_LATE);
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

/* --- what is published -------------------------------------------------------- */

static void
build_count(const struct mq_publisher *p, struct mq_command *c, long long n)
{
	mq_command_plain(c, "HINCRBY");
	p->layout->side->key(c, p->queue, "counters");
	mq_command_add(c, "published %lld", n);
}

void
mq_publisher_count(struct mq_publisher *p)
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
    const struct mq_publisher *p, const struct mq_durable *durable, bool ours)
{
	struct mq_command write = mq_redis_command(p->redis);
	int rv;

	/* An older write would be the last one of this connection. */
	if (!ours)
		build_count(p, &write, 0);
	rv = mq_durable_wait(p->redis, durable, ours ? NULL : &write);
	mq_command_free(&write);
	return rv;
}

void
mq_publisher_free(struct mq_publisher *p)
{
	struct mq_command c;

	if (p->marked && !p->loose && !mq_redis_lost(p->redis)) {
		c = about_marks(p, "UNLINK");
		(void)mq_redis_send(p->redis, &c);
		mq_command_free(&c);
	}
	mq_command_free(&p->behind);
	freeReplyObject(p->last_marks);
}

/* --- a new connection ----------------------------------------------------------- */

/*
 * Batches that were sent before may still be on their way.  A script finds its mark and
 * does nothing; a transaction does not, so the old connection has to be gone before the
 * marks are read.  A name identifies that connection, as the numbers of connections begin
 * anew with the server.
 */

/* The new connection has no name yet. */
static enum mq_call
kill_former(struct mq_publisher *p)
{
	char name[sizeof(" name=" NAME_START " ") + MQ_ID_LEN];
	struct mq_command c = mq_redis_command(p->redis);
	enum mq_call result;
	redisReply *reply;
	unsigned long long id;
	char *rest, *line;

	snprintf(name, sizeof(name), " name=" NAME_START "%s ", p->id);
	mq_command_plain(&c, "CLIENT LIST");
	result = mq_call_once(p->redis, &c, &reply);
	if (result != MQ_CALL_DONE)
		return result;
	rest = reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
	while (result == MQ_CALL_DONE && (line = strsep(&rest, "\n")) != NULL) {
		if (strstr(line, name) == NULL ||
		    sscanf(line, "id=%llu ", &id) != 1)
			continue;
		mq_command_plain(&c, "CLIENT KILL ID");
		mq_command_fmt(&c, "%llu", id);
		result = mq_call_once(p->redis, &c, NULL);
	}
	freeReplyObject(reply);
	return result;
}

enum mq_call
mq_publisher_resume(
    struct mq_publisher *p, bool whole, long long *missing, bool *proven)
{
	struct mq_command c = mq_redis_command(p->redis);
	enum mq_call result;
	long long last;
	int64_t age_ms;

	settle_down(p);
	/* From then on nothing arrives any more that was sent before. */
	result = kill_former(p);
	if (result == MQ_CALL_DONE) {
		build_name(p, &c);
		result = mq_call_once(p->redis, &c, NULL);
	}
	if (result == MQ_CALL_REFUSED && whole) {
		p->loose = true;
		result = MQ_CALL_DONE;
	}
	if (result != MQ_CALL_DONE)
		return result;
	/* The marks are written to before they are read: a user who must not do that
	 * has left none, whatever was done. */
	c = about_marks(p, "HSET");
	mq_command_add(&c, "resumed %lld", p->sent);
	result = mq_call_once(p->redis, &c, NULL);
	if (result == MQ_CALL_DONE || result == MQ_CALL_AGAIN) {
		c = about_marks(p, "PEXPIRE");
		mq_command_int(&c, MQ_MARKS_KEEP_MS);
		result = mq_call_once(p->redis, &c, NULL);
	}
	/* In a full memory the marks can be read, and that they could be written
	 * to has been seen before. */
	if (result == MQ_CALL_LOST || result == MQ_CALL_REFUSED)
		return result;
	c = about_marks(p, "HGETALL");
	freeReplyObject(p->last_marks);
	p->last_marks = NULL;
	result = mq_call_once(p->redis, &c, &p->last_marks);
	if (result != MQ_CALL_DONE)
		return result;
	(void)find_mark(p->last_marks, -1, &last);
	age_ms = mq_clock_steady_ms() - p->confirmed_ms;
	*proven = last >= p->confirmed_last;
	/* The one that is last had a message at least. */
	*missing = *proven || (last == -1 && age_ms > MQ_MARKS_SURE_MS) ?
	    0 :
	    p->confirmed - (last + 1);
	return result;
}
