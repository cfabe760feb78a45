#include "policy.h"

#define TEST_OF(fn) TEST_WITH(fn, struct house *h, setup, teardown)

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
