#include "publisher.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "calls.h"
#include "layout.h"

#define AT_LEAST_MS 60000

void
mq_publisher_settle_down(struct mq_publisher *p)
{
	struct mq_command c = mq_redis_command(p->redis);

	mq_command_plain(&c, "EXISTS");
	mq_side_marks(p->layout->side, &c, p->queue, p->id);
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
	mq_publisher_settle_down(p);
}

void
mq_publisher_free(struct mq_publisher *p)
{
	mq_command_free(&p->behind);
	freeReplyObject(p->last_marks);
}

void
mq_publisher_name(const struct mq_publisher *p, struct mq_command *c)
{
	mq_command_plain(c, "CLIENT SETNAME");
	mq_command_fmt(c, MQ_PUBLISHER_NAME "%s", p->id);
}

/* The reply is an integer. */
static enum mq_call
call_number(struct mq_publisher *p, struct mq_command *c, long long *n)
{
	return mq_call_number(p->redis, c, n) == 0 ? MQ_CALL_DONE :
						     MQ_CALL_REFUSED;
}

/* Unchanged if that is an error. */
static void
read_clock(const redisReply *reply, int64_t *clock_us)
{
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
		*clock_us =
		    strtoll(reply->element[0]->str, NULL, 10) * 1000000 +
		    strtoll(reply->element[1]->str, NULL, 10) -
		    mq_clock_steady_us();
}

/* Scripts are not permitted; plain messages need none. */
static bool
without_scripts(const struct mq_redis *r)
{
	return !mq_redis_lost(r) &&
	    (strcasestr(r->error, "'eval") != NULL ||
		strcasestr(r->error, "`eval") != NULL);
}

/* An error may go away when the probe is repeated.  Frees the reply. */
static enum mq_call
check_probe(struct mq_publisher *p, struct mq_command *probe, bool special,
    redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR) {
		freeReplyObject(reply);
		reply = mq_redis_call(p->redis, probe);
	}
	if (reply != NULL)
		freeReplyObject(reply);
	else if (special || !without_scripts(p->redis))
		return MQ_CALL_REFUSED;
	return MQ_CALL_DONE;
}

/*
 * Publish special messages without a script only where resume.c can find out what
 * became of them.  These do nothing, and are refused where one of them is not
 * permitted.
 */
static const char *const rights[] = {"MULTI",
    "CLIENT LIST ID 9223372036854775807", "CLIENT KILL ID 9223372036854775807",
    "EXEC"};
enum { RIGHTS = sizeof(rights) / sizeof(rights[0]) };

/* Only where a command behind the batch marks it. */
static bool
may_be_direct(const struct mq_publisher *p, bool special)
{
	return special && p->layout->publish_known != NULL;
}

/* One round: the rights, the connection's name, the time, whether the queue is known,
 * whether it has a limit, and whether it can be used. */
static int
send_questions(struct mq_publisher *p, bool special, struct mq_command *probe)
{
	struct mq_command c = mq_redis_command(p->redis);
	int i, rv = 0;

	for (i = 0; i < RIGHTS && may_be_direct(p, special) && rv == 0; i++) {
		mq_command_plain(&c, rights[i]);
		rv = mq_redis_append(p->redis, &c);
	}
	mq_publisher_name(p, &c);
	if (rv == 0)
		rv = mq_redis_append(p->redis, &c);
	mq_command_plain(&c, "TIME");
	if (rv == 0)
		rv = mq_redis_append(p->redis, &c);
	p->layout->known(&c, p->queue, false);
	if (rv == 0)
		rv = mq_redis_append(p->redis, &c);
	mq_command_plain(&c, "HEXISTS");
	p->layout->side->key(&c, p->queue, p->layout->side->settings);
	mq_command_str(&c, MQ_MAX_LENGTH);
	if (rv == 0)
		rv = mq_redis_append(p->redis, &c);
	mq_command_free(&c);
	p->layout->probe(probe, NULL, p->queue, special);
	return rv == 0 ? mq_redis_send(p->redis, probe) : -1;
}

static bool
read_rights(struct mq_publisher *p, bool special)
{
	redisReply *reply;
	int i;

	p->direct = may_be_direct(p, special);
	for (i = 0; i < RIGHTS && may_be_direct(p, special); i++) {
		reply = mq_redis_reply(p->redis);
		if (reply == NULL)
			return false;
		p->direct &= reply->type != REDIS_REPLY_ERROR;
		freeReplyObject(reply);
	}
	return true;
}

/* Waits until a server is not busy that was. */
static enum mq_call
await_server(struct mq_publisher *p)
{
	struct mq_command c = mq_redis_command(p->redis);

	mq_command_plain(&c, "TIME");
	return mq_call_done(p->redis, &c) == 0 ? MQ_CALL_AGAIN :
						 MQ_CALL_REFUSED;
}

/* AGAIN: some answers were only that the server is busy. */
static enum mq_call
probe_queue(
    struct mq_publisher *p, bool special, int64_t *clock_us, bool *known)
{
	struct mq_command probe = mq_redis_command(p->redis);
	redisReply *name = NULL, *time = NULL, *there = NULL, *limit = NULL,
		   *queue = NULL;
	enum mq_call result = MQ_CALL_LOST;

	if (send_questions(p, special, &probe) == 0 &&
	    read_rights(p, special) &&
	    (name = mq_redis_reply(p->redis)) != NULL &&
	    (time = mq_redis_reply(p->redis)) != NULL &&
	    (there = mq_redis_reply(p->redis)) != NULL &&
	    (limit = mq_redis_reply(p->redis)) != NULL &&
	    (queue = mq_redis_reply(p->redis)) != NULL) {
		p->named = name->type != REDIS_REPLY_ERROR;
		read_clock(time, &p->clock_us);
		if (p->clock_us != 0)
			*clock_us = p->clock_us;
		*known =
		    there->type == REDIS_REPLY_INTEGER && there->integer != 0;
		p->limited = mq_publisher_is_limit(limit);
		result = check_probe(p, &probe, special, queue);
		if (result == MQ_CALL_DONE &&
		    (mq_reply_busy(name) || mq_reply_busy(time) ||
			mq_reply_busy(there) || mq_reply_busy(limit)))
			result = await_server(p);
	}
	freeReplyObject(name);
	freeReplyObject(time);
	freeReplyObject(there);
	freeReplyObject(limit);
	mq_command_free(&probe);
	return result;
}

bool
mq_publisher_is_limit(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
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
	rv = make ?
	    mq_queue_make(p->redis, p->layout, p->queue, p->attributes, yes) :
	    mq_queue_known(p->redis, p->layout, p->queue, yes);
	return rv == 0 ? MQ_CALL_DONE : MQ_CALL_REFUSED;
}

enum mq_call
mq_publisher_tick(struct mq_publisher *p, int64_t tick, long long *now)
{
	struct mq_command c = mq_redis_command(p->redis);

	p->layout->tick(&c, p->queue, tick);
	return call_number(p, &c, now);
}

void
mq_publisher_complete(const struct mq_publisher *p, struct mq_publishing *how)
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

/*
 * With limits, so that the accepted messages are the first ones.  A batch without a mark
 * must not be overtaken by those behind it, if the server does not know the script or, on
 * a cluster, the queue is moving; nor must the first one, which may have to do without.
 */
bool
mq_publisher_alone(
    const struct mq_publisher *p, const struct mq_publishing *how)
{
	bool limited =
	    p->limited || how->limits.ready >= 0 || how->limits.delayed >= 0;
	struct mq_publishing whole = *how;

	mq_publisher_complete(p, &whole);
	if (!p->layout->publish_mark(NULL, p->queue, &whole, 0))
		return limited || !p->marks;
	return p->marks ? !p->marked : p->behind.cluster;
}

static void
build_count(const struct mq_publisher *p, struct mq_command *c, long long n)
{
	mq_command_plain(c, "HINCRBY");
	p->layout->side->key(c, p->queue, p->layout->side->counters);
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
mq_publisher_forget(struct mq_publisher *p)
{
	struct mq_command c = mq_redis_command(p->redis);

	if (!p->marked || p->loose || mq_redis_lost(p->redis))
		return;
	mq_command_plain(&c, "UNLINK");
	mq_side_marks(p->layout->side, &c, p->queue, p->id);
	(void)mq_redis_send(p->redis, &c);
	mq_command_free(&c);
}
