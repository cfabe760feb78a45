/*
 * One process a message.
 */
#include "executor.h"
#include "mq-consume/process/process.h"
#include "parts.h"

static long
fork_room(const void *work, int queue)
{
	const struct slots *ss = work;

	long all = slots_idle(ss) - inbox_held(ss->inbox) + slots_ahead(ss);
	long own = slots_idle_for(ss, queue) - inbox_held_of(ss->inbox, queue);

	return ss->uneven && own < all ? own : all;
}

/* Starts the run of a message, or rejects the message. */
static void
start_message(struct slots *ss, struct slot *s, struct message *m)
{
	const char *payload = m->envelope.payload, *why;
	size_t n = m->envelope.payload_len;

	if (ss->opt->replace == NULL) {
		slot_take(s, m);
		run_begin(s, payload, n);
		return;
	}
	why = arguments_refuse(payload, n);
	if (why != NULL) {
		tell(ss, FACT_REJECTED, .message = m, .text = why);
		return;
	}
	slot_take(s, m);
	/* The payload is an argument in place of the input. */
	run_begin(s, "", 0);
}

static void
fork_start(void *work)
{
	struct slots *ss = work;
	struct message *m;
	struct slot *s;

	while (slots_may_start(ss) && (s = slots_free_one(ss)) != NULL &&
	    (m = inbox_next(ss->inbox, -1)) != NULL) {
		policy_started(ss->policy);
		start_message(ss, s, m);
	}
}

static void
fork_tick(void *work)
{
	struct slots *ss = work;

	ss->starved = false;
	(void)slots_return_stale(ss, slots_idle(ss) > 0);
}

const struct executor_table executor_fork = {
    .runs = true,
    .init = run_init,
    .room = fork_room,
    .start = fork_start,
    .tick = fork_tick,
};
