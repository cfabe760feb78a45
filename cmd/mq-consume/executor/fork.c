/*
 * One process a message.
 */
#include "executor.h"

static long
fork_room(const struct executor *x, int queue)
{
	long all = slots_idle(x) - inbox_held(x->inbox) + slots_ahead(x);
	long own = slots_idle_for(x, queue) - inbox_held_of(x->inbox, queue);

	return x->uneven && own < all ? own : all;
}

/* Starts the run of a message, or rejects the message. */
static void
start_message(struct executor *x, struct slot *s, struct message *m)
{
	const char *payload = m->envelope.payload, *why;
	size_t n = m->envelope.payload_len;

	if (x->opt->replace == NULL) {
		slot_take(s, m);
		run_begin(s, payload, n);
		return;
	}
	why = arguments_refuse(payload, n);
	if (why != NULL) {
		tell(x, FACT_REJECTED, .message = m, .text = why);
		return;
	}
	slot_take(s, m);
	/* The payload is an argument in place of the input. */
	run_begin(s, "", 0);
}

static void
fork_start(struct executor *x)
{
	struct message *m;
	struct slot *s;

	while (slots_may_start(x) && (s = slots_free_one(x)) != NULL &&
	    (m = inbox_next(x->inbox, -1)) != NULL) {
		policy_started(x->policy);
		start_message(x, s, m);
	}
}

const struct executor_table executor_fork = {
    .acks = ACKS_AT_ONCE,
    .init = slots_init,
    .make = run_make,
    .room = fork_room,
    .start = fork_start,
    .tick = slots_tick,
};
