/*
 * --batch: several messages of one queue for one run, framed on its standard
 * input.  Claimed messages wait for more of their queue; the wait begins with
 * the claim of the first.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "executor.h"

/* Each queue can gather a batch while a slot is free. */
static long
batch_room(const struct executor *x, int queue)
{
	long free = slots_idle_for(x, queue);
	int held =
	    free > 0 ? inbox_held_of(x->inbox, queue) : inbox_held(x->inbox);
	/* Messages that gather are held for long anyway. */
	bool gathers = x->opt->batch_wait_ms > 0 && x->opt->prefetch < 0;

	return free * x->batch - held + (gathers ? 0 : slots_ahead(x));
}

bool
executor_wants_few(const struct executor *x, int queue)
{
	/* The batch of a queue is not full, and a slot is free for it. */
	return x->opt->stream ||
	    (x->opt->batch > inbox_held_of(x->inbox, queue) &&
		slots_idle_for(x, queue) > 0);
}

/* Whether no messages come that could fill a batch. */
static bool
is_last_batch(const struct executor *x)
{
	return policy_level(x->policy) != STOP_NOT ||
	    policy_limit_reached(x->policy, inbox_held(x->inbox)) ||
	    (x->opt->drain && inbox_drained(x->inbox));
}

/* Seconds until the batch of a queue can start; below 0: no messages, or others
 * come at once. */
static double
batch_wait_s(const struct executor *x, int queue)
{
	const struct message *first = inbox_oldest_of(x->inbox, queue);
	double wait;

	if (first == NULL)
		return -1;
	if (inbox_held_of(x->inbox, queue) >= x->batch || is_last_batch(x))
		return 0;
	if (session_is_up(x->session) && !session_complains(x->session) &&
	    inbox_expects(x->inbox, queue))
		return -1;
	wait = first->since + (double)x->opt->batch_wait_ms / 1000 -
	    mq_clock_steady_s();
	return wait > 0 ? wait : 0;
}

/* The first queue whose batch can start; -1: none, and the timer is set. */
static int
next_batch_queue(struct executor *x)
{
	double first = -1, wait;
	int i;

	for (i = 0; i < x->opt->queue_count; i++) {
		wait = batch_wait_s(x, i);
		if (wait == 0)
			return i;
		if (wait > 0 && (first < 0 || wait < first))
			first = wait;
	}
	ev_timer_stop(x->loop, &x->batch_timer);
	if (first > 0) {
		ev_timer_set(&x->batch_timer, first, 0);
		ev_timer_start(x->loop, &x->batch_timer);
	}
	return -1;
}

/* Adds a message to the run, or rejects it. */
static void
add_to_run(struct slot *s, struct message *m, struct mq_buf *input)
{
	struct executor *x = s->executor;
	const char *why = message_unframable(m, x->opt->framing);

	policy_started(x->policy);
	if (why != NULL) {
		tell(x, FACT_REJECTED, .message = m, .text = why);
		return;
	}
	slot_take(s, m);
	message_frame(m, x->opt->framing, input);
}

static void
start_batch(struct slot *s, int queue)
{
	struct executor *x = s->executor;
	struct mq_buf input = {0};
	struct message *m;

	while (s->count < x->batch && (m = inbox_next(x->inbox, queue)) != NULL)
		add_to_run(s, m, &input);
	if (s->count > 0) {
		s->ones = mq_xcalloc((size_t)s->count, sizeof(*s->ones));
		run_begin(s, input.data, input.len);
	}
	mq_buf_free(&input);
}

static void
batch_start(struct executor *x)
{
	struct slot *s;
	int queue;

	while (slots_may_start(x) && (s = slots_free_one(x)) != NULL &&
	    (queue = next_batch_queue(x)) != -1)
		start_batch(s, queue);
}

static void
on_batch_time(struct ev_loop *loop, ev_timer *w, int events)
{
	struct executor *x = w->data;

	(void)loop;
	(void)events;
	tell(x, FACT_WAKE);
}

static void
batch_init(struct executor *x)
{
	slots_init(x);
	ev_timer_init(&x->batch_timer, on_batch_time, 0, 0);
	x->batch_timer.data = x;
}

const struct executor_table executor_batch = {
    .acks = ACKS_AT_REST,
    .init = batch_init,
    .make = run_make,
    .room = batch_room,
    .start = batch_start,
    .tick = slots_tick,
};
