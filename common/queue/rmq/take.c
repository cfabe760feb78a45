/*
 * The rmq layout: taking chosen messages away from where a walk has found them.
 */
#include "rmq.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "queue/layout.h"
#include "redis/ask.h"

/* --- scan ---------------------------------------------------------------- */

/*
 * The rmq layout: walks through the messages at a place.
 */

/* How much one slice has; the server is kept for a millisecond or two. */
#define SLICE_COUNT 1000
#define SLICE_BYTES (1 << 20)

void
rmq_key_place(
    struct mq_command *c, const struct mq_place *place, const char *connection)
{
	if (place->state == MQ_UNACKED)
		rmq_key_both(c, connection, place->queue, "unacked");
	else
		rmq_key_queue(c, place->queue, mq_state_name(place->state));
}

/*
 * The keys of a place, in the order in which they are gone through; see
 * lua/lib/place.lua.
 */
struct part {
	const char *what;	/* NULL: the one list of the place */
	const char *low, *high; /* of a sorted set; NULL: a list */
};
#define PARTS  3
#define LINE_1 (INT64_C(1) << 52)

static const struct part listed[PARTS] = {{NULL, NULL, NULL}};
static const struct part ready[PARTS] = {
    {"priority", "-inf", "(0"}, {NULL, NULL, NULL}, {"priority", "(0", "+inf"}};
static const struct part delayed[PARTS] = {{"delayed", "-inf", "+inf"}};
static const struct part line_first[PARTS] = {
    {"delayed", RMQ_IN_LINE, "+inf"}, {"delayed", "-inf", "(" RMQ_IN_LINE}};

static const struct part *
parts_of(const struct mq_place *place, int *count)
{
	switch (place->state) {
	case MQ_READY:
		*count = 3;
		return ready;
	case MQ_DELAYED:
		*count = place->line_first ? 2 : 1;
		return place->line_first ? line_first : delayed;
	default:
		*count = 1;
		return listed;
	}
}

static const struct part *
part_of(const struct mq_scan *s)
{
	int count;

	return &parts_of(&s->place, &count)[s->walk->part];
}

/* Whether the key at work is a sorted set, and no list. */
static bool
is_in_set(const struct mq_scan *s)
{
	return part_of(s)->low != NULL;
}

/* The connection whose list the walk is in. */
static const char *
connection_of(const struct mq_scan *s)
{
	const struct mq_walk *w = s->walk;

	return w->connections == NULL ?
	    s->place.connection :
	    w->connections->element[w->connection]->str;
}

/* Begins a call; for "take" with its queue's home, and the target's, which is
 * the same when to is NULL. */
static void
start_walk(struct mq_command *c, const struct mq_scan *s, const char *verb,
    const char *to)
{
	const struct part *part = part_of(s);
	bool take = strcmp(verb, "take") == 0;
	bool away = take && rmq_transfer_needed(c, s->place.queue, to);

	mq_command_script(c, &rmq_script_walk);
	if (part->what != NULL)
		rmq_key_queue(c, s->place.queue, part->what);
	else
		rmq_key_place(c, &s->place, connection_of(s));
	if (take) {
		rmq_queue_keys(c, s->place.queue);
		rmq_queue_keys(c, to != NULL && !away ? to : s->place.queue);
	}
	if (away) {
		rmq_key_queue(c, s->place.queue, "outgoing");
		rmq_key_queue(c, s->place.queue, "none");
	} else if (take) {
		rmq_key_queues(c, to != NULL ? to : s->place.queue);
	}
	if (part->low != NULL)
		mq_command_fmt(c, "%s %s %s", verb, part->low, part->high);
	else
		mq_command_str(c, verb);
	mq_command_int(c, s->walk->from);
	mq_command_arg(c, s->walk->anchor.data, s->walk->anchor.len);
}

/* A score of ours, which all are integers.  Others may have put anything there. */
static int64_t
to_score(const redisReply *reply)
{
	double score = strtod(reply->str, NULL);

	return score > 9e15 ? INT64_C(9000000000000000) :
	    score < -9e15   ? INT64_C(-9000000000000000) :
			      (int64_t)score;
}

static void
set_wait(struct mq_item *item, int64_t score)
{
	if (score >= LINE_1)
		item->in_line = true;
	else if (score >= RMQ_AT_TICK)
		item->tick = score - RMQ_AT_TICK;
	else
		item->due_ms = score;
}

/* What a reply says of the anchor: nothing, if it is the same. */
static void
set_anchor(struct mq_scan *s, const redisReply *anchor)
{
	if (anchor->type == REDIS_REPLY_STRING)
		mq_buf_set(&s->walk->anchor, anchor->str, anchor->len);
}

static void
set_items(struct mq_scan *s)
{
	const redisReply *reply = s->walk->reply;
	redisReply **e = reply->element + 4;
	size_t i, skip = 0, each = is_in_set(s) ? 2 : 1;

	s->count = (int)((reply->elements - 4) / each);
	mq_walk_reserve(s, (size_t)s->count);
	for (i = 0; i < (size_t)s->count; i++, e += each) {
		if (each == 2)
			skip = e[0]->len < RMQ_UNIQUE_LEN ? e[0]->len :
							    RMQ_UNIQUE_LEN;
		s->items[i] = (struct mq_item){.element = e[0]->str + skip,
		    .len = e[0]->len - skip,
		    .prefix = skip,
		    .connection = connection_of(s)};
		if (s->place.state == MQ_DELAYED)
			set_wait(&s->items[i], to_score(e[1]));
	}
	/* Of a list, the last one. */
	if (i > 0)
		set_anchor(s, e[-1]);
	set_anchor(s, reply->element[3]);
}

/* Whether a reply has count integers, then anything (an anchor that is the same is an
 * integer), and then strings only: each by itself, or by two. */
static bool
is_walk_reply(const redisReply *reply, size_t count, bool by_two)
{
	size_t i;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements <= count)
		return false;
	for (i = 0; i < reply->elements; i++)
		if (i != count &&
		    reply->element[i]->type !=
			(i < count ? REDIS_REPLY_INTEGER : REDIS_REPLY_STRING))
			return false;
	return !by_two || (reply->elements - count) % 2 == 1;
}

/* Reads the next slice of one list or set; *ended when it is the last. */
static int
read_slice(struct mq_redis *r, struct mq_scan *s, bool *ended)
{
	struct mq_walk *w = s->walk;
	bool in_set = is_in_set(s), skip = s->skip > 0;
	struct mq_command c = mq_redis_command(r);
	long long behind;

	if (skip)
		w->from = s->skip;
	start_walk(&c, s, skip ? "skip" : "read", NULL);
	mq_command_int(&c,
	    w->part_left > 0 && w->part_left < SLICE_COUNT ? w->part_left :
							     SLICE_COUNT);
	mq_command_int(&c, SLICE_BYTES);
	mq_command_str(&c, s->needle != NULL ? s->needle : "");
	w->reply = mq_call(r, &c, -1);
	if (w->reply == NULL)
		return -1;
	if (!is_walk_reply(w->reply, 3, in_set))
		return mq_nonsense(r);
	behind = w->reply->element[0]->integer;
	/* Nothing of what we know is left: those behind us come again. */
	if (skip) {
		s->skip -= (long)behind;
	} else if (behind == 0 && w->from > 0) {
		s->seen -= (long)w->from;
		w->part_left += w->from;
	}
	w->span = w->reply->element[1]->integer;
	w->from = behind + w->span;
	/* A message that comes while others are taken away is not meant. */
	if (w->part_left == 0)
		w->part_left = w->span + w->reply->element[2]->integer;
	w->part_left -= w->span;
	*ended = w->reply->element[2]->integer == 0 || w->part_left <= 0;
	if (*ended)
		w->part_left = -1;
	if (w->span > 0)
		s->skip = 0;
	set_items(s);
	return 0;
}

static int
list_connections(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = s->walk;

	if (s->place.state != MQ_UNACKED || s->place.connection != NULL ||
	    w->connections != NULL)
		return 0;
	w->connections = mq_call_members(r, RMQ_CONNECTIONS);
	if (w->connections == NULL)
		return -1;
	if (rmq_keep_holders(r, &s->place.queue, 1, false, w->connections) ==
	    -1)
		return -1;
	s->end = w->connections->elements == 0;
	return 0;
}

/* Goes on to the next list or set; false: this is the last. */
static bool
next_key(struct mq_scan *s, bool go)
{
	struct mq_walk *w = s->walk;
	int parts;

	parts_of(&s->place, &parts);
	if (w->part + 1 < parts)
		w->part += go;
	else if (w->connections != NULL &&
	    w->connection + 1 < w->connections->elements)
		w->connection += go;
	else
		return false;
	if (go) {
		w->from = w->part_left = 0;
		mq_buf_clear(&w->anchor);
	}
	return true;
}

/* --- take ---------------------------------------------------------------- */

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

/* Brings the walk to where the server found it. */
static int
take_some(
    struct mq_redis *r, struct mq_scan *s, struct mq_command *c, long *taken)
{
	struct mq_walk *w = s->walk;
	redisReply *reply = mq_redis_call(r, c);
	long long n, us;

	if (reply == NULL)
		return -1;
	if (!is_walk_reply(reply, 3, is_in_set(s))) {
		freeReplyObject(reply);
		return mq_nonsense(r);
	}
	n = reply->element[0]->integer;
	w->from = reply->element[1]->integer;
	us = reply->element[2]->integer;
	set_anchor(s, reply->element[3]);
	freeReplyObject(reply);
	w->span -= n;
	*taken += (long)n;
	if (us > TAKE_US && w->batch > 1)
		w->batch /= 2;
	else if (us < TAKE_US / 3 && w->batch < TAKE_MAX)
		w->batch *= 2;
	return 0;
}

static void
start_turn(struct mq_command *c, const struct mq_scan *s, const char *verb)
{
	mq_command_script(c, &rmq_script_rotate);
	rmq_key_place(c, &s->place, NULL);
	mq_command_str(c, verb);
	mq_command_int(c, TURN_BYTES);
}

/* One step of bringing messages from the right end to the left.  *moved: how many; *n:
 * how many are behind the walk, or in the list. */
static int
bring(struct mq_redis *r, struct mq_scan *s, struct mq_command *c,
    long long *moved, long long *n)
{
	redisReply *reply = mq_redis_call(r, c), *first;

	if (reply == NULL)
		return -1;
	if (!is_walk_reply(reply, 2, false)) {
		freeReplyObject(reply);
		return mq_nonsense(r);
	}
	*moved = reply->element[0]->integer;
	*n = reply->element[1]->integer;
	first = reply->element[2];
	if (*moved > 0 && s->walk->turned.len == 0)
		mq_buf_add(&s->walk->turned, first->str, first->len);
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

	if (is_in_set(s) || s->place.state == MQ_UNACKED ||
	    w->from - w->span <
		(s->place.state == MQ_READY ? BEHIND_MAX_READY : BEHIND_MAX))
		return 0;
	while (rv == 0 && moved > 0 && w->from > w->span) {
		start_turn(&c, s, "turn");
		mq_command_int(&c, w->from);
		mq_command_arg(&c, w->anchor.data, w->anchor.len);
		mq_command_int(&c, w->span);
		rv = bring(r, s, &c, &moved, &w->from);
	}
	mq_command_free(&c);
	return rv;
}

/* Goes on until the first that was brought is in front again.  If somebody has taken that
 * one meanwhile, once around is enough. */
static int
bring_home(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = mq_walk_of(s);
	struct mq_command c = mq_redis_command(r);
	long long moved = 1, sum = 0, there = 1;
	int rv = 0;

	while (rv == 0 && w->turned.len > 0 && moved > 0 && sum < there) {
		start_turn(&c, s, "home");
		mq_command_arg(&c, w->turned.data, w->turned.len);
		rv = bring(r, s, &c, &moved, &there);
		sum += moved;
	}
	mq_command_free(&c);
	mq_buf_clear(&w->turned);
	return rv;
}

int
rmq_scan(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = mq_walk_of(s);
	bool ended = false;

	if (s->over)
		return bring_home(r, s);
	s->count = 0;
	w->span = 0;
	if (list_connections(r, s) == -1)
		return -1;
	/* The one before has been gone through. */
	s->end |= w->part_left == -1 && !next_key(s, true);
	while (!s->end && w->span == 0) {
		mq_walk_drop_slice(s);
		if (read_slice(r, s, &ended) == -1)
			return -1;
		s->seen += (long)w->span;
		if (!ended)
			break;
		s->end = !next_key(s, w->span == 0);
	}
	return 0;
}

/* Begins a call, with everything but the messages. */
static void
start_take(struct mq_command *c, const struct mq_scan *s, const char *to,
    const char *tombstone)
{
	bool rejected = s->place.state == MQ_REJECTED;
	const char *how = to != NULL ? (rejected ? "fresh" : "move") :
				       (rejected ? "done" : "vanish");

	start_walk(c, s, "take", to);
	if (rmq_transfer_needed(c, s->place.queue, to))
		rmq_transfer_how(c, how, mq_state_name(s->place.state), to);
	else
		mq_command_str(c, how);
	if (!is_in_set(s)) {
		mq_command_int(c, s->walk->span);
		mq_command_str(c, tombstone);
	}
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
