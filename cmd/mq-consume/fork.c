/*
 * One process a message.
 */
#include "consume.h"
#include "executor.h"

static long
fork_room(const struct consumer *c, int queue)
{
	(void)queue;
	return slot_idle(c) - c->held + slot_ahead(c);
}

static bool
fork_wants_few(const struct consumer *c, int queue)
{
	(void)c;
	(void)queue;
	return false;
}

static void
fork_start(struct consumer *c)
{
	struct message *m;
	struct slot *s;

	while (slot_may_start(c) && (s = slot_free(c)) != NULL &&
	    (m = run_next(c)) != NULL)
		if (run_take(s, m))
			run_begin(
			    s, m->envelope.payload, m->envelope.payload_len);
}

static void
fork_tick(struct consumer *c)
{
	(void)slot_return_stale(c, slot_idle(c) > 0);
}

const struct executor executor_fork = {
    .runs = true,
    .requests = &run_requests,
    .room = fork_room,
    .wants_few = fork_wants_few,
    .start = fork_start,
    .take_back = slot_take_back,
    .owes = slot_owes,
    .tick = fork_tick,
    .stop = slot_stop,
    .give_back = settle_held,
};
