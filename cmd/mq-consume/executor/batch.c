/*
 * --batch: several messages of one queue for one run, framed on its standard
 * input.  Claimed messages wait for more of their queue; the wait begins with
 * the claim of the first.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "executor.h"
#include "parts.h"

/* Each queue can gather a batch while a slot is free. */
static long
batch_room(const void *work, int queue)
{
	const struct slots *ss = work;
	long free = slots_idle_for(ss, queue);
	int held =
	    free > 0 ? inbox_held_of(ss->inbox, queue) : inbox_held(ss->inbox);
	/* Messages that gather are held for long anyway. */
	bool gathers = ss->opt->batch_wait_ms > 0 && ss->opt->prefetch < 0;

	return free * ss->batch - held + (gathers ? 0 : slots_ahead(ss));
}

/* Whether the batch of a queue is not full, and a slot is free for it. */
static bool
batch_wants_few(const void *work, int queue)
{
	const struct slots *ss = work;

	return ss->batch > inbox_held_of(ss->inbox, queue) &&
	    slots_idle_for(ss, queue) > 0;
}

/* Whether no messages come that could fill a batch. */
static bool
is_last_batch(const struct slots *ss)
{
	return policy_level(ss->policy) != STOP_NOT ||
	    policy_limit_reached(ss->policy, inbox_held(ss->inbox)) ||
	    (ss->opt->drain && inbox_drained(ss->inbox));
}

/* Seconds until the batch of a queue can start; below 0: no messages, or others
 * come at once. */
static double
batch_wait_s(const struct slots *ss, int queue)
{
	const struct message *first = inbox_oldest_of(ss->inbox, queue);
	double wait;

	if (first == NULL)
		return -1;
	if (inbox_held_of(ss->inbox, queue) >= ss->batch || is_last_batch(ss))
		return 0;
	if (session_is_up(ss->session) && !session_complains(ss->session) &&
	    inbox_expects(ss->inbox, queue))
		return -1;
	wait = first->since + (double)ss->opt->batch_wait_ms / 1000 -
	    mq_clock_steady_s();
	return wait > 0 ? wait : 0;
}

/* The first queue whose batch can start; -1: none, and the timer is set. */
static int
next_batch_queue(struct slots *ss)
{
	double first = -1, wait;
	int i;

	for (i = 0; i < ss->opt->queue_count; i++) {
		wait = batch_wait_s(ss, i);
		if (wait == 0)
			return i;
		if (wait > 0 && (first < 0 || wait < first))
			first = wait;
	}
	ev_timer_stop(ss->loop, &ss->batch_timer);
	if (first > 0) {
		ev_timer_set(&ss->batch_timer, first, 0);
		ev_timer_start(ss->loop, &ss->batch_timer);
	}
	return -1;
}

/* Adds a message to the run, or rejects it. */
static void
add_to_run(struct slot *s, struct message *m, struct mq_buf *input)
{
	struct slots *ss = s->slots;
	const char *why = message_unframable(m, ss->opt->framing);

	policy_started(ss->policy);
	if (why != NULL) {
		tell(ss, FACT_REJECTED, .message = m, .text = why);
		return;
	}
	slot_take(s, m);
	message_frame(m, ss->opt->framing, input);
}

static void
start_batch(struct slot *s, int queue)
{
	struct slots *ss = s->slots;
	struct mq_buf input = {0};
	struct message *m;

	while (
	    s->count < ss->batch && (m = inbox_next(ss->inbox, queue)) != NULL)
		add_to_run(s, m, &input);
	if (s->count > 0) {
		s->ones = mq_xcalloc((size_t)s->count, sizeof(*s->ones));
		run_begin(s, input.data, input.len);
	}
	mq_buf_free(&input);
}

static void
batch_start(void *work)
{
	struct slots *ss = work;
	struct slot *s;
	int queue;

	while (slots_may_start(ss) && (s = slots_free_one(ss)) != NULL &&
	    (queue = next_batch_queue(ss)) != -1)
		start_batch(s, queue);
}

/* Messages that gather are not given back. */
static void
batch_tick(void *work)
{
	struct slots *ss = work;

	ss->starved = false;
	if (ss->opt->batch_wait_ms <= 0)
		(void)slots_return_stale(ss, slots_idle(ss) > 0);
}

static void
on_batch_time(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slots *ss = w->data;

	(void)loop;
	(void)events;
	tell(ss, FACT_WAKE);
}

static void
batch_init(void *work)
{
	struct slots *ss = work;

	run_init(ss);
	ev_timer_init(&ss->batch_timer, on_batch_time, 0, 0);
	ss->batch_timer.data = ss;
}

const struct executor_table executor_batch = {
    .runs = true,
    .many = true,
    .bulk = true,
    .init = batch_init,
    .room = batch_room,
    .wants_few = batch_wants_few,
    .start = batch_start,
    .tick = batch_tick,
};
