/*
 * The rmq layout: moving and removing many messages without looking at them.
 */
#include "layout.h"

#include <stdio.h>

#include "base/exit.h"
#include "keys.h"
#include "lead.h"
#include "unlisted.h"
#include "scripts.h"

/* How much one call moves; the server is kept for a millisecond or two. */
#define MOVE_COUNT 1000
#define MOVE_BYTES (1 << 20)

/* How often to try again when connections come and go. */
#define DELETE_TRIES 100

int
rmq_move(struct mq_redis *r, const struct mq_place *place, long max,
    const char *to, long *moved)
{
	bool held = place->state == MQ_UNACKED;
	bool listed = held || place->state == MQ_REJECTED;
	struct mq_command c = mq_redis_command(r);
	bool done = false;
	long long n;

	*moved = 0;
	if (place->state == MQ_REJECTED && to != NULL && max > 0 &&
	    rmq_lead_large(r, place->queue, to, 0, &done) == -1)
		return -1;
	if (done) {
		*moved = 1;
		return 0;
	}
	mq_command_script(
	    &c, &rmq_script_move, 2 * RMQ_QUEUE_KEYS + 1 + listed + held);
	rmq_queue_keys(&c, place->queue);
	rmq_queue_keys(&c, to != NULL ? to : place->queue);
	rmq_key_queues(&c, to != NULL ? to : place->queue);
	if (listed)
		rmq_key_place(&c, place, place->connection);
	if (held)
		rmq_key_connection(&c, place->connection, "heartbeat");
	mq_command_str(&c, mq_state_name(place->state));
	mq_command_str(&c,
	    to != NULL		  ? "move" :
		place->line_first ? "last" :
				    "drop");
	mq_command_int(&c, max < MOVE_COUNT ? max : MOVE_COUNT);
	mq_command_int(&c, MOVE_BYTES);
	if (mq_call_number(r, &c, &n) == -1)
		return -1;
	if (n >= 0) {
		*moved = (long)n;
		return 0;
	}
	r->status = MQ_EXIT_AGAIN;
	snprintf(r->error, sizeof(r->error), "%s: it is alive; stop it first",
	    place->connection);
	return -1;
}

int
rmq_purge(struct mq_redis *r, const struct mq_place *place, long *removed)
{
	struct mq_command c = mq_redis_command(r);
	long long n;

	*removed = 0;
	mq_command_script(&c, &rmq_script_purge, RMQ_QUEUE_KEYS + 1);
	rmq_queue_keys(&c, place->queue);
	rmq_key_queue(&c, place->queue, "rejected");
	mq_command_str(&c, mq_state_name(place->state));
	if (mq_call_number(r, &c, &n) == -1)
		return -1;
	*removed = (long)n;
	return 0;
}

static void
add_delete(struct mq_command *c, const char *queue, bool dry_run,
    const redisReply *connections)
{
	static const char *const kept[] = {
	    "rejected", "rate", "counters", "paused"};
	const char *name;
	size_t i, n = connections->elements;

	mq_command_script(c, &rmq_script_delete, (int)(16 + 6 * n));
	mq_command_words(c, RMQ_QUEUES " " RMQ_CONNECTIONS);
	rmq_queue_keys(c, queue);
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		rmq_key_queue(c, queue, kept[i]);
	rmq_side.waits(c, queue);
	mq_command_fmt(c, "rmq::queue::{%s}::ready", queue);
	mq_command_fmt(c, "rmq::queue::{%s}::rejected", queue);
	for (i = 0; i < n; i++) {
		name = connections->element[i]->str;
		rmq_key_connection(c, name, "heartbeat");
		rmq_key_connection(c, name, "queues");
		rmq_key_both(c, name, queue, "consumers");
		rmq_key_both(c, name, queue, "unacked");
		rmq_key_cluster(c, name, queue);
	}
	mq_command_str(c, queue);
	mq_command_int(c, dry_run);
	for (i = 0; i < n; i++)
		mq_command_arg(c, connections->element[i]->str,
		    connections->element[i]->len);
}

static int
read_deletion(
    struct mq_redis *r, const redisReply *reply, struct mq_deletion *out)
{
	long n[8];
	size_t i;

	if (reply->type != REDIS_REPLY_ARRAY ||
	    reply->elements != sizeof(n) / sizeof(n[0]))
		return mq_nonsense(r);
	for (i = 0; i < reply->elements; i++) {
		if (reply->element[i]->type != REDIS_REPLY_INTEGER)
			return mq_nonsense(r);
		n[i] = (long)reply->element[i]->integer;
	}
	out->consumers = n[0];
	out->unacked = n[1];
	out->known = n[2] != 0;
	out->ready = n[3];
	out->rejected = n[4];
	out->delayed = n[5];
	out->awaited = n[6] != 0;
	out->cluster = n[7] != 0;
	return 0;
}

/* *done is false when the connections have changed in between. */
static int
try_delete(
    struct mq_redis *r, const char *queue, struct mq_deletion *out, bool *done)
{
	redisReply *reply, *connections = mq_call_members(r, RMQ_CONNECTIONS);
	struct mq_command c = mq_redis_command(r);
	int rv = 0;

	if (connections == NULL)
		return -1;
	add_delete(&c, queue, out->dry_run, connections);
	freeReplyObject(connections);
	reply = mq_call(r, &c, -1);
	if (reply == NULL)
		return -1;
	*done = reply->type != REDIS_REPLY_NIL;
	if (*done)
		rv = read_deletion(r, reply, out);
	freeReplyObject(reply);
	return rv;
}

int
rmq_delete_queue(struct mq_redis *r, const char *queue, struct mq_deletion *out)
{
	bool done = false;
	int tries;

	for (tries = 0; tries < DELETE_TRIES; tries++) {
		if (try_delete(r, queue, out, &done) == -1)
			return -1;
		if (done)
			return 0;
	}
	r->status = MQ_EXIT_AGAIN;
	snprintf(r->error, sizeof(r->error),
	    "%s: connections come and go all the time", queue);
	return -1;
}
