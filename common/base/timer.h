/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* A timer of an event loop (libev) that calls fire(arg).  mq_timer_init() sets it up, once;
 * while it runs, it must not be moved in memory. */
#ifndef MQ_TIMER_H
#define MQ_TIMER_H

#include <stdbool.h>

#include <ev.h>

struct mq_timer {
	ev_timer ev;
	struct ev_loop *loop;
	void (*fire)(void *arg);
	void *arg;
};

static inline void
mq_timer_fired(struct ev_loop *loop, ev_timer *w, int events)
{
	const struct mq_timer *t = w->data;

	(void)loop;
	(void)events;
	t->fire(t->arg);
}

static inline void
mq_timer_init(struct mq_timer *t, struct ev_loop *loop, void (*fire)(void *arg),
    void *arg)
{
	*t = (struct mq_timer){.loop = loop, .fire = fire, .arg = arg};
	ev_init(&t->ev, mq_timer_fired);
	t->ev.data = t;
}

static inline void
mq_timer_stop(struct mq_timer *t)
{
	ev_timer_stop(t->loop, &t->ev);
}

static inline bool
mq_timer_runs(const struct mq_timer *t)
{
	return ev_is_active(&t->ev);
}

/* Fires after `after` seconds, whatever was set before, then every `every` seconds; every
 * 0: only once. */
static inline void
mq_timer_start(struct mq_timer *t, double after, double every)
{
	ev_timer_stop(t->loop, &t->ev);
	ev_timer_set(&t->ev, after, every);
	ev_timer_start(t->loop, &t->ev);
}

#endif
