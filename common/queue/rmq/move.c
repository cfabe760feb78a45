/*
 * The rmq layout: moving and removing many messages without looking at them.
 */
#include "rmq.h"

#include <limits.h>

#include <stdio.h>

#include "base/exit.h"

/* How much one call moves; the server is kept for a millisecond or two. */
#define MOVE_COUNT 1000
#define MOVE_BYTES (1 << 20)

static int
fail_alive(struct mq_redis *r, const struct mq_place *place)
{
	r->status = MQ_EXIT_AGAIN;
	snprintf(r->error, sizeof(r->error), "%s: it is alive; stop it first",
	    place->connection);
	return -1;
}

/* On a cluster the script sees the lease of one of ours only, as the heartbeat lies in
 * another slot. */
static int
check_dead(struct mq_redis *r, const struct mq_place *place)
{
	struct mq_command c = mq_redis_command(r);
	long long ttl;

	if (!c.cluster)
		return 0;
	mq_command_plain(&c, "PTTL");
	rmq_key_connection(&c, place->connection, "heartbeat");
	if (mq_call_number(r, &c, &ttl) == -1)
		return -1;
	return ttl > 0 ? fail_alive(r, place) : 0;
}

static void
build_move(struct mq_command *c, const struct mq_place *place, long max,
    const char *to)
{
	bool held = place->state == MQ_UNACKED, away;
	bool listed = held || place->state == MQ_REJECTED;
	const char *q = place->queue;
	long most;

	away = rmq_transfer_needed(c, q, to);
	most = away ? RMQ_TRANSFER_COUNT : MOVE_COUNT;
	mq_command_script(c, &rmq_script_move);
	rmq_queue_keys(c, q);
	rmq_queue_keys(c, to != NULL && !away ? to : q);
	if (away)
		rmq_key_queue(c, q, "outgoing");
	else
		rmq_key_queues(c, to != NULL ? to : q);
	if (listed)
		rmq_key_place(c, place, place->connection);
	if (held)
		rmq_key_lease(c, place->connection, q);
	if (away)
		rmq_key_queue(c, q, "none");
	mq_command_str(c, mq_state_name(place->state));
	if (away)
		rmq_transfer_how(c, "move", mq_state_name(place->state), to);
	else
		mq_command_str(c,
		    to != NULL		  ? "move" :
			place->line_first ? "last" :
					    "drop");
	mq_command_int(c, max < most ? max : most);
	mq_command_int(c, MOVE_BYTES);
}

/* In one step, unless others depend on the messages. */
static int
purge(struct mq_redis *r, const struct mq_place *place, long *removed)
{
	struct mq_command c = mq_redis_command(r);
	long long n;

	mq_command_script(&c, &rmq_script_purge);
	rmq_queue_keys(&c, place->queue);
	rmq_key_queue(&c, place->queue, "rejected");
	mq_command_str(&c, mq_state_name(place->state));
	if (mq_call_number(r, &c, &n) == -1)
		return -1;
	*removed = (long)n;
	return 0;
}

int
rmq_move(struct mq_redis *r, const struct mq_place *place, long max,
    const char *to, long *moved)
{
	struct mq_command c = mq_redis_command(r);
	bool away;
	long long n;

	away = max > 0 && rmq_transfer_needed(&c, place->queue, to);
	*moved = 0;
	if (max == LONG_MAX && to == NULL && place->state != MQ_UNACKED)
		return purge(r, place, moved);
	if (place->state == MQ_UNACKED && check_dead(r, place) == -1)
		return -1;
	if (away && rmq_transfer_check(r, place->queue, to) == -1)
		return -1;
	build_move(&c, place, max, to);
	if (mq_call_number(r, &c, &n) == -1)
		return -1;
	if (n < 0)
		return fail_alive(r, place);
	*moved = (long)n;
	return away ? rmq_transfer_complete(r, place->queue, to) : 0;
}
