/*
 * The rmq layout: walks through the messages at a place.
 */
#include "layout-rmq.h"

#include <stdlib.h>
#include <string.h>

#include "rmq-ask.h"
#include "rmq-keys.h"
#include "xalloc.h"

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

/* The connection whose list the walk is in. */
static const char *
connection_of(const struct mq_scan *s)
{
	if (s->connections == NULL)
		return s->place.connection;
	return s->connections->element[s->connection]->str;
}

void
rmq_walk_start(struct mq_command *c, const struct mq_scan *s, const char *verb,
    const char *to)
{
	bool later = s->place.state == MQ_DELAYED;

	mq_command_script(
	    c, later ? &mq_script_later : &mq_script_walk, to != NULL ? 2 : 1);
	rmq_key_place(c, &s->place, connection_of(s));
	if (to != NULL)
		rmq_key_queue(c, to, "ready");
	mq_command_str(c, verb);
	mq_command_int(c, s->from);
	mq_command_arg(c, s->anchor.data, s->anchor.len);
	if (later)
		mq_command_int(c, s->anchor_ms);
}

int64_t
rmq_to_ms(const redisReply *score)
{
	return (int64_t)strtod(score->str, NULL);
}

void
rmq_walk_anchor(struct mq_scan *s, const char *p, size_t n)
{
	mq_buf_clear(&s->anchor);
	mq_buf_add(&s->anchor, p, n);
}

static struct mq_item *
new_items(struct mq_scan *s, size_t n)
{
	if (n > s->cap) {
		s->items = mq_xreallocarray(s->items, n, sizeof(*s->items));
		s->cap = n;
	}
	s->count = (int)n;
	return s->items;
}

static void
set_items(struct mq_scan *s)
{
	redisReply **e = s->reply->element;
	size_t i, n = s->reply->elements - 4;
	struct mq_item *items = new_items(s, n);

	for (i = 0; i < n; i++)
		items[i] = (struct mq_item){.element = e[4 + i]->str,
		    .len = e[4 + i]->len,
		    .connection = connection_of(s)};
	if (e[3]->type == REDIS_REPLY_STRING)
		rmq_walk_anchor(s, e[3]->str, e[3]->len);
	else if (n > 0)
		rmq_walk_anchor(s, items[n - 1].element, items[n - 1].len);
}

static void
set_later_items(struct mq_scan *s)
{
	redisReply **e = s->reply->element;
	size_t i, skip, n = (s->reply->elements - 5) / 2;
	struct mq_item *items = new_items(s, n);
	const redisReply *member;

	for (i = 0; i < n; i++) {
		member = e[5 + 2 * i];
		skip =
		    member->len < RMQ_UNIQUE_LEN ? member->len : RMQ_UNIQUE_LEN;
		items[i] = (struct mq_item){.element = member->str + skip,
		    .len = member->len - skip,
		    .due_ms = rmq_to_ms(e[6 + 2 * i])};
	}
	rmq_walk_anchor(s, e[3]->str, e[3]->len);
	s->anchor_ms = rmq_to_ms(e[4]);
}

bool
rmq_walk_reply(const redisReply *reply, size_t count, bool later)
{
	size_t i;

	if (reply->type != REDIS_REPLY_ARRAY ||
	    reply->elements < count + (later ? 2 : 1))
		return false;
	for (i = 0; i < reply->elements; i++)
		if (reply->element[i]->type !=
			(i < count ? REDIS_REPLY_INTEGER :
				     REDIS_REPLY_STRING) &&
		    (later || i != count))
			return false;
	return !later || (reply->elements - count) % 2 == 0;
}

/* Reads the next slice of one list or set; *ended when it is the last. */
static int
read_slice(struct mq_redis *r, struct mq_scan *s, bool *ended)
{
	bool later = s->place.state == MQ_DELAYED;
	struct mq_command c = {0};
	long long behind;

	if (s->skip > 0)
		s->from = s->skip;
	rmq_walk_start(&c, s, s->skip > 0 ? "skip" : "read", NULL);
	s->skip = 0;
	mq_command_int(&c, SLICE_COUNT);
	mq_command_int(&c, SLICE_BYTES);
	mq_command_str(&c, s->needle != NULL ? s->needle : "");
	s->reply = mq_redis_call(r, &c);
	mq_command_free(&c);
	if (s->reply == NULL)
		return -1;
	if (!rmq_walk_reply(s->reply, 3, later))
		return rmq_nonsense(r);
	behind = s->reply->element[0]->integer;
	/* Nothing of what we know is left: those behind us come again. */
	if (behind == 0 && s->from > 0)
		s->seen -= (long)s->from;
	s->span = s->reply->element[1]->integer;
	s->from = behind + s->span;
	*ended = s->reply->element[2]->integer == 0;
	if (later)
		set_later_items(s);
	else
		set_items(s);
	return 0;
}

static int
list_connections(struct mq_redis *r, struct mq_scan *s)
{
	if (s->place.state != MQ_UNACKED || s->place.connection != NULL ||
	    s->connections != NULL)
		return 0;
	s->connections = rmq_connections(r);
	if (s->connections == NULL)
		return -1;
	s->end = s->connections->elements == 0;
	return 0;
}

int
rmq_scan(struct mq_redis *r, struct mq_scan *s)
{
	bool ended = false;

	s->count = 0;
	s->span = 0;
	if (list_connections(r, s) == -1)
		return -1;
	/* The list before has been gone through. */
	while (!s->end && s->span == 0) {
		if (s->reply != NULL)
			freeReplyObject(s->reply);
		s->reply = NULL;
		if (read_slice(r, s, &ended) == -1)
			return -1;
		s->seen += (long)s->span;
		if (!ended)
			break;
		if (s->connections == NULL ||
		    s->connection + 1 == s->connections->elements) {
			s->end = true;
		} else if (s->span == 0) {
			s->connection++;
			s->from = 0;
			mq_buf_clear(&s->anchor);
		}
	}
	return 0;
}
