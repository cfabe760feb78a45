/*
 * When the connection is lost, so are the answers for what was under way.  The
 * server has marked what it has done: that is found out on another connection,
 * and only the rest is sent again.
 *
 * What was sent before may still be on its way.  A script finds its mark and
 * does nothing; of a transaction nobody can know, so the old connection has to
 * be gone before the marks are read.  It is known by its name, as the numbers of
 * connections begin anew with the server.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "publish.h"

#define PAUSE_MIN_MS 50
#define PAUSE_MAX_MS 1000
/* A mark that is not there was never made, as long as it could not be over. */
#define MARKS_SURE_MS (MQ_MARKS_KEEP_MS / 2)

enum result {
	DONE,
	LOST,
	BUSY, /* the server cannot do it now */
	REFUSED
};

int64_t
publish_now_ms(void)
{
	return (int64_t)(mq_clock_s(CLOCK_BOOTTIME) * 1000);
}

static int64_t
next_pause(int64_t ms)
{
	if (ms == 0)
		return PAUSE_MIN_MS;
	return 2 * ms < PAUSE_MAX_MS ? 2 * ms : PAUSE_MAX_MS;
}

bool
publish_reconnect(struct publisher *p, int64_t until_ms, int64_t *pause_ms)
{
	struct mq_redis *r = &p->redis;
	struct mq_server *server = r->server;
	struct timespec ts;
	int64_t left, ms;
	double until;

	mq_redis_close(r);
	for (;;) {
		left =
		    until_ms == -1 ? PAUSE_MAX_MS : until_ms - publish_now_ms();
		if (left <= 0)
			return false;
		ms = *pause_ms < left ? *pause_ms : left;
		ts = (struct timespec){ms / 1000, ms % 1000 * 1000000};
		(void)publish_wait(p, -1, &ts);
		*pause_ms = next_pause(*pause_ms);
		until = until_ms == -1 ? INFINITY : (double)until_ms / 1000;
		if (mq_redis_open_until(r, server, until) == 0)
			return true;
		if (r->status != MQ_EXIT_UNAVAILABLE &&
		    r->status != MQ_EXIT_AGAIN)
			publish_lost(p);
	}
}

void
publish_name(struct publisher *p, struct mq_command *c)
{
	mq_command_plain(c, "CLIENT");
	mq_command_str(c, "SETNAME");
	mq_command_fmt(c, "mq-publish:%s", p->id);
}

/* One command and its reply, which the caller frees if it is DONE. */
static enum result
ask(struct publisher *p, struct mq_command *c, redisReply **reply)
{
	struct mq_redis *r = &p->redis;

	*reply = NULL;
	if (mq_redis_send(r, c) == 0)
		*reply = publish_answer(p, PATIENCE_MS);
	mq_command_free(c);
	if (*reply == NULL)
		return LOST;
	if (!mq_redis_refused(r, *reply))
		return DONE;
	freeReplyObject(*reply);
	return r->status == MQ_EXIT_AGAIN ? BUSY : REFUSED;
}

static enum result
tell(struct publisher *p, struct mq_command *c)
{
	redisReply *reply;
	enum result result = ask(p, c, &reply);

	if (result == DONE)
		freeReplyObject(reply);
	return result;
}

/* The number of a client in a line of CLIENT LIST, if it has this name. */
static bool
is_ours(const char *line, const char *name, unsigned long long *id)
{
	const char *found = strstr(line, name);

	return found != NULL && sscanf(line, "id=%llu ", id) == 1;
}

static enum result
kill_client(struct publisher *p, unsigned long long id)
{
	struct mq_command c = {0};

	mq_command_plain(&c, "CLIENT");
	mq_command_str(&c, "KILL");
	mq_command_str(&c, "ID");
	mq_command_fmt(&c, "%llu", id);
	return tell(p, &c);
}

/* Those of ours, and not this one, which has no name yet. */
static enum result
kill_others(struct publisher *p)
{
	char name[sizeof(" name=mq-publish: ") + MQ_ID_LEN];
	struct mq_command c = {0};
	enum result result;
	redisReply *reply;
	unsigned long long id;
	char *rest, *line;

	snprintf(name, sizeof(name), " name=mq-publish:%s ", p->id);
	mq_command_plain(&c, "CLIENT");
	mq_command_str(&c, "LIST");
	result = ask(p, &c, &reply);
	if (result != DONE)
		return result;
	rest = reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
	while (result == DONE && (line = strsep(&rest, "\n")) != NULL)
		if (is_ours(line, name, &id))
			result = kill_client(p, id);
	freeReplyObject(reply);
	return result;
}

/* From now on nothing arrives any more that was sent before. */
static enum result
fence(struct publisher *p)
{
	struct mq_command c = {0};
	enum result result = kill_others(p);

	if (result != DONE)
		return result;
	publish_name(p, &c);
	return tell(p, &c);
}

static struct batch *
under_way(struct publisher *p, unsigned i)
{
	return &p->ring[(p->first + i) % UNDER_WAY];
}

/* Whether the marks say all that there is to know about what is under way. */
static bool
can_resume(struct publisher *p)
{
	unsigned i;

	for (i = 0; i < p->used; i++)
		if (under_way(p, i)->mark.publisher == NULL)
			return false;
	return p->marks && !p->ending;
}

/* The same, if those sent before may arrive at any time. */
static bool
can_resume_unfenced(struct publisher *p)
{
	unsigned i;

	for (i = 0; i < p->used; i++)
		if (!under_way(p, i)->whole)
			return false;
	p->loose = true;
	return true;
}

/*
 * The marks.  They are written to before: who must not do that has left none,
 * whatever was done.  And whoever waits on this connection until all is safe
 * then waits for what was done on the others, too.
 */
static enum result
ask_marks(struct publisher *p, redisReply **marks)
{
	struct mq_command c = {0};
	enum result result;

	p->layout->marks(&c, "HSET", p->opt->queue, p->id);
	mq_command_str(&c, "resumed");
	mq_command_int(&c, p->sent);
	result = tell(p, &c);
	if (result == DONE || result == BUSY) {
		p->layout->marks(&c, "PEXPIRE", p->opt->queue, p->id);
		mq_command_int(&c, MQ_MARKS_KEEP_MS);
		result = tell(p, &c);
	}
	/* In a full memory they can be read, and that they could be written to
	 * has been seen before. */
	if (result == LOST || result == REFUSED)
		return result;
	p->layout->marks(&c, "HGETALL", p->opt->queue, p->id);
	return ask(p, &c, marks);
}

/* What was confirmed is gone: it is another server, or has lost its data. */
static void
check_loss(struct publisher *p, const redisReply *marks)
{
	long long last = mq_marks_last(marks), lost;

	if (last >= p->confirmed_last ||
	    (last == -1 && publish_now_ms() - p->confirmed_ms > MARKS_SURE_MS))
		return;
	/* The one that is last had a message at least. */
	lost = p->confirmed - (last + 1);
	mq_say("%s: the server has come back without what it had accepted: "
	       "up to %lld message%s lost",
	    p->opt->queue, lost, lost == 1 ? " is" : "s are");
	p->accepted -= (unsigned long long)lost < p->accepted ?
	    (unsigned long)lost :
	    p->accepted;
	publish_report(p, 0);
	exit(MQ_EXIT_AGAIN);
}

/* A mark that is missing may have been there, too long ago. */
static void
check_age(struct publisher *p, const redisReply *marks)
{
	int64_t now = publish_now_ms();
	unsigned i;
	size_t n;

	for (i = 0; i < p->used; i++)
		if (now - under_way(p, i)->sent_ms > MARKS_SURE_MS &&
		    mq_mark_find(marks, &under_way(p, i)->mark, &n) == NULL)
			publish_lost(p);
}

/* Whether the server has done it; if so, with its verdicts. */
static bool
was_done(struct publisher *p, struct batch *b, const redisReply *marks)
{
	redisReply reply = {.type = REDIS_REPLY_INTEGER};
	size_t n;
	const char *letters = mq_mark_find(marks, &b->mark, &n);

	if (letters == NULL)
		return false;
	if (n > 0) {
		reply.type = REDIS_REPLY_STRING;
		reply.str = (char *)(uintptr_t)letters;
		reply.len = n;
	}
	if (!publish_verdicts(p, b, &reply))
		publish_lost(p);
	publish_done(p, b);
	return true;
}

static int
by_number(const void *a, const void *b)
{
	const struct batch *one = a, *other = b;

	return one->mark.before < other->mark.before ? -1 : 1;
}

/* Those that are not done are the ones under way, in their order. */
static void
settle(struct publisher *p, const redisReply *marks)
{
	struct batch all[UNDER_WAY] = {0};
	unsigned i, n = p->used, left = 0, done = 0;

	for (i = 0; i < n; i++)
		all[i] = *under_way(p, i);
	/* One whose script was not known has gone to the end. */
	qsort(all, n, sizeof(*all), by_number);
	for (i = 0; i < n; i++)
		if (was_done(p, &all[i], marks))
			*under_way(p, n - ++done) = all[i];
		else
			*under_way(p, left++) = all[i];
	p->used = left;
}

/* The server has nothing of the rest.  Ends if its disk has no room for that. */
static void
check_room(struct publisher *p)
{
	struct mq_redis *r = &p->redis;

	r->status =
	    mq_server_room(r->server, p->bytes, r->error, sizeof(r->error));
	if (r->status == 0)
		return;
	mq_say("%s", r->error);
	publish_report(p, 0);
	exit(r->status);
}

/* Another server may not know the script: it goes with the first. */
static enum result
send_rest(struct publisher *p)
{
	unsigned i;
	bool eval = true;

	check_room(p);
	for (i = 0; i < p->used; i++) {
		struct batch *b = under_way(p, i);

		if (publish_transmit(p, b, eval) == -1)
			return LOST;
		eval &= !b->whole;
	}
	return DONE;
}

static enum result
resume(struct publisher *p)
{
	redisReply *marks;
	enum result result = fence(p);

	if (result == REFUSED && can_resume_unfenced(p))
		result = DONE;
	if (result == DONE)
		result = ask_marks(p, &marks);
	if (result != DONE)
		return result;
	check_loss(p, marks);
	check_age(p, marks);
	settle(p, marks);
	freeReplyObject(marks);
	/* Nothing of this connection came after them. */
	p->durable.ours = false;
	return send_rest(p);
}

void
publish_resume(struct publisher *p)
{
	enum result result = LOST;

	if (!can_resume(p) || (!p->named && !can_resume_unfenced(p)))
		publish_lost(p);
	if (!p->opt->quiet)
		mq_say("%s; reconnecting", p->redis.error);
	while (result == LOST || result == BUSY) {
		/* Again, when something was found to be done. */
		if (p->lost_ms == 0)
			p->lost_ms = publish_now_ms();
		if (!publish_reconnect(
			p, p->lost_ms + PATIENCE_MS, &p->pause_ms))
			publish_lost(p);
		result = resume(p);
	}
	if (result == REFUSED) {
		p->redis.status = MQ_EXIT_UNAVAILABLE;
		publish_lost(p);
	}
}

void
publish_forget(struct publisher *p)
{
	struct mq_command c = {0};

	if (!p->marked || p->loose || mq_redis_lost(&p->redis))
		return;
	p->layout->marks(&c, "UNLINK", p->opt->queue, p->id);
	(void)mq_redis_send(&p->redis, &c);
	mq_command_free(&c);
}
