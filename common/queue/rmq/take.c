/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rmq layout: walks through the messages at a place; moving and removing messages that a
 * walk has chosen, or the next ones unseen.  The cursor of a walk is text of lua/walk.lua and
 * lua/move.lua, which is only kept here.
 */
#include "rmq.h"

#include "base/clock.h"
#include "base/exit.h"

/* A step reads or moves at most 1000 messages, or about 1 MiB, and takes the server 1 or
 * 2 ms. */
#define STEP_COUNT 1000
#define STEP_BYTES (1 << 20)

/* Length of the prefix of an element in a sorted set; see lua/lib/place.lua. */
#define UNIQUE_LEN 32
#define LINE_1	   (INT64_C(1) << 52)

/* --- scan ---------------------------------------------------------------- */

/* The reply of lua/walk.lua. */
enum { CURSOR, ANCHOR, LOOKED, MORE, EACH, ITEMS };

/* The connection whose list the walk is in; NULL: the place is not of a connection. */
static const char *
connection_of(const struct mq_scan *s)
{
	const struct mq_walk *w = &s->walk;

	return w->connections == NULL ?
	    s->place.connection :
	    w->connections->element[w->connection]->str;
}

static const char *
place_name(const struct mq_place *place)
{
	return place->state == MQ_DELAYED && place->drop_all ?
	    "line" :
	    mq_state_name(place->state);
}

static void
set_walk(struct mq_walk *w, redisReply *const *cursor)
{
	mq_buf_set(&w->cursor, cursor[0]->str, cursor[0]->len);
	if (cursor[1]->type == REDIS_REPLY_STRING)
		mq_buf_set(&w->anchor, cursor[1]->str, cursor[1]->len);
}

static void
set_items(struct mq_scan *s, redisReply *const *e, int n, size_t each)
{
	size_t skip;
	double score;
	int i;

	s->count = n;
	s->items = mq_xreallocarray(s->items, (size_t)n + 1, sizeof(*s->items));
	for (i = 0; i < n; i++, e += each) {
		skip = each == 2 ? MIN(e[0]->len, UNIQUE_LEN) : 0;
		s->items[i] = (struct mq_item){.element = e[0]->str + skip,
		    .len = e[0]->len - skip,
		    .prefix = skip,
		    .connection = connection_of(s)};
		if (s->place.state != MQ_DELAYED || each == 1)
			continue;
		/* Other programs may have written any score. */
		score = strtod(e[1]->str, NULL);
		if (score >= LINE_1)
			s->items[i].in_line = true;
		else if (score >= (double)LINE_1 / 2)
			s->items[i].follows = true;
		else if (score >= RMQ_AT_TICK)
			s->items[i].tick = (int64_t)score - RMQ_AT_TICK;
		else
			s->items[i].due_ms = (int64_t)MAX(score, -9e15);
	}
}

/* Reads the next slice of one connection or queue; returns the messages looked at, or -1. */
static long
read_slice(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = &s->walk;
	struct mq_command c = mq_redis_command(r);
	redisReply **e, **last;
	size_t each;

	rmq_start(&c, &rmq_script_walk, NULL, s->place.queue);
	if (s->place.state == MQ_UNACKED)
		rmq_keys(&c, connection_of(s), s->place.queue, "unacked");
	else
		rmq_key_queue(&c, s->place.queue, "rejected");
	MQ_COMMAND_ARGV(&c, rmq_walk_argv,
	    .place = mq_str(place_name(&s->place)),
	    .cursor = mq_bytes(w->cursor.data, w->cursor.len),
	    .anchor = mq_bytes(w->anchor.data, w->anchor.len),
	    .skip = mq_int(s->skip), .max = mq_int(STEP_COUNT),
	    .bytes = mq_int(STEP_BYTES),
	    .needle = mq_str(s->needle != NULL ? s->needle : ""));
	freeReplyObject(w->reply);
	w->reply = mq_call_form(r, &c, "$*###");
	if (w->reply == NULL)
		return -1;
	e = w->reply->element;
	each = e[EACH]->integer == 2 ? 2 : 1;
	set_items(
	    s, e + ITEMS, (int)((w->reply->elements - ITEMS) / each), each);
	if (s->count > 0) {
		last = e + ITEMS + (size_t)(s->count - 1) * each;
		mq_buf_set(&w->anchor, last[0]->str, last[0]->len);
	}
	set_walk(w, e);
	w->ended = e[MORE]->integer == 0;
	return (long)e[LOOKED]->integer;
}

/* --- move ---------------------------------------------------------------- */

/* Begins a step of lua/move.lua, to which chosen messages can be added.  cursor, anchor: of
 * their walk, else NULL. */
static void
start_move(struct mq_command *c, const struct mq_place *place, const char *how,
    const char *to, long max, const struct mq_buf *cursor,
    const struct mq_buf *anchor)
{
	bool away = rmq_transfer_needed(c, place->queue, to);
	const struct mq_change *change = place->change;
	struct mq_idgen ids = {0};
	char id[MQ_ID_LEN + 1], *departure = NULL;
	struct mq_buf from = {0};

	rmq_start(c, &rmq_script_move, NULL, place->queue);
	rmq_key_queue(
	    c, to != NULL && !away ? to : place->queue, mq_command_keys(c));
	if (away)
		rmq_key_queue(c, place->queue, "outgoing");
	else
		rmq_keys(c, NULL, to != NULL ? to : place->queue, "known");
	if (place->state == MQ_REJECTED)
		rmq_key_queue(c, place->queue, "rejected");
	if (place->state == MQ_UNACKED)
		rmq_keys(c, place->connection, place->queue, "unacked lease");
	if (away)
		rmq_key_queue(c, place->queue, "none");
	mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), id);
	if (away)
		departure = mq_xasprintf("%s %s %s %s", how, id,
		    change != NULL && change->due_ms >= 0 ?
			"timed" :
			mq_state_name(place->state),
		    to);
	mq_buf_printf(&from, "%s", place_name(place));
	if (change != NULL && change->ordered)
		mq_buf_printf(&from, " priority=%d", change->priority);
	if (change != NULL && change->due_ms >= 0)
		mq_buf_printf(&from, " due=%lld", (long long)change->due_ms);
	MQ_COMMAND_ARGV(c, rmq_move_argv, .from = mq_str(mq_buf_str(&from)),
	    .how = mq_str(away ? departure : how),
	    .max = mq_int(MIN(max, away ? RMQ_TRANSFER_COUNT : STEP_COUNT)),
	    .bytes = mq_int(STEP_BYTES),
	    .cursor = cursor == NULL ? MQ_NO_ARG :
				       mq_bytes(cursor->data, cursor->len),
	    .anchor = anchor == NULL ? MQ_NO_ARG :
				       mq_bytes(anchor->data, anchor->len));
	free(departure);
	mq_buf_free(&from);
}

int
rmq_move(struct mq_redis *r, const struct mq_place *place, long max,
    const char *to, long *moved)
{
	struct mq_command c = mq_redis_command(r);
	bool away = max > 0 && rmq_transfer_needed(&c, place->queue, to);
	redisReply *reply;
	long long alive = 0;

	*moved = 0;
	/* On a cluster the heartbeat is in another slot, so the script looks only for a
	 * lease of the queue, which Go's connections lack. */
	if (place->state == MQ_UNACKED && c.cluster &&
	    rmq_call_number(
		r, "PTTL C:heartbeat", place->connection, NULL, &alive) == -1)
		return -1;
	if (away && rmq_transfer_check(r, place->queue, to) == -1)
		return -1;
	if (alive <= 0) {
		start_move(&c, place,
		    to != NULL		? "move" :
			place->drop_all ? "purge" :
					  "drop",
		    to, max, NULL, NULL);
		reply = mq_call_form(r, &c, "#");
		if (reply == NULL)
			return -1;
		*moved = (long)reply->element[0]->integer;
		freeReplyObject(reply);
	}
	if (alive > 0 || *moved < 0) {
		*moved = 0;
		return mq_layout_fail(
		    r, MQ_EXIT_AGAIN, place->connection, MQ_IS_ALIVE);
	}
	return away ? rmq_transfer_complete(r, place->queue, to) : 0;
}

/* Parses the reply of a step.  *at: the first item that the step did not deal with. */
static void
parse_step(struct mq_scan *s, redisReply *reply, const bool *chosen, int *at,
    long *taken)
{
	struct mq_walk *w = &s->walk;
	redisReply **e = reply->element;
	long long n = e[1]->integer;

	*taken += (long)e[0]->integer;
	for (; n > 0 && *at < s->count; ++*at)
		n -= chosen[*at];
	set_walk(w, e + 2);
	if (w->aside.len == 0)
		mq_buf_add(&w->aside, e[4]->str, e[4]->len);
	freeReplyObject(reply);
}

int
rmq_take(struct mq_redis *r, struct mq_scan *s, const bool *chosen,
    const char *to, long *taken)
{
	struct mq_walk *w = &s->walk;
	struct mq_place place = s->place;
	struct mq_command c = mq_redis_command(r);
	const struct mq_item *item;
	bool away = rmq_transfer_needed(&c, place.queue, to);
	redisReply *reply;
	int at = 0, i, n, none, rv = 0;

	*taken = 0;
	place.connection = connection_of(s);
	if (away && rmq_transfer_check(r, place.queue, to) == -1)
		return -1;
	for (;;) {
		start_move(&c, &place, to != NULL ? "move" : "drop", to,
		    LONG_MAX, &w->cursor, &w->anchor);
		none = c.args;
		n = away ? RMQ_TRANSFER_COUNT : STEP_COUNT;
		for (i = at; i < s->count && n > 0; i++) {
			if (!chosen[i])
				continue;
			item = &s->items[i];
			mq_command_arg(&c, item->element - item->prefix,
			    item->len + item->prefix);
			n--;
		}
		if (c.args == none)
			break;
		reply = mq_call_form(r, &c, "##$*$");
		if (reply == NULL)
			return -1;
		parse_step(s, reply, chosen, &at, taken);
		if (away)
			rv = rmq_transfer_complete(r, place.queue, to);
		if (rv == -1)
			break;
	}
	mq_command_free(&c);
	return rv;
}

/* Brings messages back until the first that was brought aside is in front again; if that is
 * gone, the list goes around once. */
static int
bring_home(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = &s->walk;
	struct mq_command c = mq_redis_command(r);
	const struct mq_buf none = {0};
	long long moved = 1, sum = 0, there = 1;
	redisReply *reply;

	for (; w->aside.len > 0 && moved > 0 && sum < there; sum += moved) {
		start_move(
		    &c, &s->place, "home", NULL, LONG_MAX, &none, &w->aside);
		reply = mq_call_form(r, &c, "##");
		if (reply == NULL)
			return -1;
		moved = reply->element[0]->integer;
		there = reply->element[1]->integer;
		freeReplyObject(reply);
	}
	mq_buf_clear(&w->aside);
	return 0;
}

int
rmq_scan(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = &s->walk;
	long looked = 0;

	if (s->over)
		return bring_home(r, s);
	s->count = 0;
	if (s->place.state == MQ_UNACKED && s->place.connection == NULL &&
	    w->connections == NULL) {
		w->connections = mq_call_members(r, RMQ_CONNECTIONS);
		if (w->connections == NULL ||
		    rmq_keep_holders(
			r, &s->place.queue, 1, false, w->connections) == -1)
			return -1;
		s->end = w->connections->elements == 0;
	}
	while (!s->end && looked == 0) {
		if (w->ended) {
			w->connection++;
			mq_buf_clear(&w->cursor);
		}
		looked = read_slice(r, s);
		if (looked == -1)
			return -1;
		s->seen += looked;
		s->end = w->ended &&
		    (w->connections == NULL ||
			w->connection + 1 == w->connections->elements);
	}
	return 0;
}
