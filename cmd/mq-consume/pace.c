/*
 * Not too fast: a rate for all runs of this consumer, and rests of a slot
 * whose runs fail.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "consume.h"
#include "executor.h"

/* Each failure in a row makes the rest so much longer. */
#define LONGER 1.5

static double
now_s(void)
{
	return mq_clock_s(CLOCK_MONOTONIC);
}

/* --- the rate --------------------------------------------------------------- */

/* Timers count from the beginning of the loop's turn, and may so be early. */
static void
await_token(struct consumer *c)
{
	double wait = mq_bucket_wait(&c->bucket, &c->opt->rate, now_s());

	if (wait == 0 || ev_is_active(&c->rate_timer))
		return;
	ev_timer_set(&c->rate_timer, wait, 0);
	ev_timer_start(c->loop, &c->rate_timer);
}

static void
on_token(struct ev_loop *loop, ev_timer *w, int events)
{
	struct consumer *c = w->data;

	(void)loop;
	(void)events;
	await_token(c);
	if (!ev_is_active(w))
		engine_mark(c);
}

bool
pace_allows(const struct consumer *c)
{
	return c->opt->rate.per_s == 0 ||
	    mq_bucket_wait(&c->bucket, &c->opt->rate, now_s()) == 0;
}

void
pace_take(struct consumer *c)
{
	if (c->opt->rate.per_s == 0)
		return;
	mq_bucket_take(&c->bucket, &c->opt->rate, now_s());
	await_token(c);
}

long
pace_room(const struct consumer *c, int queue, long room)
{
	long allowed;

	if (c->opt->rate.per_s == 0 ||
	    (c->executor->runs && c->opt->prefetch > 0))
		return room;
	/* A batch starts whole, and the next waits until it is paid for. */
	if (c->executor->bulk)
		allowed =
		    pace_allows(c) ? c->batch_size - c->queues[queue].held : 0;
	else
		allowed =
		    (long)mq_bucket_tokens(&c->bucket, &c->opt->rate, now_s()) -
		    c->held;
	return room < allowed ? room : allowed;
}

bool
pace_holds_back(const struct consumer *c)
{
	return !pace_allows(c) ||
	    (c->executor->runs && c->resting == c->opt->slots);
}

/* --- rests ------------------------------------------------------------------ */

static void
on_rested(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)loop;
	(void)events;
	s->c->resting--;
	slot_changed(s);
	engine_mark(s->c);
}

/* At random between half of it and all of it, and never outside MIN..MAX. */
static double
rest_s(const struct slot *s)
{
	const struct options *opt = s->c->opt;
	double min = (double)opt->rest_min_ms / 1000;
	double max = (double)opt->rest_max_ms / 1000;
	double top = min, low;
	int i;

	for (i = 0; i < s->failures && top < max; i++)
		top *= LONGER;
	top = top < max ? top : max;
	low = top / 2 > min ? top / 2 : min;
	return low +
	    (top - low) * ((double)arc4random() / ((double)UINT32_MAX + 1));
}

bool
pace_is_good(enum mq_verdict_kind kind)
{
	return kind == MQ_VERDICT_DONE || kind == MQ_VERDICT_PUSH;
}

bool
pace_is_bad(enum mq_verdict_kind kind)
{
	return kind == MQ_VERDICT_ERR || kind == MQ_VERDICT_RETRY;
}

void
pace_judged(struct slot *s, bool good)
{
	struct consumer *c = s->c;

	if (good)
		s->failures = 0;
	if (good || c->opt->rest_max_ms == 0 || ev_is_active(&s->rest))
		return;
	s->failures++;
	c->resting++;
	ev_timer_init(&s->rest, on_rested, rest_s(s), 0);
	s->rest.data = s;
	ev_timer_start(c->loop, &s->rest);
	slot_changed(s);
}

void
pace_init(struct consumer *c)
{
	ev_timer_init(&c->rate_timer, on_token, 0, 0);
	c->rate_timer.data = c;
}
