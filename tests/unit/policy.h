/*
 * A policy, with an engine that records what it is to do.
 */
#ifndef TEST_POLICY_H
#define TEST_POLICY_H

#include <unistd.h>

#include "mq-consume/policy.h"
#include "record.h"

struct house {
	struct ev_loop *loop;
	struct options opt;
	sigset_t ignored;
	struct policy policy;
	bool runs; /* some command does */
	bool busy;
	int wakes;
};

/* --- the engine --- */

static inline void
on_wake(void *arg)
{
	((struct house *)arg)->wakes++;
}

static inline void
on_asked(void *arg)
{
	(void)arg;
	record("asked");
}

static inline void
on_stop(void *arg, enum stop_level level)
{
	static const char *const levels[] = {"not", "fetching", "soon", "now"};

	(void)arg;
	record("stop:%s", levels[level]);
}

static inline bool
on_kill(void *arg, int sig)
{
	record(sig == SIGTERM ? "TERM" : "KILL");
	return ((struct house *)arg)->runs;
}

static inline void
on_give_up(void *arg)
{
	(void)arg;
	record("give-up");
}

static inline bool
on_idle(void *arg)
{
	record("idle");
	return !((struct house *)arg)->busy;
}

static inline void
on_reopen_logs(void *arg)
{
	(void)arg;
	record("logs");
}

static const struct policy_events events = {.wake = on_wake,
    .asked = on_asked,
    .stop = on_stop,
    .kill = on_kill,
    .give_up = on_give_up,
    .idle = on_idle,
    .reopen_logs = on_reopen_logs};

static inline void
free_policy(struct house *h)
{
	size_t i;

	/* No other loop may have these signals until then. */
	for (i = 0; i < COUNT(h->policy.signals); i++)
		ev_signal_stop(h->loop, &h->policy.signals[i]);
	ev_timer_stop(h->loop, &h->policy.idle_timer);
}

/* Begins anew, with the options as they are now. */
static inline struct policy *
begin(struct house *h)
{
	free_policy(h);
	policy_init(&h->policy, h->loop, &h->opt, &h->ignored, &events, h);
	return &h->policy;
}

static inline void
get_signal(struct house *h, int sig)
{
	ev_feed_signal_event(h->loop, sig);
	ev_run(h->loop, EVRUN_NOWAIT);
}

static inline void
run_out(struct house *h, ev_timer *timer)
{
	ev_feed_event(h->loop, timer, EV_TIMER);
	ev_run(h->loop, EVRUN_NOWAIT);
}

/* The timer was started for s seconds, less than one of them ago. */
static inline void
assert_runs_for(struct house *h, ev_timer *timer, double s)
{
	double left = ev_timer_remaining(h->loop, timer);

	assert_true(ev_is_active(timer));
	if (left > s + 0.001 || left < s - 1)
		fail_msg("%g s, not %g", left, s);
}

static inline int
setup(void **state)
{
	struct house *h = mq_xcalloc(1, sizeof(*h));

	/* A test that waits for ever fails. */
	alarm(20);
	h->loop = ev_loop_new(EVFLAG_AUTO);
	h->opt = (struct options){.grace_ms = 30000, .idle_ms = -1};
	sigemptyset(&h->ignored);
	policy_init(&h->policy, h->loop, &h->opt, &h->ignored, &events, h);
	*state = h;
	return 0;
}

static inline int
teardown(void **state)
{
	struct house *h = *state;

	free_policy(h);
	ev_loop_destroy(h->loop);
	free(h);
	record_clear();
	return 0;
}

#endif
