/*
 * The rmq layout: walks through the messages at a place.
 */
#include "layout-rmq.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "rmq-ask.h"
#include "rmq-keys.h"
#include "xalloc.h"

/* How much one slice has; the server is kept for a millisecond or two. */
#define SLICE_COUNT 1000
#define SLICE_BYTES (1 << 20)

/* In front of each delayed element; see delay.lua. */
#define UNIQUE_LEN 32

/*
 * To mark one message takes the longer the deeper it is in a list, and to
 * remove all that are marked takes as long as the way there, however many they
 * are.  Taking begins with so many at once, and goes on with less when marking
 * them kept the server for longer than so many microseconds.
 */
#define TAKE_FIRST 250
#define TAKE_US	   2500

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

/* The part that all calls begin with; keys: the target, if it is not NULL. */
static void
start(struct mq_command *c, const struct mq_scan *s, const char *verb,
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

static int64_t
to_ms(const redisReply *score)
{
	return (int64_t)strtod(score->str, NULL);
}

static void
set_anchor(struct mq_scan *s, const char *p, size_t n)
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
		set_anchor(s, e[3]->str, e[3]->len);
	else if (n > 0)
		set_anchor(s, items[n - 1].element, items[n - 1].len);
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
		skip = member->len < UNIQUE_LEN ? member->len : UNIQUE_LEN;
		items[i] = (struct mq_item){.element = member->str + skip,
		    .len = member->len - skip,
		    .due_ms = to_ms(e[6 + 2 * i])};
	}
	set_anchor(s, e[3]->str, e[3]->len);
	s->anchor_ms = to_ms(e[4]);
}

/* Whether a reply has count integers, and then strings only (the anchor of a
 * list may be an integer). */
static bool
makes_sense(const redisReply *reply, size_t count, bool later)
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
	start(&c, s, s->skip > 0 ? "skip" : "read", NULL);
	s->skip = 0;
	mq_command_int(&c, SLICE_COUNT);
	mq_command_int(&c, SLICE_BYTES);
	mq_command_str(&c, s->needle != NULL ? s->needle : "");
	s->reply = mq_redis_call(r, &c);
	mq_command_free(&c);
	if (s->reply == NULL)
		return -1;
	if (!makes_sense(s->reply, 3, later))
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

/* Brings the walk to where the server found it after a take. */
static int
taken_list(struct mq_redis *r, struct mq_scan *s, const redisReply *reply,
    long *n, long long *us)
{
	redisReply **e = reply->element;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4 ||
	    e[0]->type != REDIS_REPLY_INTEGER ||
	    e[1]->type != REDIS_REPLY_INTEGER ||
	    e[3]->type != REDIS_REPLY_INTEGER)
		return rmq_nonsense(r);
	*n = (long)e[0]->integer;
	s->from = e[1]->integer;
	s->span -= e[0]->integer;
	if (e[2]->type == REDIS_REPLY_STRING)
		set_anchor(s, e[2]->str, e[2]->len);
	*us = e[3]->integer;
	return 0;
}

static int
taken_later(
    struct mq_redis *r, struct mq_scan *s, const redisReply *reply, long *n)
{
	if (!makes_sense(reply, 2, true))
		return rmq_nonsense(r);
	*n = (long)reply->element[0]->integer;
	s->from = reply->element[1]->integer;
	s->span -= *n;
	set_anchor(s, reply->element[2]->str, reply->element[2]->len);
	s->anchor_ms = to_ms(reply->element[3]);
	return 0;
}

/* The arguments of one call that takes up to max of the chosen ones from item
 * *at on; their number. */
static long
add_chosen(struct mq_command *c, const struct mq_scan *s, const bool *chosen,
    long max, int *at)
{
	size_t skip = s->place.state == MQ_DELAYED ? UNIQUE_LEN : 0;
	long n = 0;

	for (; *at < s->count && n < max; (*at)++)
		if (chosen[*at]) {
			mq_command_arg(c, s->items[*at].element - skip,
			    s->items[*at].len + skip);
			n++;
		}
	return n;
}

static int
take_some(
    struct mq_redis *r, struct mq_scan *s, struct mq_command *c, long *taken)
{
	redisReply *reply = mq_redis_call(r, c);
	long long us = 0;
	long n = 0;
	int rv;

	if (reply == NULL)
		return -1;
	if (s->place.state == MQ_DELAYED)
		rv = taken_later(r, s, reply, &n);
	else
		rv = taken_list(r, s, reply, &n, &us);
	freeReplyObject(reply);
	*taken += n;
	if (us > TAKE_US && s->batch > 1)
		s->batch /= 2;
	else if (us < TAKE_US / 3 && s->batch < SLICE_COUNT)
		s->batch *= 2;
	return rv;
}

int
rmq_take(struct mq_redis *r, struct mq_scan *s, const bool *chosen,
    const char *to, long *taken)
{
	struct mq_command c = {0};
	struct mq_idgen ids = {0};
	char tombstone[MQ_ID_LEN + 1];
	bool fresh = s->place.state == MQ_REJECTED;
	int at = 0, rv = 0;

	*taken = 0;
	if (s->batch == 0)
		s->batch = TAKE_FIRST;
	mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), tombstone);
	while (rv == 0 && at < s->count) {
		start(&c, s, "take", to);
		if (s->place.state != MQ_DELAYED) {
			mq_command_int(&c, s->span);
			mq_command_str(&c, tombstone);
			mq_command_int(&c, fresh);
		}
		if (add_chosen(&c, s, chosen, s->batch, &at) > 0)
			rv = take_some(r, s, &c, taken);
	}
	mq_command_free(&c);
	return rv;
}
