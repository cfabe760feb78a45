/*
 * The rmq layout: walks through all places of a queue; see lua/survey.lua.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "keys.h"
#include "survey.h"
#include "scripts.h"

/* How often connections are looked at meanwhile, in seconds. */
#define WATCH_S 15.0

/* Where a walk is. */
struct walk {
	const char *place, *connection; /* connection: of unacked */
	struct mq_buf at, sign;
	bool more;
};

static void
build_step(struct rmq_survey *p, const struct walk *at, struct mq_command *c)
{
	char tombstone[MQ_ID_LEN + 1];

	mq_id_make(&p->ids, (uint64_t)mq_clock_unix_us(), tombstone);
	mq_command_script(
	    c, &rmq_script_survey, RMQ_HOME + (at->connection != NULL ? 2 : 1));
	rmq_key_home(c, p->queue);
	rmq_key_queue(c, p->queue, "rejected");
	if (at->connection != NULL)
		rmq_key_both(c, at->connection, p->queue, "unacked");
	mq_command_str(c, at->place);
	mq_command_arg(c, at->at.data, at->at.len);
	mq_command_arg(c, at->sign.data, at->sign.len);
	mq_command_str(c, p->w->how->dry_run ? "1" : "0");
	mq_command_str(c, tombstone);
}

/* The lowest number that a reply has. */
static void
lower(long long *least, const redisReply *text)
{
	long long n;

	if (text->len == 0)
		return;
	n = strtoll(text->str, NULL, 10);
	if (*least == -1 || n < *least)
		*least = n;
}

enum { MORE, LATE, MISSING, EXPIRES, LAST_TICK, AT, SIGN, IDS };

static bool
is_sound(const redisReply *reply)
{
	size_t i;

	for (i = 0; i < reply->elements; i++)
		if (reply->element[i]->type !=
		    (i < EXPIRES ? REDIS_REPLY_INTEGER : REDIS_REPLY_STRING))
			return false;
	return i >= IDS;
}

static void
take_step(struct rmq_survey *p, struct walk *at, const redisReply *reply)
{
	redisReply **e = reply->element;
	size_t i;

	at->more = is_sound(reply) && e[MORE]->integer != 0;
	if (!is_sound(reply))
		return;
	p->late += (long)e[LATE]->integer;
	p->missing += (long)e[MISSING]->integer;
	lower(&p->expires, e[EXPIRES]);
	lower(&p->last_tick, e[LAST_TICK]);
	mq_buf_clear(&at->at);
	mq_buf_add(&at->at, e[AT]->str, e[AT]->len);
	mq_buf_clear(&at->sign);
	mq_buf_add(&at->sign, e[SIGN]->str, e[SIGN]->len);
	for (i = IDS; i < reply->elements; i++)
		if (e[i]->len == MQ_ID_LEN)
			rmq_locks_seen(&p->locks, e[i]->str);
}

static int
ask_connections(struct rmq_survey *p, redisReply **all)
{
	struct mq_command *c = mq_pipe_next(&p->w->pipe);

	mq_command_plain(c, "SMEMBERS");
	mq_command_str(c, RMQ_CONNECTIONS);
	return rmq_round_ask_strings(p->w, all);
}

/* Adds those of these connections that live. */
static int
add_live(struct rmq_survey *p, redisReply *const names[], size_t n)
{
	struct mq_pipe *pipe = &p->w->pipe;
	struct mq_command *c;
	size_t i;
	int rv;

	for (i = 0; i < n; i++) {
		c = mq_pipe_next(pipe);
		mq_command_plain(c, "PTTL");
		rmq_key_connection(c, names[i]->str, "heartbeat");
	}
	rv = mq_pipe_run(p->w->r, pipe);
	for (i = 0; i < n && rv == 0; i++)
		if (rmq_round_good(
			p->w, pipe->replies[i], REDIS_REPLY_INTEGER) &&
		    pipe->replies[i]->integer > 0)
			mq_names_add(&p->live, names[i]->str, NULL);
	mq_pipe_clear(pipe);
	return rv;
}

/* Between two steps: none may come and go unseen, however long they take. */
static int
watch(struct rmq_survey *p, bool *whole)
{
	double now = mq_clock_s(CLOCK_MONOTONIC), unseen = now - p->seen_s;
	redisReply *all;
	size_t i, n;
	int rv;

	if (p->seen_s == 0 || unseen < WATCH_S)
		return 0;
	rv = ask_connections(p, &all);
	if (all == NULL || unseen > RMQ_UNSEEN_S)
		*whole = false;
	for (i = 0; all != NULL && i < all->elements && rv == 0; i += n) {
		n = all->elements - i;
		if (n > MQ_PIPE_MAX)
			n = MQ_PIPE_MAX;
		rv = add_live(p, all->element + i, n);
	}
	if (all != NULL)
		freeReplyObject(all);
	mq_names_sort(&p->live);
	p->seen_s = now;
	return rv;
}

int
rmq_survey_place(struct rmq_survey *p, const char *place,
    const char *connection, bool *whole)
{
	struct walk at = {
	    .place = place, .connection = connection, .more = true};
	redisReply *reply;
	int rv = 0;

	mq_buf_addstr(&at.at, "0");
	while (rv == 0 && at.more) {
		build_step(p, &at, mq_pipe_next(&p->w->pipe));
		rv = rmq_round_ask(p->w, REDIS_REPLY_ARRAY, &reply);
		at.more = false;
		if (reply == NULL) {
			*whole = false;
			break;
		}
		if (!is_sound(reply))
			*whole = false;
		take_step(p, &at, reply);
		freeReplyObject(reply);
		rv = watch(p, whole);
	}
	mq_buf_free(&at.at);
	mq_buf_free(&at.sign);
	return rv;
}

/*
 * What the connections of these names hold, and their heartbeats: those that
 * live are added to live if it is not NULL.  No name may be left out.
 */
static int
look_at(struct rmq_survey *p, redisReply *const names[], size_t n,
    struct mq_names *live, bool *whole)
{
	struct mq_pipe *pipe = &p->w->pipe;
	struct mq_names holding = {0};
	struct mq_command *c;
	size_t i;
	int rv;

	for (i = 0; i < n; i++) {
		c = mq_pipe_next(pipe);
		mq_command_plain(c, "LLEN");
		rmq_key_both(c, names[i]->str, p->queue, "unacked");
		c = mq_pipe_next(pipe);
		mq_command_plain(c, "PTTL");
		rmq_key_connection(c, names[i]->str, "heartbeat");
	}
	rv = mq_pipe_run(p->w->r, pipe);
	for (i = 0; i < n && rv == 0; i++) {
		if (!rmq_round_good(
			p->w, pipe->replies[2 * i], REDIS_REPLY_INTEGER) ||
		    !rmq_round_good(
			p->w, pipe->replies[2 * i + 1], REDIS_REPLY_INTEGER))
			*whole = false;
		else if (pipe->replies[2 * i]->integer > 0)
			mq_names_add(&holding, names[i]->str, NULL);
		if (*whole && live != NULL &&
		    pipe->replies[2 * i + 1]->integer > 0)
			mq_names_add(live, names[i]->str, NULL);
	}
	mq_pipe_clear(pipe);
	for (i = 0; i < holding.n && rv == 0; i++)
		rv =
		    rmq_survey_place(p, "unacked", holding.list[i].name, whole);
	mq_names_free(&holding);
	return rv;
}

int
rmq_survey_unacked(struct rmq_survey *p, struct mq_names *live, bool *whole)
{
	redisReply *all;
	size_t i, n;
	int rv = ask_connections(p, &all);

	if (all == NULL) {
		*whole = false;
		return rv;
	}
	for (i = 0; i < all->elements; i++)
		/* No key can be made of such a name here. */
		if (strlen(all->element[i]->str) != all->element[i]->len)
			*whole = false;
	for (i = 0; i < all->elements && rv == 0 && *whole; i += n) {
		n = all->elements - i;
		if (n > MQ_PIPE_MAX / 2)
			n = MQ_PIPE_MAX / 2;
		rv = look_at(p, all->element + i, n, live, whole);
	}
	freeReplyObject(all);
	return rv;
}
