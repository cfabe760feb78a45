/*
 * The rsmq layout: moving and removing messages.
 */
#include "rsmq.h"

#include <stdio.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"

/* How much is moved in all, and in one step, which keeps the server for a few
 * milliseconds. */
#define MOVE_MAX   1000
#define MOVE_COUNT 500
#define MOVE_BYTES (1 << 20)
#define TAKE_COUNT 250

/* Begins a call: where from and where to; more keys follow. */
static void
start_move(struct mq_command *c, const struct mq_script *script,
    const struct mq_place *place, const char *to)
{
	char *from = rsmq_place_queue(place);

	mq_command_script(c, script);
	rsmq_queue_keys(c, from);
	rsmq_queue_keys(c, to != NULL ? to : from);
	rsmq_key_common(c, to != NULL ? to : from, ":QUEUES");
	free(from);
}

static void
add_how(struct mq_command *c, const struct mq_place *place, const char *to)
{
	bool home = to != NULL && strcmp(to, place->queue) == 0;

	mq_command_str(c,
	    to == NULL				    ? "drop" :
		place->state == MQ_REJECTED && home ? "home" :
		place->state == MQ_REJECTED	    ? "fresh" :
		place->state == MQ_UNACKED	    ? "back" :
						      "move");
	mq_command_str(c, to != NULL ? rsmq_bare(to) : "");
}

/* --- what a walk has found ------------------------------------------------------- */

static int
take_some(struct mq_redis *r, struct mq_command *c, long *taken)
{
	redisReply *reply = mq_redis_call(r, c);
	int rv = 0;

	if (reply == NULL)
		return -1;
	if (reply->type == REDIS_REPLY_INTEGER)
		*taken += (long)reply->integer;
	else
		rv = mq_nonsense(r);
	freeReplyObject(reply);
	return rv;
}

/* Up to TAKE_COUNT of the chosen ones from item *at on; how many. */
static int
add_chosen(
    struct mq_command *c, const struct mq_scan *s, const bool *chosen, int *at)
{
	redisReply **e;
	int n = 0;

	for (; *at < s->count && n < TAKE_COUNT; (*at)++)
		if (chosen[*at]) {
			e = rsmq_walked(s, *at);
			mq_command_arg(c, e[0]->str, e[0]->len);
			mq_command_arg(c, e[1]->str, e[1]->len);
			n++;
		}
	return n;
}

int
rsmq_take(struct mq_redis *r, struct mq_scan *s, const bool *chosen,
    const char *to, long *taken)
{
	struct mq_command c = {0};
	int at = 0, rv = 0;

	*taken = 0;
	while (rv == 0 && at < s->count) {
		start_move(&c, &rsmq_script_take, &s->place, to);
		add_how(&c, &s->place, to);
		if (add_chosen(&c, s, chosen, &at) > 0)
			rv = take_some(r, &c, taken);
	}
	mq_command_free(&c);
	return rv;
}

/* --- without a look ---------------------------------------------------------------- */

/* One step; adds to *moved.  *left may be more, behind those that stay. */
static int
move_some(struct mq_redis *r, struct mq_command *c, struct mq_buf *score,
    struct mq_buf *id, long *moved, long long *left)
{
	redisReply *reply;

	mq_command_arg(c, score->data, score->len);
	mq_command_arg(c, id->data, id->len);
	reply = rsmq_call(r, c, "##$$");
	if (reply == NULL)
		return -1;
	*moved += (long)reply->element[0]->integer;
	*left = reply->element[1]->integer;
	mq_buf_set(score, reply->element[2]->str, reply->element[2]->len);
	mq_buf_set(id, reply->element[3]->str, reply->element[3]->len);
	freeReplyObject(reply);
	return 0;
}

/* An error behind the first step is for the next call to meet.
 * spared: n connections whose messages are not meant. */
static int
move_next(struct mq_redis *r, const struct mq_place *place,
    redisReply *const *spared, size_t n, long max, const char *to, long *moved)
{
	struct mq_command c = {0};
	struct mq_buf score = {0}, id = {0};
	long long left;
	long all = max < MOVE_MAX ? max : MOVE_MAX;
	size_t i;
	int rv;

	do {
		start_move(&c, &rsmq_script_move, place, to);
		for (i = 0; i < n; i++)
			rsmq_key_held(&c, spared[i]->str, place->queue);
		mq_command_str(&c, mq_state_name(place->state));
		add_how(&c, place, to);
		mq_command_int(
		    &c, all - *moved < MOVE_COUNT ? all - *moved : MOVE_COUNT);
		mq_command_int(&c, MOVE_BYTES);
		mq_command_int(&c, RSMQ_LOOKS);
		rv = move_some(r, &c, &score, &id, moved, &left);
	} while (rv == 0 && *moved < all && left > 0);
	mq_command_free(&c);
	mq_buf_free(&score);
	mq_buf_free(&id);
	return *moved > 0 ? 0 : rv;
}

int
rsmq_place_count(struct mq_redis *r, const struct mq_place *place, long *n)
{
	struct rsmq_hidden h = {0};
	char *queue = rsmq_place_queue(place);
	int rv = rsmq_count_hidden(r, queue, &h);

	switch (place->state) {
	case MQ_READY:
		*n = (long)h.ready;
		break;
	case MQ_DELAYED:
		*n = (long)h.waits;
		break;
	case MQ_UNACKED:
		*n = (long)h.held;
		break;
	default:
		*n = (long)(h.ready + h.waits + h.held);
	}
	rsmq_hidden_free(&h);
	free(queue);
	return rv;
}

/* --- in somebody's hands -------------------------------------------------------------- */

/* Connections that live are left alone. */
static int
check_dead(struct mq_redis *r, const struct mq_place *place)
{
	struct mq_command c = {0};
	long long alive;

	mq_command_plain(&c, "EXISTS");
	rsmq_key_lease(&c, place->connection, place->queue);
	if (mq_call_number(r, &c, &alive) == -1)
		return -1;
	if (alive == 0)
		return 0;
	r->status = MQ_EXIT_AGAIN;
	snprintf(r->error, sizeof(r->error), "%s: it is alive; stop it first",
	    place->connection);
	return -1;
}

/* How many no connection of ours has. */
static int
count_theirs(
    struct mq_redis *r, const char *queue, const redisReply *ours, long *n)
{
	struct rsmq_hidden h = {.spared = ours};
	int rv = rsmq_count_hidden(r, queue, &h);

	*n = (long)h.held;
	rsmq_hidden_free(&h);
	return rv;
}

/* Messages of a dead connection of ours are free by now; but others may be held for long. */
static int
move_held(struct mq_redis *r, const struct mq_place *place, long max,
    const char *to, long *moved)
{
	redisReply *connections;
	int rv;

	if (strcmp(place->connection, RSMQ_NOBODY) != 0)
		return check_dead(r, place);
	connections = rsmq_connections(r, place->queue);
	if (connections == NULL)
		return -1;
	if (max > 0)
		rv = move_next(r, place, connections->element,
		    connections->elements, max, to, moved);
	else
		rv = count_theirs(r, place->queue, connections, moved);
	freeReplyObject(connections);
	return rv;
}

int
rsmq_move(struct mq_redis *r, const struct mq_place *place, long max,
    const char *to, long *moved)
{
	*moved = 0;
	if (place->state == MQ_UNACKED)
		return move_held(r, place, max, to, moved);
	if (max == 0)
		return rsmq_place_count(r, place, moved);
	/* What else is known about the queue is in the same key. */
	if (max == LONG_MAX && to == NULL) {
		*moved = -1;
		return 0;
	}
	return move_next(r, place, NULL, 0, max, to, moved);
}
