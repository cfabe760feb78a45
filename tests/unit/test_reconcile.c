#include "inbox.h"

static void
on_missing(void *arg, struct message *m)
{
	struct fixture *f = arg;

	record("missing:%s:%lu", name_of(m), m->number);
	inbox_forget(&f->inbox, m);
}

/* Of queue a the server holds these, the newest first. */
static void
reconcile(struct fixture *f, long long received, const char *names)
{
	struct elements e = make_elements(names);
	struct mq_held held = {received, e.list, e.n};

	inbox_reconcile(&f->inbox, 0, &held, on_missing, f);
	free_elements(&e);
}

static void
nothing_is_missing(void **state)
{
	struct fixture *f = *state;

	add(f, "a1 b1 a2 a3");
	start_all(f, 1);
	(void)recorded();
	reconcile(f, 0, "a3 a2 a1");
	assert_string_equal(recorded(), "");
	assert_int_equal(inbox_count(&f->inbox, 0), 3);
	assert_true(inbox_in_order(&f->inbox));
}

static void
what_the_server_does_not_hold_is_missing(void **state)
{
	struct fixture *f = *state;

	add(f, "a1 b1 a2 a3 a4 a5");
	find(f, "a2")->in_flight = true;
	find(f, "a3")->lost = true;
	find(f, "a4")->gone = true;
	reconcile(f, 0, "a5");
	assert_string_equal(recorded(), "missing:a1:1");
	assert_int_equal(inbox_count(&f->inbox, 0), 2);
}

static void
an_answer_that_was_lost_is_made_up(void **state)
{
	struct fixture *f = *state;

	reconcile(f, 2, "a2 a1");
	reconcile(f, 4, "a4 a3 a2 a1");
	reconcile(f, 4, "a4 a3 a2 a1");
	assert_int_equal(inbox_held(&f->inbox), 4);
	assert_true(inbox_in_order(&f->inbox));
	start_all(f, 0);
	assert_string_equal(recorded(), "a1 a2 a3 a4");
}

static void
an_answer_that_was_lost_had_an_equal_message(void **state)
{
	struct fixture *f = *state;

	reconcile(f, 1, "a1");
	reconcile(f, 2, "a1");
	assert_string_equal(recorded(), "missing:a1:1");
	assert_int_equal(inbox_count(&f->inbox, 0), 1);
}

static void
what_nobody_claimed_is_out_of_order(void **state)
{
	struct fixture *f = *state;

	reconcile(f, 1, "a1");
	reconcile(f, 1, "a1 a0");
	assert_int_equal(inbox_held(&f->inbox), 2);
	assert_false(inbox_in_order(&f->inbox));
	inbox_forget(&f->inbox, find(f, "a1"));
	assert_false(inbox_in_order(&f->inbox));
	inbox_forget(&f->inbox, find(f, "a0"));
	assert_true(inbox_in_order(&f->inbox));
}

static void
a_new_name_has_received_nothing(void **state)
{
	struct fixture *f = *state;

	reconcile(f, 2, "a2 a1");
	inbox_renamed(&f->inbox);
	reconcile(f, 1, "a3");
	assert_string_equal(recorded(), "missing:a1:1 missing:a2:2");
	assert_true(inbox_in_order(&f->inbox));
	start_all(f, 0);
	assert_string_equal(recorded(), "a3");
}

static void
of_equal_ones_the_newer_is_missing(void **state)
{
	struct fixture *f = *state;

	reconcile(f, 2, "a1 a1");
	reconcile(f, 2, "a1");
	assert_string_equal(recorded(), "missing:a1:2");
}

static void
of_equal_ones_the_settled_is_missing(void **state)
{
	struct fixture *f = *state;

	reconcile(f, 2, "a1 a1");
	find(f, "a1")->sent = 1;
	reconcile(f, 2, "a1");
	assert_string_equal(recorded(), "missing:a1:1");
}

static void
of_equal_ones_the_first_settled_is_missing(void **state)
{
	struct fixture *f = *state;

	reconcile(f, 3, "a1 a1 a1");
	inbox_last(&f->inbox)->sent = 1;
	find(f, "a1")->sent = 2;
	reconcile(f, 3, "a1 a1");
	assert_string_equal(recorded(), "missing:a1:3");
	reconcile(f, 3, "a1");
	assert_string_equal(recorded(), "missing:a1:1");
}

static void
of_several_settled_the_first_is_missing(void **state)
{
	struct fixture *f = *state;

	reconcile(f, 3, "a1 a1 a1");
	find(f, "a1")->sent = 2;
	TAILQ_NEXT(find(f, "a1"), link)->sent = 1;
	reconcile(f, 3, "a1 a1");
	assert_string_equal(recorded(), "missing:a1:2");
}

#define TEST(fn)                                                               \
	cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(nothing_is_missing),
	    TEST(what_the_server_does_not_hold_is_missing),
	    TEST(an_answer_that_was_lost_is_made_up),
	    TEST(an_answer_that_was_lost_had_an_equal_message),
	    TEST(what_nobody_claimed_is_out_of_order),
	    TEST(a_new_name_has_received_nothing),
	    TEST(of_equal_ones_the_newer_is_missing),
	    TEST(of_equal_ones_the_settled_is_missing),
	    TEST(of_equal_ones_the_first_settled_is_missing),
	    TEST(of_several_settled_the_first_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
