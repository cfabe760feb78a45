/*
 * A publisher on a new connection.  Batches that were sent before may still be on their
 * way.  A script finds its mark and does nothing; a transaction does not, so the old
 * connection has to be gone before the marks are read.  A name identifies that
 * connection, as the numbers of connections begin anew with the server.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "layout.h"
#include "publisher.h"

/* One command and its reply, which the caller frees if the answer is DONE. */
static enum mq_call
ask_reply(struct mq_publisher *p, struct mq_command *c, redisReply **reply)
{
	*reply = NULL;
	if (mq_redis_send(p->redis, c) == 0)
		*reply = mq_redis_reply(p->redis);
	mq_command_free(c);
	if (*reply == NULL)
		return MQ_CALL_LOST;
	if (!mq_redis_refused(p->redis, *reply))
		return MQ_CALL_DONE;
	freeReplyObject(*reply);
	*reply = NULL;
	return p->redis->status == MQ_EXIT_AGAIN ? MQ_CALL_AGAIN :
						   MQ_CALL_REFUSED;
}

static enum mq_call
tell_server(struct mq_publisher *p, struct mq_command *c)
{
	redisReply *reply;
	enum mq_call result = ask_reply(p, c, &reply);

	if (result == MQ_CALL_DONE)
		freeReplyObject(reply);
	return result;
}

/* The number of a client in a line of CLIENT LIST, if it has this name. */
static bool
is_ours(const char *line, const char *name, unsigned long long *id)
{
	return strstr(line, name) != NULL && sscanf(line, "id=%llu ", id) == 1;
}

static enum mq_call
kill_client(struct mq_publisher *p, unsigned long long id)
{
	struct mq_command c = mq_redis_command(p->redis);

	mq_command_plain(&c, "CLIENT KILL ID");
	mq_command_fmt(&c, "%llu", id);
	return tell_server(p, &c);
}

/* The new connection has no name yet. */
static enum mq_call
kill_former(struct mq_publisher *p)
{
	char name[sizeof(" name=" MQ_PUBLISHER_NAME " ") + MQ_ID_LEN];
	struct mq_command c = mq_redis_command(p->redis);
	enum mq_call result;
	redisReply *reply;
	unsigned long long id;
	char *rest, *line;

	snprintf(name, sizeof(name), " name=" MQ_PUBLISHER_NAME "%s ", p->id);
	mq_command_plain(&c, "CLIENT LIST");
	result = ask_reply(p, &c, &reply);
	if (result != MQ_CALL_DONE)
		return result;
	rest = reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
	while (result == MQ_CALL_DONE && (line = strsep(&rest, "\n")) != NULL)
		if (is_ours(line, name, &id))
			result = kill_client(p, id);
	freeReplyObject(reply);
	return result;
}

/* From now on nothing arrives any more that was sent before. */
static enum mq_call
fence_off(struct mq_publisher *p)
{
	struct mq_command c = mq_redis_command(p->redis);
	enum mq_call result = kill_former(p);

	if (result != MQ_CALL_DONE)
		return result;
	mq_publisher_name(p, &c);
	return tell_server(p, &c);
}

bool
mq_publisher_can_resume(struct mq_publisher *p, bool whole)
{
	/* Batches sent before may arrive at any time, and find their marks. */
	p->loose |= !p->named && whole;
	return p->marks && (p->named || whole);
}

bool
mq_publisher_loose(const struct mq_publisher *p)
{
	return p->loose;
}

/*
 * The marks are written to before they are read: a user who must not do that has
 * left none, whatever was done.
 */
static enum mq_call
ask_marks(struct mq_publisher *p)
{
	struct mq_command c = mq_redis_command(p->redis);
	enum mq_call result;

	mq_command_plain(&c, "HSET");
	mq_side_marks(p->layout->side, &c, p->queue, p->id);
	mq_command_str(&c, "resumed");
	mq_command_int(&c, p->sent);
	result = tell_server(p, &c);
	if (result == MQ_CALL_DONE || result == MQ_CALL_AGAIN) {
		mq_command_plain(&c, "PEXPIRE");
		mq_side_marks(p->layout->side, &c, p->queue, p->id);
		mq_command_int(&c, MQ_MARKS_KEEP_MS);
		result = tell_server(p, &c);
	}
	/* In a full memory the marks can be read, and that they could be written
	 * to has been seen before. */
	if (result == MQ_CALL_LOST || result == MQ_CALL_REFUSED)
		return result;
	mq_command_plain(&c, "HGETALL");
	mq_side_marks(p->layout->side, &c, p->queue, p->id);
	freeReplyObject(p->last_marks);
	return ask_reply(p, &c, &p->last_marks);
}

/* Messages that the server had confirmed, and does not know of any more. */
static long long
count_missing(const struct mq_publisher *p)
{
	long long last = mq_marks_last(p->last_marks);
	int64_t age_ms = mq_clock_steady_ms() - p->confirmed_ms;

	if (last >= p->confirmed_last ||
	    (last == -1 && age_ms > MQ_MARKS_SURE_MS))
		return 0;
	/* The one that is last had a message at least. */
	return p->confirmed - (last + 1);
}

enum mq_call
mq_publisher_resume(struct mq_publisher *p, bool whole, long long *missing)
{
	enum mq_call result;

	mq_publisher_settle_down(p);
	result = fence_off(p);
	if (result == MQ_CALL_REFUSED && whole) {
		p->loose = true;
		result = MQ_CALL_DONE;
	}
	if (result == MQ_CALL_DONE)
		result = ask_marks(p);
	if (result == MQ_CALL_DONE) {
		*missing = count_missing(p);
		p->whole = mq_marks_last(p->last_marks) >= p->confirmed_last;
	}
	return result;
}

bool
mq_publisher_whole(const struct mq_publisher *p)
{
	return p->whole;
}
