#include "policy.h"

#include <sys/wait.h>

#define TEST_OF(fn) TEST_WITH(fn, struct house *h, setup, teardown)

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
