/*
 * --batch: up to so many messages of one queue for one script, framed on its
 * standard input.  Those that have been claimed wait for company; the wait
 * begins with the first.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "consume.h"
#include "executor.h"

/* One queue can have a full batch while those of another gather. */
static long
batch_room(const struct consumer *c, int queue)
{
	long free = slot_idle(c);
	int held = free > 0 ? c->queues[queue].held : c->held;
	/* Those that gather are held for long anyway. */
	bool gathers = c->opt->batch_wait_ms > 0 && c->opt->prefetch < 0;

	return free * c->batch_size - held + (gathers ? 0 : slot_ahead(c));
}

/* Whether those of a queue could do with company, and a script could begin. */
static bool
batch_wants_few(const struct consumer *c, int queue)
{
	return c->opt->batch > c->queues[queue].held && slot_idle(c) > 0;
}

/* Nothing that could keep it company comes any more. */
static bool
is_last(const struct consumer *c)
{
	return policy_level(&c->policy) != STOP_NOT ||
	    policy_limit_reached(&c->policy, c->held) ||
	    (c->opt->drain && claim_nothing(c));
}

/* Seconds until the messages of a queue can start; below 0: there are none, or
 * others come at once. */
static double
wait_of(const struct consumer *c, int queue)
{
	const struct queue *q = &c->queues[queue];
	const struct message *first = TAILQ_FIRST(&q->waiting);
	double wait;

	if (first == NULL || q->paused || q->pausing > 0)
		return -1;
	if (q->held >= c->opt->batch || is_last(c))
		return 0;
	if (claim_comes(c, queue))
		return -1;
	wait = first->since + (double)c->opt->batch_wait_ms / 1000 -
	    mq_clock_steady_s();
	return wait > 0 ? wait : 0;
}

/* The first queue that has a batch; or -1, and the timer tells when. */
static int
next_queue(struct consumer *c)
{
	double first = -1, wait;
	int i;

	for (i = 0; i < c->opt->queue_count; i++) {
		wait = wait_of(c, i);
		if (wait == 0)
			return i;
		if (wait > 0 && (first < 0 || wait < first))
			first = wait;
	}
	ev_timer_stop(c->loop, &c->batch_timer);
	if (first > 0) {
		ev_timer_set(&c->batch_timer, first, 0);
		ev_timer_start(c->loop, &c->batch_timer);
	}
	return -1;
}

static void
start(struct slot *s, struct queue *q)
{
	struct consumer *c = s->c;
	struct mq_buf input = {0};
	struct message *m;

	while (
	    s->count < c->opt->batch && (m = TAILQ_FIRST(&q->waiting)) != NULL)
		if (run_take(s, m))
			(void)feed_frame(m, &input);
	if (s->count > 0) {
		s->ones = mq_xcalloc((size_t)s->count, sizeof(*s->ones));
		run_begin(s, input.data, input.len);
	}
	mq_buf_free(&input);
}

static void
batch_start(struct consumer *c)
{
	struct slot *s;
	int queue;

	while (slot_may_start(c) && (s = slot_free(c)) != NULL &&
	    (queue = next_queue(c)) != -1)
		start(s, &c->queues[queue]);
}

void
batch_forget(struct slot *s)
{
	int i;

	for (i = 0; s->ones != NULL && i < s->verbs.count; i++)
		free(s->ones[i].text);
	free(s->ones);
	s->ones = NULL;
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	engine_mark(w->data);
}

void
batch_init(struct consumer *c)
{
	ev_timer_init(&c->batch_timer, on_timer, 0, 0);
	c->batch_timer.data = c;
}

/* Those that gather keep their turn. */
static void
batch_tick(struct consumer *c)
{
	if (c->opt->batch_wait_ms <= 0)
		(void)slot_return_stale(c, slot_idle(c) > 0);
}

const struct executor executor_batch = {
    .runs = true,
    .many = true,
    .bulk = true,
    .requests = &run_requests,
    .room = batch_room,
    .wants_few = batch_wants_few,
    .start = batch_start,
    .take_back = slot_take_back,
    .owes = slot_owes,
    .tick = batch_tick,
    .stop = slot_stop,
    .give_back = settle_held,
};
