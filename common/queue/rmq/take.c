/*
 * The rmq layout: taking chosen messages away from where a walk has found them.
 */
#include "rmq.h"

#include <string.h>

#include "base/clock.h"
#include "queue/layout.h"

/*
 * To mark one message takes the longer the deeper it is in a list, and to
 * remove all that are marked takes as long as the way there, however many they
 * are.  Taking begins with so many at once, and goes on with less when marking
 * them kept the server for longer than so many microseconds.
 */
#define TAKE_FIRST 250
#define TAKE_US	   2500
#define TAKE_MAX   1000

/*
 * The way to what is marked is over the messages that stay behind the walk, 25
 * ns for each of them in the server.  When they are more than this, they are
 * brought to the other end of the list.  What is published meanwhile gets
 * ahead of some of them, so in ready that is for very long lists only.
 */
#define BEHIND_MAX	 10000
#define BEHIND_MAX_READY 100000
/* How much at once. */
#define TURN_BYTES (1 << 20)

/* Brings the walk to where the server found it after a take. */
static int
taken_list(struct mq_redis *r, struct mq_scan *s, const redisReply *reply,
    long *n, long long *us)
{
	struct mq_walk *w = s->walk;
	redisReply **e = reply->element;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4 ||
	    e[0]->type != REDIS_REPLY_INTEGER ||
	    e[1]->type != REDIS_REPLY_INTEGER ||
	    e[3]->type != REDIS_REPLY_INTEGER)
		return mq_nonsense(r);
	*n = (long)e[0]->integer;
	w->from = e[1]->integer;
	w->span -= e[0]->integer;
	if (e[2]->type == REDIS_REPLY_STRING)
		mq_buf_set(&s->walk->anchor, e[2]->str, e[2]->len);
	*us = e[3]->integer;
	return 0;
}

static int
taken_later(struct mq_redis *r, struct mq_scan *s, const redisReply *reply,
    long *n, long long *us)
{
	struct mq_walk *w = s->walk;

	if (!rmq_walk_reply(reply, 3, true))
		return mq_nonsense(r);
	*n = (long)reply->element[0]->integer;
	w->from = reply->element[1]->integer;
	w->span -= *n;
	*us = reply->element[2]->integer;
	mq_buf_set(
	    &s->walk->anchor, reply->element[3]->str, reply->element[3]->len);
	w->anchor_score = rmq_to_score(reply->element[4]);
	return 0;
}

/* The arguments of one call that takes up to max of the chosen ones from item
 * *at on; their number. */
static long
add_chosen(struct mq_command *c, const struct mq_scan *s, const bool *chosen,
    long max, int *at)
{
	const struct mq_item *item;
	long n = 0;

	for (; *at < s->count && n < max; (*at)++)
		if (chosen[*at]) {
			item = &s->items[*at];
			mq_command_arg(c, item->element - item->prefix,
			    item->len + item->prefix);
			n++;
		}
	return n;
}

static int
take_some(
    struct mq_redis *r, struct mq_scan *s, struct mq_command *c, long *taken)
{
	struct mq_walk *w = s->walk;
	redisReply *reply = mq_redis_call(r, c);
	long long us = 0;
	long n = 0;
	int rv;

	if (reply == NULL)
		return -1;
	if (rmq_walk_in_set(s))
		rv = taken_later(r, s, reply, &n, &us);
	else
		rv = taken_list(r, s, reply, &n, &us);
	freeReplyObject(reply);
	*taken += n;
	if (us > TAKE_US && w->batch > 1)
		w->batch /= 2;
	else if (us < TAKE_US / 3 && w->batch < TAKE_MAX)
		w->batch *= 2;
	return rv;
}

/*
 * One step of bringing messages from the right end to the left; takes the
 * reply, whose first two are numbers.  NULL with the error set.
 */
static redisReply *
bring(struct mq_redis *r, struct mq_command *c, size_t elements)
{
	redisReply *reply = mq_redis_call(r, c);

	if (reply == NULL)
		return NULL;
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == elements &&
	    reply->element[0]->type == REDIS_REPLY_INTEGER &&
	    reply->element[1]->type == REDIS_REPLY_INTEGER &&
	    reply->element[elements - 1]->type ==
		(elements == 3 ? REDIS_REPLY_STRING : REDIS_REPLY_INTEGER))
		return reply;
	freeReplyObject(reply);
	(void)mq_nonsense(r);
	return NULL;
}

static void
start_turn(struct mq_command *c, const struct mq_scan *s, const char *verb)
{
	mq_command_script(c, &rmq_script_rotate, 1);
	rmq_key_place(c, &s->place, NULL);
	mq_command_str(c, verb);
	mq_command_int(c, TURN_BYTES);
}

/* Brings up to a call's worth of what is behind the walk to the other end. */
static int
turn_some(struct mq_redis *r, struct mq_scan *s, struct mq_command *c,
    long long *moved)
{
	struct mq_walk *w = s->walk;
	redisReply *reply;

	start_turn(c, s, "turn");
	mq_command_int(c, w->from);
	mq_command_arg(c, w->anchor.data, w->anchor.len);
	mq_command_int(c, w->span);
	reply = bring(r, c, 3);
	if (reply == NULL)
		return -1;
	*moved = reply->element[0]->integer;
	w->from = reply->element[1]->integer;
	if (*moved > 0 && w->turned.len == 0)
		mq_buf_add(
		    &w->turned, reply->element[2]->str, reply->element[2]->len);
	freeReplyObject(reply);
	return 0;
}

/* When many are behind the walk, gets those out of the way. */
static int
turn(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = s->walk;
	struct mq_command c = mq_redis_command(r);
	long long moved = 1;
	int rv = 0;

	if (rmq_walk_in_set(s) || s->place.state == MQ_UNACKED ||
	    w->from - w->span <
		(s->place.state == MQ_READY ? BEHIND_MAX_READY : BEHIND_MAX))
		return 0;
	while (rv == 0 && moved > 0 && w->from > w->span)
		rv = turn_some(r, s, &c, &moved);
	mq_command_free(&c);
	return rv;
}

/* Goes on until the first that was brought is in front again; how many. */
static int
home_some(struct mq_redis *r, const struct mq_scan *s, struct mq_command *c,
    long long *moved, long long *there)
{
	redisReply *reply;

	start_turn(c, s, "home");
	mq_command_arg(c, s->walk->turned.data, s->walk->turned.len);
	reply = bring(r, c, 2);
	if (reply == NULL)
		return -1;
	*moved = reply->element[0]->integer;
	*there = reply->element[1]->integer;
	freeReplyObject(reply);
	return 0;
}

/* If somebody has taken that one meanwhile, once around is enough. */
int
rmq_scan_end(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = mq_walk_of(s);
	struct mq_command c = mq_redis_command(r);
	long long moved = 1, sum = 0, there = 1;
	int rv = 0;

	while (rv == 0 && w->turned.len > 0 && moved > 0 && sum < there) {
		rv = home_some(r, s, &c, &moved, &there);
		sum += moved;
	}
	mq_command_free(&c);
	mq_buf_clear(&w->turned);
	return rv;
}

/* Begins a call, with everything but the messages. */
static void
start_take(struct mq_command *c, const struct mq_scan *s, const char *to,
    const char *tombstone)
{
	bool rejected = s->place.state == MQ_REJECTED;
	const char *how;

	rmq_walk_start(c, s, "take", to);
	if (rmq_walk_in_set(s)) {
		how = to != NULL ? "move" : "drop";
	} else {
		mq_command_int(c, s->walk->span);
		mq_command_str(c, tombstone);
		if (to != NULL)
			how = rejected ? "fresh" : "move";
		else
			how = rejected ? "done" : "vanish";
	}
	if (rmq_transfer_needed(c, s->place.queue, to))
		rmq_transfer_how(c, how, mq_state_name(s->place.state), to);
	else
		mq_command_str(c, how);
}

int
rmq_take(struct mq_redis *r, struct mq_scan *s, const bool *chosen,
    const char *to, long *taken)
{
	struct mq_command c = mq_redis_command(r);
	struct mq_idgen ids = {0};
	char tombstone[MQ_ID_LEN + 1];
	bool away = rmq_transfer_needed(&c, s->place.queue, to);
	int at = 0, rv = 0;

	*taken = 0;
	if (away && rmq_transfer_check(r, s->place.queue, to) == -1)
		return -1;
	if (s->walk->batch == 0)
		s->walk->batch = TAKE_FIRST;
	if (turn(r, s) == -1)
		return -1;
	mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), tombstone);
	while (rv == 0 && at < s->count) {
		start_take(&c, s, to, tombstone);
		if (add_chosen(&c, s, chosen, s->walk->batch, &at) > 0)
			rv = take_some(r, s, &c, taken);
		if (rv == 0 && away)
			rv = rmq_transfer_complete(r, s->place.queue, to);
	}
	mq_command_free(&c);
	return rv;
}
