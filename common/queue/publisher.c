#include "publisher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "calls.h"

/* The name of its connection, before the id. */
#define NAME_START "mq-publish:"

/* Starts a plain command on the key with its marks. */
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

/* Gives the connection a name to find it by. */
static void
build_name(const struct mq_publisher *p, struct mq_command *c)
{
	mq_command_plain(c, "CLIENT SETNAME");
	mq_command_fmt(c, NAME_START "%s", p->id);
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

/* AGAIN: some answers were only that the server is busy. */
static enum mq_call
probe_queue(
    struct mq_publisher *p, bool special, int64_t *clock_us, bool *known)
{
	/* Only where a command behind the batch marks it. */
	int first = special && p->layout->publish_mark != NULL ? 0 : NAME, i;
	redisReply *reply[QUESTIONS] = {NULL}, **time;
	struct mq_command c = mq_redis_command(p->redis);
	const char *error = p->redis->error;
	enum mq_call result = MQ_CALL_LOST;
	bool busy = false;

	if (ask_questions(p, first, special, reply)) {
		result = MQ_CALL_DONE;
		p->direct = first == 0;
		for (i = first; i < NAME; i++)
			p->direct &= reply[i]->type != REDIS_REPLY_ERROR;
		p->named = reply[NAME]->type != REDIS_REPLY_ERROR;
		time = reply[TIME]->element;
		if (reply[TIME]->type == REDIS_REPLY_ARRAY &&
		    reply[TIME]->elements == 2)
			p->clock_us =
			    strtoll(time[0]->str, NULL, 10) * 1000000 +
			    strtoll(time[1]->str, NULL, 10) -
			    mq_clock_steady_us();
		if (p->clock_us != 0)
			*clock_us = p->clock_us;
		*known = reply[KNOWN]->type == REDIS_REPLY_INTEGER &&
		    reply[KNOWN]->integer != 0;
		p->limited = reply[LIMIT]->type == REDIS_REPLY_INTEGER &&
		    reply[LIMIT]->integer == 1;
		/* An error may go away when the question is repeated.  If
		 * scripts are not permitted, plain messages need none. */
		if (reply[USE]->type == REDIS_REPLY_ERROR) {
			build_question(p, USE, special, &c);
			if (mq_call_done(p->redis, &c) == -1 &&
			    (special || mq_redis_lost(p->redis) ||
				(strcasestr(error, "'eval") == NULL &&
				    strcasestr(error, "`eval") == NULL)))
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

/* --- what is published -------------------------------------------------------- */

static void
build_count(const struct mq_publisher *p, struct mq_command *c, long long n)
{
	mq_command_plain(c, "HINCRBY");
	p->layout->side->key(c, p->queue, "counters");
	mq_command_str(c, "published");
	mq_command_int(c, n);
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

/* One command, and its reply, which the caller frees if the answer is DONE; reply NULL: it
 * does not want any. */
static enum mq_call
ask_reply(struct mq_publisher *p, struct mq_command *c, redisReply **reply)
{
	redisReply *r = NULL;
	enum mq_call result = MQ_CALL_DONE;

	if (mq_redis_send(p->redis, c) == 0)
		r = mq_redis_reply(p->redis);
	mq_command_free(c);
	if (r == NULL)
		return MQ_CALL_LOST;
	if (mq_redis_refused(p->redis, r))
		result = p->redis->status == MQ_EXIT_AGAIN ? MQ_CALL_AGAIN :
							     MQ_CALL_REFUSED;
	if (reply != NULL && result == MQ_CALL_DONE)
		*reply = r;
	else
		freeReplyObject(r);
	return result;
}

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
	result = ask_reply(p, &c, &reply);
	if (result != MQ_CALL_DONE)
		return result;
	rest = reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
	while (result == MQ_CALL_DONE && (line = strsep(&rest, "\n")) != NULL) {
		if (strstr(line, name) == NULL ||
		    sscanf(line, "id=%llu ", &id) != 1)
			continue;
		mq_command_plain(&c, "CLIENT KILL ID");
		mq_command_fmt(&c, "%llu", id);
		result = ask_reply(p, &c, NULL);
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
		result = ask_reply(p, &c, NULL);
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
	mq_command_str(&c, "resumed");
	mq_command_int(&c, p->sent);
	result = ask_reply(p, &c, NULL);
	if (result == MQ_CALL_DONE || result == MQ_CALL_AGAIN) {
		c = about_marks(p, "PEXPIRE");
		mq_command_int(&c, MQ_MARKS_KEEP_MS);
		result = ask_reply(p, &c, NULL);
	}
	/* In a full memory the marks can be read, and that they could be written
	 * to has been seen before. */
	if (result == MQ_CALL_LOST || result == MQ_CALL_REFUSED)
		return result;
	c = about_marks(p, "HGETALL");
	freeReplyObject(p->last_marks);
	p->last_marks = NULL;
	result = ask_reply(p, &c, &p->last_marks);
	if (result != MQ_CALL_DONE)
		return result;
	last = mq_marks_last(p->last_marks);
	age_ms = mq_clock_steady_ms() - p->confirmed_ms;
	*proven = last >= p->confirmed_last;
	/* The one that is last had a message at least. */
	*missing = *proven || (last == -1 && age_ms > MQ_MARKS_SURE_MS) ?
	    0 :
	    p->confirmed - (last + 1);
	return result;
}
