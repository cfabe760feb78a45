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

/* Writes down what the policy tells. */
static inline void
on_fact(void *arg, const struct fact *f)
{
	static const char *const levels[] = {"not", "fetching", "soon", "now"};
	struct house *h = arg;

	switch (f->kind) {
	case FACT_WAKE:
		h->wakes++;
		break;
	case FACT_ASKED:
		record("asked");
		break;
	case FACT_STOP:
		record("stop:%s", levels[policy_level(&h->policy)]);
		break;
	case FACT_GIVE_UP:
		record("give-up");
		break;
	case FACT_REOPEN_LOGS:
		record("logs");
		break;
	default:
		break;
	}
}

static inline bool
on_kill(void *arg, int sig)
{
	record(sig == SIGTERM ? "TERM" : "KILL");
	return ((struct house *)arg)->runs;
}

static inline bool
on_idle(void *arg)
{
	record("idle");
	return !((struct house *)arg)->busy;
}

static const struct policy_events events = {
    .hear = on_fact, .kill = on_kill, .idle = on_idle};

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
