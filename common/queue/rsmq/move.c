/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rsmq layout: walks through the messages at a place, moving and removing messages,
 * and whole queues.
 *
 * A walk goes in the order in which messages can be received.  Each step begins behind the
 * score and id of the last message, which may be gone by then.
 */
#include "rsmq.h"

#include "base/exit.h"

/* A slice has at most 500 messages, or about 1 MiB, and takes the server 1 or 2 ms. */
#define SLICE_COUNT 500
#define SLICE_BYTES (1 << 20)

/* The reply of lua/walk.lua; from ITEMS on, EACH elements for each message. */
enum { CURSOR, FOUND, MORE, ITEMS };
#define FORM "$## $$$"
#define EACH 3

/* The queue whose messages a place has; the caller frees. */
static char *
place_queue(const struct mq_place *place)
{
	return mq_xasprintf("%s%s", place->queue,
	    place->state == MQ_REJECTED ? RSMQ_REJECTED : "");
}

/* --- unacked messages of connections ---------------------------------------------- */

static void
ask_held(void *arg, size_t i, struct mq_command *c)
{
	const struct mq_scan *s = arg;

	rsmq_start(c, &rsmq_script_held, s->walk.connections->element[i]->str,
	    s->place.queue);
}

static int
store_held(void *arg, size_t i, redisReply *reply)
{
	struct mq_scan *s = arg;
	size_t k;

	if (!mq_reply_is(reply, ""))
		return -1;
	for (k = 0; k < reply->elements; k++)
		mq_names_add(&s->walk.held, reply->element[k]->str,
		    s->walk.connections->element[i]->str);
	return 0;
}

/* --- a slice ------------------------------------------------------------------------ */

/* Makes items of the reply; an item's prefix is its number there, see rsmq_walked(). */
static void
set_items(struct mq_scan *s)
{
	redisReply **e = s->walk.reply->element + ITEMS;
	size_t i, k, n = (s->walk.reply->elements - ITEMS) / EACH;
	const char *meant = s->place.connection, *whose = NULL;
	const struct mq_name *holder;

	s->items = mq_xreallocarray(s->items, n + 1, sizeof(*s->items));
	for (i = 0; i < n; i++, e += EACH) {
		if (s->place.state == MQ_UNACKED) {
			holder = mq_names_find(&s->walk.held, e[0]->str, &k);
			whose = holder != NULL ? holder->queue : NULL;
			if (meant != NULL &&
			    strcmp(whose != NULL ? whose : RSMQ_NOBODY,
				meant) != 0)
				continue;
		}
		s->items[s->count++] = (struct mq_item){.element = e[2]->str,
		    .len = e[2]->len,
		    .due_ms = s->place.state == MQ_DELAYED ? rsmq_ms(e[1]) : 0,
		    .connection = whose,
		    .prefix = i};
	}
}

static int
read_slice(struct mq_redis *r, struct mq_scan *s, long *seen)
{
	struct mq_walk *w = &s->walk;
	char *queue = place_queue(&s->place);
	struct mq_command c = {0};
	redisReply **e;

	rsmq_start(&c, &rsmq_script_walk, NULL, queue);
	free(queue);
	MQ_COMMAND_ARGV(&c, rsmq_walk_argv,
	    .place = mq_str(mq_state_name(s->place.state)),
	    .cursor = mq_bytes(w->cursor.data, w->cursor.len),
	    .to_skip = mq_int(s->skip), .most = mq_int(SLICE_COUNT),
	    .bytes = mq_int(SLICE_BYTES),
	    .needle = mq_str(s->needle != NULL ? s->needle : ""));
	freeReplyObject(w->reply);
	w->reply = mq_call_form(r, &c, FORM);
	if (w->reply == NULL)
		return -1;
	e = w->reply->element;
	mq_buf_set(&w->cursor, e[CURSOR]->str, e[CURSOR]->len);
	s->end = e[MORE]->integer == 0;
	set_items(s);
	*seen =
	    s->place.connection != NULL ? s->count : (long)e[FOUND]->integer;
	s->seen += *seen;
	return 0;
}

int
rsmq_scan(struct mq_redis *r, struct mq_scan *s)
{
	struct mq_walk *w = &s->walk;
	long seen = 0;

	/* The end of a walk has nothing to restore here. */
	if (s->over)
		return 0;
	s->count = 0;
	/* Only consumers of these tools have a connection with a name. */
	if (s->place.state == MQ_UNACKED && w->connections == NULL) {
		w->connections = rsmq_connections(r, s->place.queue);
		if (w->connections == NULL ||
		    mq_ask_all(r, w->connections->elements, ask_held,
			store_held, s) == -1)
			return -1;
		mq_names_sort(&w->held);
	}
	while (!s->end && seen == 0)
		if (read_slice(r, s, &seen) == -1)
			return -1;
	return 0;
}

redisReply **
rsmq_walked(const struct mq_scan *s, int i)
{
	return s->walk.reply->element + ITEMS + EACH * s->items[i].prefix;
}

/* --- moving, and removing --------------------------------------------------------- */

/* A call moves at most MOVE_MAX messages.  A step moves at most MOVE_COUNT, or TAKE_COUNT that
 * were chosen, or about MOVE_BYTES, and takes the server a few milliseconds. */
#define MOVE_MAX   1000
#define MOVE_COUNT 500
#define MOVE_BYTES (1 << 20)
#define TAKE_COUNT 250
/* The form of the reply of lua/move.lua. */
#define MOVED "##$$"

/* Begins a call of lua/move.lua; pairs of score and id follow.  to: NULL to drop messages.
 * spared: connections whose messages stay; NULL: none. */
static void
start_move(struct mq_command *c, const struct mq_place *place, const char *to,
    const redisReply *spared, long max, int looks)
{
	char *from = place_queue(place);
	bool home = to != NULL && strcmp(to, place->queue) == 0;
	const char *how;
	size_t i;

	rsmq_start(c, &rsmq_script_move, NULL, from);
	rsmq_keys(c, NULL, to != NULL ? to : from, mq_command_keys(c));
	free(from);
	for (i = 0; spared != NULL && i < spared->elements; i++)
		rsmq_keys(c, spared->element[i]->str, place->queue, "held");
	how = to == NULL			? "drop" :
	    place->state == MQ_REJECTED && home ? "home" :
	    place->state == MQ_REJECTED		? "fresh" :
	    place->state == MQ_UNACKED		? "back" :
						  "move";
	MQ_COMMAND_ARGV(c, rsmq_move_argv,
	    .from = mq_str(mq_state_name(place->state)), .how = mq_str(how),
	    .to_name = mq_str(to != NULL ? rsmq_bare(to) : ""),
	    .max = mq_int(max), .bytes = mq_int(MOVE_BYTES),
	    .looks = mq_int(looks));
}

int
rsmq_take(struct mq_redis *r, struct mq_scan *s, const bool *chosen,
    const char *to, long *taken)
{
	struct mq_command c = {0};
	redisReply *reply, **e;
	int at = 0, n;

	*taken = 0;
	while (at < s->count) {
		start_move(&c, &s->place, to, NULL, TAKE_COUNT, 0);
		for (n = 0; at < s->count && n < TAKE_COUNT; at++)
			if (chosen[at]) {
				e = rsmq_walked(s, at);
				mq_command_arg(&c, e[1]->str, e[1]->len);
				mq_command_arg(&c, e[0]->str, e[0]->len);
				n++;
			}
		if (n == 0)
			break;
		reply = mq_call_form(r, &c, MOVED);
		if (reply == NULL)
			return -1;
		*taken += (long)reply->element[0]->integer;
		freeReplyObject(reply);
	}
	mq_command_free(&c);
	return 0;
}

/* --- moving messages unseen -------------------------------------------------------- */

/* If a step after the first fails, the call succeeds, and the next one meets the error. */
static int
move_next(struct mq_redis *r, const struct mq_place *place,
    const redisReply *spared, long max, const char *to, long *moved)
{
	struct mq_command c = {0};
	struct mq_buf score = {0}, id = {0};
	long all = MIN(max, MOVE_MAX);
	redisReply *reply, **e;
	long long left;
	int rv = 0;

	do {
		start_move(&c, place, to, spared, MIN(all - *moved, MOVE_COUNT),
		    RSMQ_LOOKS);
		mq_command_arg(&c, score.data, score.len);
		mq_command_arg(&c, id.data, id.len);
		reply = mq_call_form(r, &c, MOVED);
		if (reply == NULL) {
			rv = -1;
			break;
		}
		e = reply->element;
		*moved += (long)e[0]->integer;
		left = e[1]->integer;
		mq_buf_set(&score, e[2]->str, e[2]->len);
		mq_buf_set(&id, e[3]->str, e[3]->len);
		freeReplyObject(reply);
	} while (*moved < all && left > 0);
	mq_buf_free(&score);
	mq_buf_free(&id);
	return *moved > 0 ? 0 : rv;
}

/* Number of messages at a place, without those that the spared connections hold (NULL:
 * none). */
static int
count_place(struct mq_redis *r, const struct mq_place *place,
    const redisReply *spared, long *n)
{
	struct rsmq_hidden h = {.spared = spared};
	char *queue = place_queue(place);
	int rv = rsmq_count_hidden(r, queue, &h);

	*n = place->state == MQ_READY  ? (long)h.ready :
	    place->state == MQ_DELAYED ? (long)h.waits :
	    place->state == MQ_UNACKED ? (long)h.held :
					 (long)(h.ready + h.waits + h.held);
	free(queue);
	return rv;
}

int
rsmq_move(struct mq_redis *r, const struct mq_place *place, long max,
    const char *to, long *moved)
{
	struct mq_command c = {0};
	redisReply *spared = NULL;
	bool held = place->state == MQ_UNACKED;
	long long alive;
	int rv;

	*moved = 0;
	/* Messages of a dead connection are free already, and a live one keeps its messages;
	 * only receivers without a connection may hold messages for long. */
	if (held && strcmp(place->connection, RSMQ_NOBODY) != 0) {
		rsmq_ask(&c, "EXISTS lease", place->connection, place->queue);
		if (mq_call_number(r, &c, &alive) == -1)
			return -1;
		return alive == 0 ? 0 :
				    mq_layout_fail(r, MQ_EXIT_AGAIN,
					place->connection, MQ_IS_ALIVE);
	}
	if (held) {
		spared = rsmq_connections(r, place->queue);
		if (spared == NULL)
			return -1;
	}
	rv = max > 0 ? move_next(r, place, spared, max, to, moved) :
		       count_place(r, place, spared, moved);
	freeReplyObject(spared);
	return rv;
}

/* --- deleting a queue ------------------------------------------------------------- */

/* Tries to delete a queue while connections come and go. */
#define DELETE_TRIES 100

static void
add_delete(struct mq_command *c, const char *queue, bool look,
    const redisReply *connections)
{
	char *rejected = mq_xasprintf("%s" RSMQ_REJECTED, queue);
	size_t i, n = connections->elements;
	const char *of_each;

	rsmq_start(c, &rsmq_script_delete, NULL, queue);
	rsmq_keys(c, NULL, queue, mq_command_keys(c));
	rsmq_keys(c, NULL, rejected, mq_command_keys(c));
	of_each = mq_command_keys(c);
	for (i = 0; i < n; i++)
		rsmq_keys(c, connections->element[i]->str, queue, of_each);
	MQ_COMMAND_ARGV(c, rsmq_delete_argv, .name = mq_str(rsmq_bare(queue)),
	    .rejected_name = mq_str(rsmq_bare(rejected)), .look = mq_int(look));
	for (i = 0; i < n; i++)
		mq_command_arg(c, connections->element[i]->str,
		    connections->element[i]->len);
	free(rejected);
}

/* lua/delete.lua does not look at unacked messages, so these are counted before. */
int
rsmq_delete_queue(
    struct mq_redis *r, const char *queue, struct mq_deletion *out)
{
	const struct mq_place place = {.queue = queue, .state = MQ_UNACKED};
	redisReply *reply = NULL, **e, *connections;
	struct mq_command c = {0};
	int tries, rv = 0;

	if (count_place(r, &place, NULL, &out->unacked) == -1)
		return -1;
	/* The reply is nil if other connections are listed by then. */
	for (tries = 0; tries < DELETE_TRIES && reply == NULL; tries++) {
		connections = rsmq_connections(r, queue);
		if (connections == NULL)
			return -1;
		add_delete(
		    &c, queue, out->dry_run || out->unacked > 0, connections);
		freeReplyObject(connections);
		reply = mq_call(r, &c, -1);
		if (reply == NULL)
			return -1;
		if (reply->type == REDIS_REPLY_NIL) {
			freeReplyObject(reply);
			reply = NULL;
		}
	}
	if (reply == NULL)
		return mq_layout_fail(
		    r, MQ_EXIT_AGAIN, queue, MQ_KEEPS_CHANGING);
	if (mq_reply_is(reply, "#####")) {
		e = reply->element;
		out->consumers = (long)e[0]->integer;
		out->known = e[1]->integer != 0;
		out->ready = (long)e[2]->integer;
		out->delayed = (long)e[3]->integer;
		out->rejected = (long)e[4]->integer;
	} else {
		rv = mq_nonsense(r);
	}
	freeReplyObject(reply);
	return rv;
}
