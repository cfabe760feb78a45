/*
 * The rmq layout: walks through the messages at a place, taking chosen ones away from
 * there, and moving and removing many without looking at them.
 */
#include "rmq.h"

#include "base/clock.h"
#include "base/exit.h"

/* --- scan ---------------------------------------------------------------- */

/* How much one slice has; the server is kept for a millisecond or two. */
#define SLICE_COUNT 1000
#define SLICE_BYTES (1 << 20)

/* In front of each element in a sorted set; see lua/lib/place.lua. */
#define UNIQUE_LEN 32
#define LINE_1	   (INT64_C(1) << 52)

struct part {
	const char *what;	/* NULL: no more */
	const char *low, *high; /* of a sorted set; NULL: a list */
};

/* The one at work: a place has up to three, in the order in which they are gone through;
 * see lua/lib/place.lua. */
static const struct part *
part_of(const struct mq_scan *s)
{
	static const struct part parts[MQ_STATES + 1][4] = {
	    [MQ_READY] = {{"priority", "-inf", "(0"}, {.what = "ready"},
		{"priority", "(0", "+inf"}},
	    [MQ_DELAYED] = {{"delayed", "-inf", "+inf"}},
	    [MQ_UNACKED] = {{.what = "unacked"}},
	    [MQ_REJECTED] = {{.what = "rejected"}},
	    /* line_first */
	    [MQ_STATES] = {{"delayed", RMQ_IN_LINE, "+inf"},
		{"delayed", "-inf", "(" RMQ_IN_LINE}}};
	bool line_first = s->place.state == MQ_DELAYED && s->place.line_first;

	return parts[line_first ? MQ_STATES : s->place.state] + s->walk.part;
}

static bool
is_in_set(const struct mq_scan *s)
{
	return part_of(s)->low != NULL;
}

/* The connection whose list the walk is in. */
static const char *
connection_of(const struct mq_scan *s)
{
	const struct mq_walk *w = &s->walk;

	return w->connections == NULL ?
	    s->place.connection :
	    w->connections->element[w->connection]->str;
}

/* Begins a call: the key at work. */
static void
start_walk(struct mq_command *c, const struct mq_scan *s)
{
	mq_command_script(c, &rmq_script_walk);
	if (s->place.state == MQ_UNACKED)
		rmq_keys(c, connection_of(s), s->place.queue, "unacked");
	else
		rmq_key_queue(c, s->place.queue, part_of(s)->what);
}

static void
add_verb(struct mq_command *c, const struct mq_scan *s, const char *verb)
{
	const struct part *part = part_of(s);

	if (part->low != NULL)
		mq_command_fmt(c, "%s %s %s", verb, part->low, part->high);
	else
		mq_command_str(c, verb);
	mq_command_int(c, s->walk.from);
	mq_command_arg(c, s->walk.anchor.data, s->walk.anchor.len);
}

/* What a reply says of the anchor: nothing, if it is the same. */
static void
set_anchor(struct mq_scan *s, const redisReply *anchor)
{
	if (anchor->type == REDIS_REPLY_STRING)
		mq_buf_set(&s->walk.anchor, anchor->str, anchor->len);
}

static void
set_items(struct mq_scan *s)
{
	const redisReply *reply = s->walk.reply;
	redisReply **e = reply->element + 4;
	size_t i, skip = 0, each = is_in_set(s) ? 2 : 1;
	double score;

	s->count = (int)((reply->elements - 4) / each);
	s->items =
	    mq_xreallocarray(s->items, (size_t)s->count + 1, sizeof(*s->items));
	for (i = 0; i < (size_t)s->count; i++, e += each) {
		if (each == 2)
			skip = MIN(e[0]->len, UNIQUE_LEN);
		s->items[i] = (struct mq_item){.element = e[0]->str + skip,
		    .len = e[0]->len - skip,
		    .prefix = skip,
		    .connection = connection_of(s)};
		if (s->place.state != MQ_DELAYED)
			continue;
		/* Our scores are integers.  Others may have put anything there. */
		score = strtod(e[1]->str, NULL);
		if (score >= LINE_1)
			s->items[i].in_line = true;
		else if (score >= RMQ_AT_TICK)
			s->items[i].tick = (int64_t)score - RMQ_AT_TICK;
		else
			s->items[i].due_ms = (int64_t)MAX(score, -9e15);
	}
	/* Of a list, the last one. */
	if (i > 0)
		set_anchor(s, e[-1]);
	set_anchor(s, reply->element[3]);
}

/* The form of the replies to a slice and to its taking: of a list or a set.  An anchor that
 * is the same is an integer. */
#define FORM(set) ((set) ? "###* $$" : "###*")

/* Reads the next slice of one list or set; *ended when it is the last. */
static int
read_slice(struct mq_redis *r, struct mq_scan *s, bool *ended)
{
	struct mq_walk *w = &s->walk;
	bool skip = s->skip > 0;
	struct mq_command c = mq_redis_command(r);
	long long behind;

	if (skip)
		w->from = s->skip;
	start_walk(&c, s);
	add_verb(&c, s, skip ? "skip" : "read");
	mq_command_add(&c, "%lld %d %s",
	    w->part_left > 0 ? MIN(w->part_left, SLICE_COUNT) : SLICE_COUNT,
	    SLICE_BYTES, s->needle != NULL ? s->needle : "");
	w->reply = mq_call_form(r, &c, FORM(is_in_set(s)));
	if (w->reply == NULL)
		return -1;
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

/* Goes on to the next list or set; false: this is the last. */
static bool
next_key(struct mq_scan *s, bool go)
{
	struct mq_walk *w = &s->walk;

	if (part_of(s)[1].what != NULL)
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

/* One step of bringing messages from the right end to the left; home: back to where they
 * were.  *moved: how many; *n: how many are behind the walk, or in the list. */
static int
bring(struct mq_redis *r, struct mq_scan *s, bool home, long long *moved,
    long long *n)
{
	struct mq_walk *w = &s->walk;
	struct mq_command c = mq_redis_command(r);
	redisReply *reply, *first;

	mq_command_script(&c, &rmq_script_rotate);
	rmq_key_queue(&c, s->place.queue, mq_state_name(s->place.state));
	mq_command_add(&c, "%s %d", home ? "home" : "turn", TURN_BYTES);
	if (home) {
		mq_command_arg(&c, w->turned.data, w->turned.len);
	} else {
		mq_command_int(&c, w->from);
		mq_command_arg(&c, w->anchor.data, w->anchor.len);
		mq_command_int(&c, w->span);
	}
	reply = mq_call_form(r, &c, "##*");
	if (reply == NULL)
		return -1;
	*moved = reply->element[0]->integer;
	*n = reply->element[1]->integer;
	first = reply->element[2];
	if (*moved > 0 && w->turned.len == 0)
		mq_buf_add(&w->turned, first->str, first->len);
	freeReplyObject(reply);
	return 0;
}

int
rmq_scan(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = &s->walk;
	long long moved = 1, sum = 0, there = 1;
	bool ended = false;
	int rv = 0;

	if (s->over) {
		/* Until the first that was brought is in front again.  If somebody
		 * has taken that one meanwhile, once around is enough. */
		for (; rv == 0 && w->turned.len > 0 && moved > 0 && sum < there;
		     sum += moved)
			rv = bring(r, s, true, &moved, &there);
		mq_buf_clear(&w->turned);
		return rv;
	}
	s->count = 0;
	w->span = 0;
	if (s->place.state == MQ_UNACKED && s->place.connection == NULL &&
	    w->connections == NULL) {
		w->connections = mq_call_members(r, RMQ_CONNECTIONS);
		if (w->connections == NULL ||
		    rmq_keep_holders(
			r, &s->place.queue, 1, false, w->connections) == -1)
			return -1;
		s->end = w->connections->elements == 0;
	}
	/* The one before has been gone through. */
	s->end |= w->part_left == -1 && !next_key(s, true);
	while (!s->end && w->span == 0) {
		freeReplyObject(w->reply);
		w->reply = NULL;
		if (read_slice(r, s, &ended) == -1)
			return -1;
		s->seen += (long)w->span;
		if (!ended)
			break;
		s->end = !next_key(s, w->span == 0);
	}
	return 0;
}

/* The keys of a queue, and those of where its messages go: its own if to is NULL, or away
 * (then by way of outgoing). */
static void
add_ways(struct mq_command *c, const char *queue, const char *to, bool away)
{
	rmq_key_queue(c, queue, RMQ_PLACES);
	rmq_key_queue(c, to != NULL && !away ? to : queue, RMQ_PLACES);
	if (away)
		rmq_key_queue(c, queue, "outgoing");
	else
		rmq_keys(c, NULL, to != NULL ? to : queue, "known");
}

/* What becomes of them; for those that go away, with an id of its own for each call: see
 * lua/outgoing.lua. */
static void
add_how(struct mq_command *c, const char *how, const struct mq_place *place,
    const char *to, bool away)
{
	struct mq_idgen ids = {0};
	char id[MQ_ID_LEN + 1];

	if (!away) {
		mq_command_str(c, how);
		return;
	}
	mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), id);
	mq_command_fmt(
	    c, "%s %s %s %s", how, id, mq_state_name(place->state), to);
}

/* Begins a call, with everything but the messages. */
static void
start_take(struct mq_command *c, const struct mq_scan *s, const char *to,
    bool away, const char *tombstone)
{
	bool fresh = s->place.state == MQ_REJECTED;

	start_walk(c, s);
	add_ways(c, s->place.queue, to, away);
	if (away)
		rmq_key_queue(c, s->place.queue, "none");
	add_verb(c, s, "take");
	add_how(c,
	    to != NULL ? (fresh ? "fresh" : "move") :
			 (fresh ? "done" : "vanish"),
	    &s->place, to, away);
	if (!is_in_set(s)) {
		mq_command_add(c, "%lld %s", s->walk.span, tombstone);
	}
}

/* Brings the walk to where the server found it. */
static int
take_some(
    struct mq_redis *r, struct mq_scan *s, struct mq_command *c, long *taken)
{
	struct mq_walk *w = &s->walk;
	redisReply *reply = mq_call_form(r, c, FORM(is_in_set(s)));
	long long n, us;

	if (reply == NULL)
		return -1;
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

int
rmq_take(struct mq_redis *r, struct mq_scan *s, const bool *chosen,
    const char *to, long *taken)
{
	struct mq_walk *w = &s->walk;
	struct mq_command c = mq_redis_command(r);
	struct mq_idgen ids = {0};
	const struct mq_item *item;
	char tombstone[MQ_ID_LEN + 1];
	bool away = rmq_transfer_needed(&c, s->place.queue, to);
	bool movable = !is_in_set(s) && s->place.state != MQ_UNACKED;
	int most = s->place.state == MQ_READY ? BEHIND_MAX_READY : BEHIND_MAX;
	long long moved = 1;
	long n;
	int at = 0, rv = 0;

	*taken = 0;
	if (away && rmq_transfer_check(r, s->place.queue, to) == -1)
		return -1;
	if (w->batch == 0)
		w->batch = TAKE_FIRST;
	/* When many are behind the walk, gets those out of the way. */
	if (movable && w->from - w->span >= most)
		while (moved > 0 && w->from > w->span)
			if (bring(r, s, false, &moved, &w->from) == -1)
				return -1;
	mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), tombstone);
	while (rv == 0 && at < s->count) {
		start_take(&c, s, to, away, tombstone);
		for (n = 0; at < s->count && n < w->batch; at++) {
			if (!chosen[at])
				continue;
			item = &s->items[at];
			mq_command_arg(&c, item->element - item->prefix,
			    item->len + item->prefix);
			n++;
		}
		if (n > 0)
			rv = take_some(r, s, &c, taken);
		if (rv == 0 && away)
			rv = rmq_transfer_complete(r, s->place.queue, to);
	}
	mq_command_free(&c);
	return rv;
}

/* --- move ---------------------------------------------------------------- */

/* How much one call moves; the server is kept for a millisecond or two. */
#define MOVE_COUNT 1000
#define MOVE_BYTES (1 << 20)

int
rmq_move(struct mq_redis *r, const struct mq_place *place, long max,
    const char *to, long *moved)
{
	struct mq_command c = mq_redis_command(r);
	bool away = rmq_transfer_needed(&c, place->queue, to);
	bool held = place->state == MQ_UNACKED;
	long long n;

	*moved = 0;
	if (max == LONG_MAX && to == NULL && !held) {
		/* In one step, unless others depend on the messages. */
		mq_command_script(&c, &rmq_script_purge);
		rmq_key_queue(&c, place->queue, RMQ_PLACES " rejected");
		mq_command_str(&c, mq_state_name(place->state));
	} else {
		if (held && c.cluster) {
			/* The script sees the lease of one of ours only, as the
			 * heartbeat lies in another slot. */
			if (rmq_call_number(r, "PTTL C:heartbeat",
				place->connection, NULL, &n) == -1)
				return -1;
			if (n > 0)
				return mq_layout_fail(r, MQ_EXIT_AGAIN,
				    place->connection, MQ_IS_ALIVE);
		}
		if (away && max > 0 &&
		    rmq_transfer_check(r, place->queue, to) == -1)
			return -1;
		mq_command_script(&c, &rmq_script_move);
		add_ways(&c, place->queue, to, away);
		if (place->state == MQ_REJECTED)
			rmq_key_queue(&c, place->queue, "rejected");
		if (held)
			rmq_keys(&c, place->connection, place->queue,
			    "unacked lease");
		if (away)
			rmq_key_queue(&c, place->queue, "none");
		mq_command_str(&c, mq_state_name(place->state));
		add_how(&c,
		    to != NULL		  ? "move" :
			place->line_first ? "last" :
					    "drop",
		    place, to, away);
		mq_command_add(&c, "%ld %d",
		    MIN(max, away ? RMQ_TRANSFER_COUNT : MOVE_COUNT),
		    MOVE_BYTES);
	}
	if (mq_call_number(r, &c, &n) == -1)
		return -1;
	if (n < 0 && held)
		return mq_layout_fail(
		    r, MQ_EXIT_AGAIN, place->connection, MQ_IS_ALIVE);
	*moved = (long)n;
	return away && max > 0 ? rmq_transfer_complete(r, place->queue, to) : 0;
}
