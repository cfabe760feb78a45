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

TEST_OF(what_became_of_messages_is_the_status_of_an_end_by_itself)
{
	struct policy *p;

	h->opt.idle_ms = -1;
	p = begin(h);
	policy_settled(p, "a", MQ_OUTCOME_REJECT);
	assert_int_equal(policy_exit(p), 0);
	h->opt.drain = true;
	p = begin(h);
	policy_settled(p, "a", MQ_OUTCOME_FRONT);
	policy_settled(p, "b", MQ_OUTCOME_ACK);
	policy_settled(p, "c", MQ_OUTCOME_AGAIN);
	policy_settled(p, "c", MQ_OUTCOME_AGAIN);
	policy_settled(p, "c", MQ_OUTCOME_PUSH);
	assert_int_equal(policy_exit(p), 0);
	p = begin(h);
	policy_settled(p, "d", MQ_OUTCOME_AGAIN);
	policy_settled(p, "e", MQ_OUTCOME_ACK);
	assert_int_equal(policy_exit(p), 75);
	p = begin(h);
	policy_settled(p, "d", MQ_OUTCOME_AGAIN);
	policy_settled(p, "d", MQ_OUTCOME_REJECT);
	assert_int_equal(policy_exit(p), 1);
	policy_fail(p, 69);
	assert_int_equal(policy_exit(p), 69);
}

TEST_OF(the_program_ends_by_its_signal)
{
	int status;
	pid_t pid;

	get_signal(h, SIGTERM);
	get_signal(h, SIGINT);
	assert_string_equal(recorded(), "asked stop:soon KILL stop:now");
	pid = fork();
	assert_true(pid != -1);
	if (pid == 0)
		_exit(policy_exit(&h->policy));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
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

TEST_OF(a_short_grace_time)
{
	h->opt.grace_ms = 1;
	policy_stop(&h->policy, STOP_SOON, 0, 0);
	while (policy_level(&h->policy) == STOP_SOON)
		ev_run(h->loop, EVRUN_ONCE);
	assert_string_equal(recorded(), "stop:soon TERM stop:now");
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

TEST_OF(an_idle_consumer_ends)
{
	struct policy *p;

	policy_active(&h->policy);
	assert_false(ev_is_active(&h->policy.idle_timer));
	h->opt.idle_ms = 20000;
	h->busy = true;
	p = begin(h);
	assert_runs_for(h, &p->idle_timer, 20);
	run_out(h, &p->idle_timer);
	assert_string_equal(recorded(), "idle");
	assert_runs_for(h, &p->idle_timer, 20);
	h->busy = false;
	run_out(h, &p->idle_timer);
	assert_string_equal(recorded(), "idle stop:soon");
	assert_false(ev_is_active(&p->idle_timer));
	assert_int_equal(policy_exit(p), 0);
}
