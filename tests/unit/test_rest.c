/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* cmd/mq-consume/executor/rest.c: commands that fail, and how long their slots rest. */
#include "mq-consume/executor/parts.h"
#include "unit.h"

TEST(ten_different_messages_in_a_row_say_that_the_command_is_broken)
{
	struct broken_runs runs = {0};
	char id[3] = "m0";
	int i;

	for (i = 0; i < 9; i++) {
		id[1] = (char)('0' + i);
		assert_false(broken_runs_add(&runs, id, true));
		assert_false(broken_runs_add(&runs, "m0", true));
	}
	assert_false(broken_runs_are_many(&runs));
	assert_true(broken_runs_add(&runs, "last", true));
	assert_false(broken_runs_add(&runs, "more", true));
	assert_true(broken_runs_are_many(&runs));
	assert_false(broken_runs_add(&runs, "more", false));
	assert_false(broken_runs_are_many(&runs));
	assert_false(broken_runs_add(&runs, "m0", true));
}

static void
assert_rest(const struct options *opt, int failures, double low, double high)
{
	double s;
	int i;

	for (i = 0; i < 100; i++) {
		s = rest_s(opt, failures);
		if (s < low || s > high)
			fail_msg("%d: %g s", failures, s);
	}
}

TEST(rests_are_within_their_bounds)
{
	static const struct options opt = {
	    .rest_min_ms = 2000, .rest_max_ms = 10000};

	assert_rest(&opt, 0, 2, 2);
	assert_rest(&opt, 1, 2, 3);
	assert_rest(&opt, 2, 2.25, 4.5);
	assert_rest(&opt, 3, 3.375, 6.75);
	assert_rest(&opt, 4, 5, 10);
	assert_rest(&opt, 1000000, 5, 10);
}

TEST(a_broken_command_rests_without_being_asked_to)
{
	static const struct options opt = {.rest_max_ms = 0};

	assert_rest(&opt, 0, 0.1, 0.1);
	assert_rest(&opt, 100, 15, 30);
}
