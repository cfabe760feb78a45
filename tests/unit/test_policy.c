/*
 * When messages are started and the consumer stops: a policy, with an engine that
 * records what it is to do.
 */
#include <unistd.h>

#include "mq-consume/policy.h"
#include "record.h"

struct house {
	struct ev_loop *loop;
	struct options opt;
	sigset_t ignored;
	struct policy policy;
	bool runs; /* some command does */
	int wakes;
};

/* --- the engine --- */

/* Writes down what the policy tells. */
static void
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

static bool
on_kill(void *arg, int sig)
{
	record(sig == SIGTERM ? "TERM" : "KILL");
	return ((struct house *)arg)->runs;
}

static const struct policy_events events = {.hear = on_fact, .kill = on_kill};

static void
free_policy(struct house *h)
{
	size_t i;

	/* No other loop may have these signals until then. */
	for (i = 0; i < COUNT(h->policy.signals); i++)
		ev_signal_stop(h->loop, &h->policy.signals[i]);
}

/* Begins anew, with the options as they are now. */
static struct policy *
begin(struct house *h)
{
	free_policy(h);
	policy_init(&h->policy, h->loop, &h->opt, &h->ignored, &events, h);
	return &h->policy;
}

static void
get_signal(struct house *h, int sig)
{
	ev_feed_signal_event(h->loop, sig);
	ev_run(h->loop, EVRUN_NOWAIT);
}

static void
run_out(struct house *h, ev_timer *timer)
{
	ev_feed_event(h->loop, timer, EV_TIMER);
	ev_run(h->loop, EVRUN_NOWAIT);
}

/* The timer was started for s seconds, less than one of them ago. */
static void
assert_runs_for(struct house *h, ev_timer *timer, double s)
{
	double left = ev_timer_remaining(h->loop, timer);

	assert_true(ev_is_active(timer));
	if (left > s + 0.001 || left < s - 1)
		fail_msg("%g s, not %g", left, s);
}

static int
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

static int
teardown(void **state)
{
	struct house *h = *state;

	free_policy(h);
	ev_loop_destroy(h->loop);
	free(h);
	record_clear();
	return 0;
}

#define TEST_OF(fn) TEST_WITH(fn, struct house *h, setup, teardown)

/* --- stopping --------------------------------------------------------------- */

TEST_OF(levels_only_rise)
{
	struct policy *p = &h->policy;

	policy_stop(p, STOP_FETCHING, 0, 0);
	policy_stop(p, STOP_FETCHING, 0, 0);
	policy_stop(p, STOP_SOON, 0, 0);
	policy_stop(p, STOP_FETCHING, 0, 0);
	assert_int_equal(policy_level(p), STOP_SOON);
	policy_stop(p, STOP_NOW, 0, 0);
	policy_stop(p, STOP_SOON, 0, 0);
	assert_int_equal(policy_level(p), STOP_NOW);
	assert_string_equal(
	    recorded(), "stop:fetching stop:soon KILL stop:now");
}

TEST_OF(the_first_status_counts)
{
	struct policy *p = &h->policy;

	policy_stop(p, STOP_FETCHING, 0, 0);
	policy_stop(p, STOP_SOON, 75, 0);
	policy_stop(p, STOP_NOW, 70, SIGTERM);
	assert_int_equal(policy_exit(p), 75);
	policy_fail(p, 69);
	assert_int_equal(policy_exit(p), 69);
}

TEST_OF(a_level_that_is_reached_has_no_status)
{
	struct policy *p = &h->policy;

	policy_stop(p, STOP_SOON, 0, 0);
	policy_stop(p, STOP_SOON, 75, 0);
	assert_int_equal(policy_exit(p), 0);
}

TEST_OF(signals_raise_the_level)
{
	get_signal(h, SIGUSR1);
	assert_string_equal(recorded(), "stop:fetching");
	get_signal(h, SIGINT);
	assert_string_equal(recorded(), "asked stop:soon");
	get_signal(h, SIGTERM);
	get_signal(h, SIGUSR1);
	assert_string_equal(recorded(), "");
	get_signal(h, SIGINT);
	assert_string_equal(recorded(), "KILL stop:now");
	get_signal(h, SIGINT);
	assert_string_equal(recorded(), "");
}

TEST_OF(a_hangup_ends_or_opens_logs)
{
	h->opt.log_dir = "/logs";
	get_signal(h, SIGHUP);
	assert_string_equal(recorded(), "logs");
	h->opt.log_dir = NULL;
	get_signal(h, SIGHUP);
	assert_string_equal(recorded(), "asked stop:soon");
	sigaddset(&h->ignored, SIGHUP);
	begin(h);
	get_signal(h, SIGHUP);
	assert_string_equal(recorded(), "logs");
}

TEST_OF(the_grace_time_goes_from_term_to_giving_up)
{
	struct policy *p = &h->policy;

	h->runs = true;
	policy_stop(p, STOP_SOON, 0, 0);
	assert_string_equal(recorded(), "stop:soon");
	assert_runs_for(h, &p->grace_timer, 30);
	run_out(h, &p->grace_timer);
	assert_string_equal(recorded(), "TERM stop:now");
	assert_false(policy_killed(p));
	assert_runs_for(h, &p->grace_timer, 5);
	run_out(h, &p->grace_timer);
	assert_string_equal(recorded(), "KILL");
	assert_true(policy_killed(p));
	assert_runs_for(h, &p->grace_timer, 5);
	run_out(h, &p->grace_timer);
	assert_string_equal(recorded(), "give-up");
}

TEST_OF(nothing_that_runs_is_given_up_earlier)
{
	struct policy *p = &h->policy;

	policy_stop(p, STOP_SOON, 0, 0);
	run_out(h, &p->grace_timer);
	run_out(h, &p->grace_timer);
	assert_string_equal(recorded(), "stop:soon TERM stop:now KILL give-up");
}

TEST_OF(what_is_killed_at_once_is_given_up_next)
{
	struct policy *p = &h->policy;

	h->runs = true;
	policy_stop(p, STOP_NOW, 0, 0);
	assert_true(policy_killed(p));
	assert_runs_for(h, &p->grace_timer, 5);
	run_out(h, &p->grace_timer);
	assert_string_equal(recorded(), "KILL stop:now give-up");
}

/* --- starting --------------------------------------------------------------- */

TEST_OF(the_limit)
{
	struct policy *p;

	h->opt.limit = 5;
	p = begin(h);
	assert_int_equal(policy_room(p, 3, 0, 0, 0), 3);
	assert_int_equal(policy_room(p, 9, 0, 0, 0), 5);
	policy_started(p);
	policy_started(p);
	assert_int_equal(policy_room(p, 9, 1, 0, 0), 2);
	assert_int_equal(policy_room(p, 3, 1, 0, 0), 2);
	assert_false(policy_limit_reached(p, 2));
	assert_true(policy_limit_reached(p, 3));
	assert_int_equal(policy_room(p, 9, 4, 0, 0), -1);
	policy_unstarted(p);
	assert_false(policy_limit_reached(p, 3));
	assert_int_equal(policy_room(p, 9, 3, 0, 0), 1);
}

TEST_OF(the_rate)
{
	struct policy *p;

	h->opt.rate = (struct mq_rate){1.0 / 3600, 3};
	p = begin(h);
	assert_int_equal(policy_room(p, 9, 0, 0, 0), 3);
	assert_int_equal(policy_room(p, 9, 2, 0, 0), 1);
	assert_int_equal(policy_room(p, 2, 0, 0, 0), 2);
	policy_started(p);
	policy_started(p);
	assert_true(policy_may_start(p));
	assert_false(ev_is_active(&p->rate_timer));
	policy_started(p);
	assert_false(policy_may_start(p));
	assert_int_equal(policy_room(p, 9, 0, 0, 0), 0);
	assert_runs_for(h, &p->rate_timer, 3600);
	assert_int_equal(h->wakes, 0);
}

TEST_OF(a_token_wakes)
{
	struct policy *p;

	h->opt.rate = (struct mq_rate){500, 1};
	p = begin(h);
	policy_started(p);
	assert_true(ev_is_active(&p->rate_timer));
	while (h->wakes == 0)
		ev_run(h->loop, EVRUN_ONCE);
	assert_true(policy_may_start(p));
}

TEST_OF(a_batch_is_claimed_whole)
{
	struct policy *p;

	h->opt.rate = (struct mq_rate){1.0 / 3600, 1};
	p = begin(h);
	assert_int_equal(policy_room(p, 99, 0, 0, 8), 8);
	assert_int_equal(policy_room(p, 99, 3, 3, 8), 5);
	policy_started(p);
	assert_int_equal(policy_room(p, 99, 3, 3, 8), 0);
}

TEST_OF(prefetch_may_wait_for_the_rate)
{
	char *command[] = {NULL};
	struct policy *p;

	h->opt.rate = (struct mq_rate){1.0 / 3600, 1};
	h->opt.command = command;
	h->opt.prefetch = 4;
	p = begin(h);
	assert_int_equal(policy_room(p, 5, 0, 0, 0), 5);
	h->opt.prefetch = -1;
	assert_int_equal(policy_room(p, 5, 0, 0, 0), 1);
	h->opt.prefetch = 4;
	h->opt.command = NULL;
	assert_int_equal(policy_room(p, 5, 0, 0, 0), 1);
}

/* --- caution ---------------------------------------------------------------- */

TEST_OF(caution)
{
	struct policy *p = &h->policy;

	assert_false(policy_is_careful(p) || policy_is_alone(p));
	policy_be_careful(p, false);
	assert_true(policy_is_careful(p));
	assert_false(policy_is_alone(p));
	p->careful_until -= 60;
	assert_false(policy_is_careful(p));
	policy_be_careful(p, true);
	assert_true(policy_is_alone(p));
	assert_false(policy_is_careful(p));
	p->alone_until -= 60;
	assert_false(policy_is_alone(p));
}

TEST_OF(ten_different_messages_in_a_row_say_that_the_command_is_broken)
{
	struct policy *p = &h->policy;
	char id[3] = "m0";
	int i;

	for (i = 0; i < 9; i++) {
		id[1] = (char)('0' + i);
		assert_false(policy_ran(p, id, true));
		assert_false(policy_ran(p, "m0", true));
	}
	assert_false(policy_is_broken(p));
	assert_true(policy_ran(p, "last", true));
	assert_false(policy_ran(p, "more", true));
	assert_true(policy_is_broken(p));
	assert_in_range(policy_rest_s(p, 100), 15, 30);
	assert_false(policy_ran(p, "more", false));
	assert_false(policy_is_broken(p));
	assert_false(policy_ran(p, "m0", true));
}

TEST_OF(rests_are_within_their_bounds)
{
	static const struct {
		int failures;
		double low, high;
	} cases[] = {{0, 2, 2}, {1, 2, 3}, {2, 2.25, 4.5}, {3, 3.375, 6.75},
	    {4, 5, 10}, {1000000, 5, 10}};
	double s;
	size_t i, n;

	h->opt.rest_min_ms = 2000;
	h->opt.rest_max_ms = 10000;
	for (i = 0; i < COUNT(cases); i++)
		for (n = 0; n < 100; n++) {
			s = policy_rest_s(&h->policy, cases[i].failures);
			if (s < cases[i].low || s > cases[i].high)
				fail_msg("%d: %g s", cases[i].failures, s);
		}
}
