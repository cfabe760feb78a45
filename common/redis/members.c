#include "round.h"

#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/xalloc.h"

static void
add_key(struct mq_command *c, const char *key)
{
	mq_command_key(c, &(struct mq_part){key, strlen(key)}, 1);
}

static void
ask_members(struct mq_command *c, const char *key, const char *cursor)
{
	mq_command_plain(c, "SSCAN");
	add_key(c, key);
	mq_command_str(c, cursor);
	mq_command_str(c, "COUNT");
	mq_command_int(c, MQ_CURSOR_STEP);
}

static void
ask_at_once(struct mq_command *c, const char *key)
{
	mq_command_plain(c, "SMEMBERS");
	add_key(c, key);
}

/* The members in the reply to a step, which is freed; NULL: it makes no sense. */
static redisReply *
take_step(redisReply *step, char cursor[MQ_CURSOR_SIZE])
{
	redisReply *some = mq_cursor_take(cursor, step);

	if (some != NULL)
		step->element[1] = NULL;
	freeReplyObject(step);
	return some;
}

/* Moves members to those of the steps before. */
static void
add_members(redisReply **all, redisReply *some)
{
	redisReply *to = *all;

	if (to == NULL) {
		*all = some;
		return;
	}
	to->element = mq_xreallocarray(to->element,
	    to->elements + some->elements + 1, sizeof(*to->element));
	if (some->elements > 0)
		memcpy(to->element + to->elements, some->element,
		    some->elements * sizeof(*to->element));
	to->elements += some->elements;
	some->elements = 0;
	freeReplyObject(some);
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

/* A walk may come by a member twice. */
static void
drop_doubles(redisReply *all)
{
	redisReply **e = all->element;
	size_t i, n = 0;

	if (all->elements <= 1)
		return;
	qsort(e, all->elements, sizeof(*e), by_bytes);
	for (i = 0; i < all->elements; i++)
		if (n > 0 && by_bytes(&e[n - 1], &e[i]) == 0)
			freeReplyObject(e[i]);
		else
			e[n++] = e[i];
	all->elements = n;
}

/* The right to SSCAN is missing. */
static bool
may_not_scan(const struct mq_redis *r, const char *cursor)
{
	return r->status == MQ_EXIT_NOPERM && strcmp(cursor, "0") == 0;
}

static redisReply *
call_step(struct mq_redis *r, const char *key, char cursor[MQ_CURSOR_SIZE])
{
	struct mq_command c = mq_redis_command(r);
	redisReply *step, *some;

	ask_members(&c, key, cursor);
	step = mq_call(r, &c, -1);
	if (step == NULL && may_not_scan(r, cursor)) {
		*cursor = '\0';
		ask_at_once(&c, key);
		return mq_call_strings(r, &c);
	}
	some = step == NULL ? NULL : take_step(step, cursor);
	if (step != NULL && some == NULL)
		(void)mq_nonsense(r);
	return some;
}

redisReply *
mq_call_members(struct mq_redis *r, const char *key)
{
	char cursor[MQ_CURSOR_SIZE] = "0";
	redisReply *all = NULL, *some;

	while (*cursor != '\0') {
		some = call_step(r, key, cursor);
		if (some == NULL) {
			freeReplyObject(all);
			return NULL;
		}
		add_members(&all, some);
	}
	drop_doubles(all);
	return all;
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
		*some = take_step(step, cursor);
		if (*some == NULL)
			(void)mq_round_nonsense(round);
		return rv;
	}
	if (rv == 0 && round->refused == before.refused &&
	    may_not_scan(round->r, cursor)) {
		*round = before;
		ask_at_once(&c, key);
		rv = mq_round_call_strings(round, &c, some);
	}
	*cursor = '\0';
	return rv;
}

int
mq_round_members(struct mq_round *round, const char *key, redisReply **out)
{
	char cursor[MQ_CURSOR_SIZE] = "0";
	redisReply *some;
	int rv = 0;

	*out = NULL;
	while (rv == 0 && *cursor != '\0') {
		rv = mq_round_some_members(round, key, cursor, &some);
		if (some == NULL) {
			freeReplyObject(*out);
			*out = NULL;
			return rv;
		}
		add_members(out, some);
	}
	drop_doubles(*out);
	return rv;
}
