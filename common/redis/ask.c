/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "parts.h"

/* Most commands without a reply at a time, and commands sent together: few, so that the
 * server begins before all are built. */
#define WINDOW	 2048
#define TOGETHER 128

int
mq_nonsense(struct mq_redis *r)
{
	return mq_redis_fail(r, MQ_EXIT_UNAVAILABLE, "unexpected reply");
}

static bool
is_of_type(const redisReply *reply, int type)
{
	return type == -1 ||
	    (type == MQ_STRINGS ? mq_reply_is(reply, "") : reply->type == type);
}

redisReply *
mq_call(struct mq_redis *r, struct mq_command *c, int type)
{
	redisReply *reply = mq_redis_answer(r, c);

	mq_command_free(c);
	if (reply != NULL && !mq_redis_refused(r, reply)) {
		if (is_of_type(reply, type))
			return reply;
		(void)mq_nonsense(r);
	}
	freeReplyObject(reply);
	return NULL;
}

redisReply *
mq_call_form(struct mq_redis *r, struct mq_command *c, const char *form)
{
	redisReply *reply = mq_call(r, c, -1);

	if (reply == NULL || mq_reply_is(reply, form))
		return reply;
	freeReplyObject(reply);
	(void)mq_nonsense(r);
	return NULL;
}

int
mq_call_number(struct mq_redis *r, struct mq_command *c, long long *n)
{
	redisReply *reply = mq_call(r, c, REDIS_REPLY_INTEGER);

	if (reply == NULL)
		return -1;
	*n = reply->integer;
	freeReplyObject(reply);
	return 0;
}

int
mq_call_done(struct mq_redis *r, struct mq_command *c)
{
	redisReply *reply = mq_redis_answer(r, c);
	bool missed = reply != NULL && c->optional && mq_reply_missing(reply);
	int rv =
	    reply == NULL || (!missed && mq_redis_refused(r, reply)) ? -1 : 0;

	mq_command_free(c);
	freeReplyObject(reply);
	return rv;
}

struct questions {
	mq_ask_fn *ask;
	mq_take_fn *take;
	void *arg;
	size_t n;
	bool errors;		/* take() gets error replies, too */
	struct mq_names *wrong; /* keys of another type; NULL: no such errors */
};

/* Adds the only key of a plain command, its second word, to the keys of another type. */
static bool
is_wrong_type(
    struct mq_redis *r, const struct questions *q, size_t i, redisReply *reply)
{
	struct mq_command c = mq_redis_command(r);
	const char *at;
	char *key, *end;
	size_t n;

	if (q->wrong == NULL || reply->type != REDIS_REPLY_ERROR ||
	    mq_error_status(reply->str) != MQ_EXIT_WRONGTYPE)
		return false;
	q->ask(q->arg, i, &c);
	if (c.script == NULL) {
		at = strchr(mq_command_wire(&c, &n), '$');
		n = strtoul(strchr(at + 1, '$') + 1, &end, 10);
		key = mq_xstrndup(end + 2, n);
		mq_names_add(q->wrong, key, NULL);
		free(key);
	}
	mq_command_free(&c);
	return true;
}

/* Gives a reply to take(), and frees it unless that keeps it. */
static int
receive_reply(
    struct mq_redis *r, const struct questions *q, size_t i, redisReply *reply)
{
	int rv = -1;

	if (reply == NULL)
		return -1;
	if (!q->errors && mq_reply_missing(reply)) {
		rv = 0;
	} else if (q->errors || is_wrong_type(r, q, i, reply) ||
	    !mq_redis_refused(r, reply)) {
		rv = q->take == NULL ? 0 : q->take(q->arg, i, reply);
		if (rv == -1)
			(void)mq_nonsense(r);
	}
	if (rv != MQ_KEEP)
		freeReplyObject(reply);
	return rv == -1 ? -1 : 0;
}

static int
ask_questions(struct mq_redis *r, const struct questions *q)
{
	struct mq_command c = mq_redis_command(r);
	size_t sent = 0, taken = 0, stop;
	int rv = 0;

	while (rv == 0 && taken < q->n) {
		for (; rv == 0 && sent < q->n && sent - taken < WINDOW;
		     sent++) {
			q->ask(q->arg, sent, &c);
			c.repeats = true;
			rv = mq_redis_append(r, &c);
			if (rv == 0 && sent % TOGETHER == TOGETHER - 1)
				rv = mq_redis_flush(r);
		}
		if (rv == 0)
			rv = mq_redis_flush(r);
		stop = sent == q->n ? q->n : taken + TOGETHER;
		for (; rv == 0 && taken < stop; taken++)
			rv = receive_reply(r, q, taken, mq_redis_reply(r));
	}
	mq_command_free(&c);
	return rv;
}

int
mq_ask_all(
    struct mq_redis *r, size_t n, mq_ask_fn *ask, mq_take_fn *take, void *arg)
{
	return mq_ask_typed(r, n, ask, take, arg, NULL);
}

int
mq_ask_each(
    struct mq_redis *r, size_t n, mq_ask_fn *ask, mq_take_fn *take, void *arg)
{
	return ask_questions(
	    r, &(struct questions){ask, take, arg, n, true, NULL});
}

int
mq_ask_typed(struct mq_redis *r, size_t n, mq_ask_fn *ask, mq_take_fn *take,
    void *arg, struct mq_names *wrong)
{
	return ask_questions(
	    r, &(struct questions){ask, take, arg, n, false, wrong});
}

int
mq_reply_time_us(const redisReply *time, int64_t *us)
{
	long long s, rest;

	if (!mq_reply_is(time, "") || time->elements != 2)
		return -1;
	s = strtoll(time->element[0]->str, NULL, 10);
	rest = strtoll(time->element[1]->str, NULL, 10);
	if (s < 0 || s > MQ_TIME_MAX / 1000 || rest < 0 || rest > 999999)
		return -1;
	*us = s * 1000000 + rest;
	return 0;
}

int
mq_reply_time(const redisReply *time, int64_t *ms)
{
	int rv = mq_reply_time_us(time, ms);

	if (rv == 0)
		*ms /= 1000;
	return rv;
}

void
mq_keys_ask(struct mq_command *c, const char *cursor, const char *pattern)
{
	mq_command_plain(c, "SCAN");
	mq_command_str(c, cursor);
	mq_command_str(c, "MATCH");
	mq_command_str(c, pattern);
	mq_command_str(c, "COUNT");
	mq_command_int(c, MQ_CURSOR_STEP);
}

redisReply *
mq_cursor_take(char cursor[MQ_CURSOR_SIZE], const redisReply *reply)
{
	*cursor = '\0';
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    reply->element[0]->type != REDIS_REPLY_STRING ||
	    !mq_reply_is(reply->element[1], ""))
		return NULL;
	if (strcmp(reply->element[0]->str, "0") != 0)
		strlcpy(cursor, reply->element[0]->str, MQ_CURSOR_SIZE);
	return reply->element[1];
}

/* --- round ----------------------------------------------------------------- */

bool
mq_round_good(struct mq_round *round, const redisReply *reply, int type)
{
	struct mq_redis *r = round->r;

	if (is_of_type(reply, type))
		return true;
	if (!mq_redis_refused(r, reply))
		(void)mq_nonsense(r);
	/* Servers word a forbidden key in several ways, all with " key"; an error about a
	 * command says "the 'NAME' command". */
	if (reply->type == REDIS_REPLY_ERROR &&
	    mq_error_status(reply->str) == MQ_EXIT_NOPERM &&
	    strstr(reply->str, " key") != NULL) {
		round->refused++;
	} else if (round->status == 0) {
		round->status = r->status;
		strlcpy(round->error, r->error, sizeof(round->error));
	}
	return false;
}

bool
mq_round_nonsense(struct mq_round *round)
{
	static const redisReply nonsense = {.type = REDIS_REPLY_NIL};

	return mq_round_good(round, &nonsense, REDIS_REPLY_ARRAY);
}

int
mq_round_call(
    struct mq_round *round, struct mq_command *c, int type, redisReply **out)
{
	redisReply *reply = mq_redis_answer(round->r, c);

	mq_command_free(c);
	*out = NULL;
	if (reply == NULL)
		return -1;
	if (mq_round_good(round, reply, type))
		*out = reply;
	else
		freeReplyObject(reply);
	return 0;
}

int
mq_round_add(struct mq_round *round, struct mq_command *c, long *sum)
{
	redisReply *reply;
	int rv = mq_round_call(round, c, REDIS_REPLY_INTEGER, &reply);

	if (reply != NULL)
		*sum += (long)reply->integer;
	freeReplyObject(reply);
	return rv;
}

int
mq_round_end(struct mq_round *round)
{
	if (round->status == 0)
		return 0;
	round->r->status = round->status;
	snprintf(round->r->error, sizeof(round->r->error), "%s", round->error);
	return -1;
}

/* --- members --------------------------------------------------------------- */

/* With a cursor, one step of SSCAN; NULL: SMEMBERS. */
static void
ask_members(struct mq_command *c, const char *key, const char *cursor)
{
	mq_command_plain(c, cursor != NULL ? "SSCAN" : "SMEMBERS");
	mq_command_key(c, &(struct mq_part){key, strlen(key)}, 1);
	if (cursor == NULL)
		return;
	mq_command_str(c, cursor);
	mq_command_str(c, "COUNT");
	mq_command_int(c, MQ_CURSOR_STEP);
}

static int
by_bytes(const void *a, const void *b)
{
	const redisReply *x = *(redisReply *const *)a;
	const redisReply *y = *(redisReply *const *)b;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->str, y->str, x->len);
}

int
mq_round_some_members(struct mq_round *round, const char *key,
    char cursor[MQ_CURSOR_SIZE], redisReply **some)
{
	const struct mq_round before = *round;
	struct mq_command c = mq_redis_command(round->r);
	redisReply *step;
	int rv;

	*some = NULL;
	ask_members(&c, key, cursor);
	rv = mq_round_call(round, &c, REDIS_REPLY_ARRAY, &step);
	if (step != NULL) {
		*some = mq_cursor_take(cursor, step);
		if (*some != NULL)
			step->element[1] = NULL;
		else
			(void)mq_round_nonsense(round);
		freeReplyObject(step);
		return rv;
	}
	/* The server lacks SSCAN, or the user the right to it. */
	if (rv == 0 && round->refused == before.refused &&
	    mq_error_barred(round->r->status, round->r->error) &&
	    strcmp(cursor, "0") == 0) {
		*round = before;
		ask_members(&c, key, NULL);
		rv = mq_round_call(round, &c, MQ_STRINGS, some);
	}
	*cursor = '\0';
	return rv;
}

int
mq_round_members(struct mq_round *round, const char *key, redisReply **out)
{
	char cursor[MQ_CURSOR_SIZE] = "0";
	redisReply *all = NULL, *some, **e;
	size_t i, n = 0;
	int rv = 0;

	*out = NULL;
	while (rv == 0 && *cursor != '\0') {
		rv = mq_round_some_members(round, key, cursor, &some);
		if (some == NULL) {
			freeReplyObject(all);
			return rv;
		}
		if (all == NULL) {
			all = some;
			continue;
		}
		n = all->elements;
		all->elements += some->elements;
		all->element = mq_xreallocarray(
		    all->element, all->elements + 1, sizeof(*e));
		for (i = 0; i < some->elements; i++)
			all->element[n + i] = some->element[i];
		some->elements = 0;
		freeReplyObject(some);
	}
	/* SSCAN may return a member twice. */
	e = all->element;
	if (all->elements > 1)
		qsort(e, all->elements, sizeof(*e), by_bytes);
	for (i = n = 0; i < all->elements; i++)
		if (n > 0 && by_bytes(&e[n - 1], &e[i]) == 0)
			freeReplyObject(e[i]);
		else
			e[n++] = e[i];
	all->elements = n;
	*out = all;
	return rv;
}

redisReply *
mq_call_members(struct mq_redis *r, const char *key)
{
	struct mq_round round = {.r = r};
	redisReply *all;

	return mq_round_members(&round, key, &all) == -1 ||
		mq_round_end(&round) == -1 ?
	    NULL :
	    all;
}

/* --- sweep ----------------------------------------------------------------- */

struct walk {
	int node;
	char cursor[MQ_CURSOR_SIZE]; /* empty: at its end */
	redisReply *reply;
};

struct walks {
	struct mq_sweep *sweep;
	bool sizes;	   /* ask only for numbers of keys */
	struct walk *list; /* walks that are not at their end */
	size_t n;
};

static void
ask_step(void *arg, size_t i, struct mq_command *c)
{
	const struct walks *all = arg;
	const struct mq_sweep *s = all->sweep;

	(void)mq_redis_visit(s->round->r, all->list[i].node);
	if (all->sizes) {
		mq_command_plain(c, "DBSIZE");
		return;
	}
	mq_keys_ask(c, all->list[i].cursor, s->pattern);
	if (s->type != NULL) {
		mq_command_str(c, "TYPE");
		mq_command_str(c, s->type);
	}
}

static int
keep_step(void *arg, size_t i, redisReply *reply)
{
	struct walks *all = arg;

	all->list[i].reply = reply;
	return MQ_KEEP;
}

/* Takes a step of all walks.  All replies are kept first, as sweep->take() may send commands
 * of its own. */
static int
step_walks(struct walks *all)
{
	struct mq_sweep *s = all->sweep;
	int type = all->sizes ? REDIS_REPLY_INTEGER : REDIS_REPLY_ARRAY;
	const redisReply *reply, *keys;
	struct walk *walk;
	size_t i, n = 0;
	int rv = mq_ask_each(s->round->r, all->n, ask_step, keep_step, all);
	bool good;

	for (i = 0; i < all->n; i++) {
		walk = &all->list[i];
		reply = rv == 0 ? walk->reply : NULL;
		good = reply != NULL && mq_round_good(s->round, reply, type);
		s->incomplete |= reply != NULL &&
		    (!good || (all->sizes && reply->integer > s->most));
		if (!good || !all->sizes || reply->integer > s->most)
			walk->cursor[0] = '\0';
		keys = good && !all->sizes ?
		    mq_cursor_take(walk->cursor, reply) :
		    NULL;
		if (keys != NULL)
			rv = s->take(s->arg, keys);
		freeReplyObject(walk->reply);
		walk->reply = NULL;
		if (walk->cursor[0] != '\0')
			all->list[n++] = *walk;
	}
	all->n = n;
	return rv;
}

int
mq_sweep_keys(struct mq_sweep *s)
{
	struct mq_redis *r = s->round->r;
	struct walks all = {.sweep = s, .sizes = s->most > 0};
	int node, step, rv = 0;

	for (node = 0; mq_redis_visit(r, node); node++) {
		all.list =
		    mq_xreallocarray(all.list, all.n + 1, sizeof(*all.list));
		all.list[all.n] = (struct walk){.node = node};
		snprintf(
		    all.list[all.n++].cursor, MQ_CURSOR_SIZE, "%llu", s->at);
	}
	if (all.sizes)
		rv = step_walks(&all);
	all.sizes = false;
	for (step = 0;
	     rv == 0 && all.n > 0 && (s->steps == 0 || step < s->steps); step++)
		rv = step_walks(&all);
	s->at = all.n > 0 ? strtoull(all.list->cursor, NULL, 10) : 0;
	(void)mq_redis_visit(r, node);
	free(all.list);
	return rv;
}
