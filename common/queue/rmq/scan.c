/*
 * The rmq layout: walks through the messages at a place.
 */
#include "rmq.h"

#include <stdlib.h>
#include <string.h>

#include "queue/layout.h"
#include "redis/round.h"

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
#define LINE   "4503599627370496" /* 2^52 */
#define TICK_1 (INT64_C(1) << 50)
#define LINE_1 (INT64_C(1) << 52)

static const struct part listed[PARTS] = {{NULL, NULL, NULL}};
static const struct part ready[PARTS] = {
    {"priority", "-inf", "(0"}, {NULL, NULL, NULL}, {"priority", "(0", "+inf"}};
static const struct part delayed[PARTS] = {{"delayed", "-inf", "+inf"}};
static const struct part line_first[PARTS] = {
    {"delayed", LINE, "+inf"}, {"delayed", "-inf", "(" LINE}};

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

bool
rmq_walk_in_set(const struct mq_scan *s)
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

void
rmq_walk_start(struct mq_command *c, const struct mq_scan *s, const char *verb,
    const char *to)
{
	const struct part *part = part_of(s);
	bool take = strcmp(verb, "take") == 0;
	bool away = take && rmq_transfer_needed(c, s->place.queue, to);

	mq_command_script(c,
	    part->low != NULL ? &rmq_script_walk_sorted : &rmq_script_walk,
	    take ? 2 + 2 * RMQ_QUEUE_KEYS + away : 1);
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
	mq_command_str(c, verb);
	if (part->low != NULL) {
		mq_command_str(c, part->low);
		mq_command_str(c, part->high);
	}
	mq_command_int(c, s->walk->from);
	mq_command_arg(c, s->walk->anchor.data, s->walk->anchor.len);
	if (part->low != NULL)
		mq_command_int(c, s->walk->anchor_score);
}

/* Others may have put anything there. */
int64_t
rmq_to_score(const redisReply *reply)
{
	double score = strtod(reply->str, NULL);

	return score > 9e15 ? INT64_C(9000000000000000) :
	    score < -9e15   ? INT64_C(-9000000000000000) :
			      (int64_t)score;
}

static struct mq_item *
new_items(struct mq_scan *s, size_t n)
{
	mq_walk_reserve(s, n);
	s->count = (int)n;
	return s->items;
}

static void
set_items(struct mq_scan *s)
{
	redisReply **e = s->walk->reply->element;
	size_t i, n = s->walk->reply->elements - 4;
	struct mq_item *items = new_items(s, n);

	for (i = 0; i < n; i++)
		items[i] = (struct mq_item){.element = e[4 + i]->str,
		    .len = e[4 + i]->len,
		    .connection = connection_of(s)};
	if (e[3]->type == REDIS_REPLY_STRING)
		mq_buf_set(&s->walk->anchor, e[3]->str, e[3]->len);
	else if (n > 0)
		mq_buf_set(
		    &s->walk->anchor, items[n - 1].element, items[n - 1].len);
}

static void
set_wait(struct mq_item *item, int64_t score)
{
	if (score >= LINE_1)
		item->in_line = true;
	else if (score >= TICK_1)
		item->tick = score - TICK_1;
	else
		item->due_ms = score;
}

static void
set_set_items(struct mq_scan *s)
{
	redisReply **e = s->walk->reply->element;
	size_t i, skip, n = (s->walk->reply->elements - 5) / 2;
	struct mq_item *items = new_items(s, n);
	const redisReply *member;

	for (i = 0; i < n; i++) {
		member = e[5 + 2 * i];
		skip =
		    member->len < RMQ_UNIQUE_LEN ? member->len : RMQ_UNIQUE_LEN;
		items[i] = (struct mq_item){.element = member->str + skip,
		    .len = member->len - skip,
		    .prefix = skip};
		if (s->place.state == MQ_DELAYED)
			set_wait(&items[i], rmq_to_score(e[6 + 2 * i]));
	}
	mq_buf_set(&s->walk->anchor, e[3]->str, e[3]->len);
	s->walk->anchor_score = rmq_to_score(e[4]);
}

bool
rmq_walk_reply(const redisReply *reply, size_t count, bool in_set)
{
	size_t i;

	if (reply->type != REDIS_REPLY_ARRAY ||
	    reply->elements < count + (in_set ? 2 : 1))
		return false;
	for (i = 0; i < reply->elements; i++)
		if (reply->element[i]->type !=
			(i < count ? REDIS_REPLY_INTEGER :
				     REDIS_REPLY_STRING) &&
		    (in_set || i != count))
			return false;
	return !in_set || (reply->elements - count) % 2 == 0;
}

/* Reads the next slice of one list or set; *ended when it is the last. */
static int
read_slice(struct mq_redis *r, struct mq_scan *s, bool *ended)
{
	struct mq_walk *w = s->walk;
	bool in_set = rmq_walk_in_set(s), skip = s->skip > 0;
	struct mq_command c = mq_redis_command(r);
	long long behind;

	if (skip)
		w->from = s->skip;
	rmq_walk_start(&c, s, skip ? "skip" : "read", NULL);
	mq_command_int(&c,
	    w->part_left > 0 && w->part_left < SLICE_COUNT ? w->part_left :
							     SLICE_COUNT);
	mq_command_int(&c, SLICE_BYTES);
	mq_command_str(&c, s->needle != NULL ? s->needle : "");
	w->reply = mq_call(r, &c, -1);
	if (w->reply == NULL)
		return -1;
	if (!rmq_walk_reply(w->reply, 3, in_set))
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
	if (in_set)
		set_set_items(s);
	else
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

int
rmq_scan(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = mq_walk_of(s);
	bool ended = false;

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
