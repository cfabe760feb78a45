#include "claims.h"

/* --- what is held ----------------------------------------------------------- */

static void
take_all_newest(struct fixture *f, int queue)
{
	struct message *m;

	while ((m = inbox_take_newest(&f->inbox, queue)) != NULL)
		record("%s", name_of(m));
}

static void
gives_back_the_newest_first(void **state)
{
	struct fixture *f = *state;

	add(f, "b1 a1 b2 a2");
	take_all_newest(f, 1);
	assert_string_equal(recorded(), "b2 b1");
	assert_int_equal(inbox_held(&f->inbox), 2);
	assert_int_equal(inbox_held_of(&f->inbox, 1), 0);
	assert_int_equal(inbox_held_of(&f->inbox, 0), 2);
}

static void
starts_by_the_order_of_queues(void **state)
{
	struct fixture *f = *state;

	add(f, "c1 b1 a1 c2 a2");
	assert_int_equal(inbox_held_bytes(&f->inbox), 10);
	assert_string_equal(name_of(inbox_next(&f->inbox, 2)), "c1");
	start_all(f, -1);
	assert_string_equal(recorded(), "a1 a2 b1 c2");
	assert_false(inbox_has_next(&f->inbox));
	assert_int_equal(inbox_held_bytes(&f->inbox), 0);
}

static void
what_returns_has_its_place(void **state)
{
	struct fixture *f = *state;
	struct message *first, *second;

	add(f, "a1 a2 a3");
	first = inbox_next(&f->inbox, -1);
	second = inbox_next(&f->inbox, -1);
	inbox_return(&f->inbox, first);
	inbox_return(&f->inbox, second);
	add(f, "a4");
	assert_string_equal(name_of(inbox_oldest_of(&f->inbox, 0)), "a1");
	start_all(f, -1);
	assert_string_equal(recorded(), "a1 a2 a3 a4");
}

static void
what_returns_is_given_back_in_order(void **state)
{
	struct fixture *f = *state;
	struct message *first;

	add(f, "a1 b1 a2");
	first = inbox_next(&f->inbox, 0);
	inbox_return(&f->inbox, first);
	take_all_newest(f, 0);
	assert_string_equal(recorded(), "a2 a1");
}

/* --- pauses ----------------------------------------------------------------- */

static void
nothing_starts_from_a_paused_queue(void **state)
{
	struct fixture *f = *state;

	add(f, "a1 b1");
	inbox_pause_seen(&f->inbox, 0, true);
	assert_null(inbox_oldest_of(&f->inbox, 0));
	start_all(f, -1);
	assert_string_equal(recorded(), "paused:a b1");
	assert_false(inbox_has_next(&f->inbox));
	inbox_pause_seen(&f->inbox, 0, false);
	start_all(f, -1);
	assert_string_equal(recorded(), "a1");
}

static void
a_paused_queue_gives_back(void **state)
{
	struct fixture *f = *state;

	add(f, "a1 a2");
	inbox_pause_seen(&f->inbox, 0, true);
	take_all_newest(f, 0);
	assert_string_equal(recorded(), "paused:a a2 a1");
}

static void
pauses_of_our_own_are_counted(void **state)
{
	struct fixture *f = *state;

	add(f, "a1");
	inbox_pausing(&f->inbox, 0, true);
	inbox_pausing(&f->inbox, 0, true);
	inbox_pausing(&f->inbox, 0, false);
	assert_false(inbox_has_next(&f->inbox));
	inbox_pausing(&f->inbox, 0, false);
	assert_true(inbox_has_next(&f->inbox));
}

/* --- messages that may not start -------------------------------------------- */

static void
unfit_messages_are_passed_over(void **state)
{
	struct fixture *f = *state;

	add_with(f, "a1", MQ_HEADER_EXPIRES, "1");
	add(f, "a2 b1");
	add_with(f, "b2", MQ_HEADER_UNTIL_TICK, "6");
	inbox_look(&f->inbox, true);
	inbox_claim(&f->inbox);
	answer(f, "");
	answer_with(f, (struct mq_claimed){.tick = 7, .now_ms = 2});
	(void)recorded();
	start_all(f, -1);
	assert_string_equal(recorded(), "expired:a1 a2 b1 expired:b2");
	assert_int_equal(inbox_held(&f->inbox), 0);
	assert_int_equal(inbox_count(&f->inbox, 0), 2);
}

static void
a_bad_header_is_unfit(void **state)
{
	static const char bad[] = "\xff\0\xbe\xbeJ{no json}\na1";
	struct fixture *f = *state;
	char *element = mq_xmalloc(sizeof(bad) - 1);

	memcpy(element, bad, sizeof(bad) - 1);
	inbox_add(&f->inbox, 0, element, sizeof(bad) - 1);
	add(f, "a2");
	start_all(f, 0);
	assert_string_equal(recorded(), "header:a1 a2");
}

static void
the_last_run_is_charged_to_a_dead_consumer(void **state)
{
	struct fixture *f = *state;

	add_with(f, "a1", MQ_HEADER_ATTEMPT, "1");
	add_with(f, "a2", MQ_HEADER_ATTEMPT, "2");
	add_with(f, "a3", MQ_HEADER_ATTEMPT, "5");
	start_all(f, -1);
	assert_string_equal(
	    recorded(), "careful a1 careful alone a2 careful alone crashed:a3");
}

static void
runs_are_not_charged_where_claims_are_not_counted(void **state)
{
	struct fixture *f = *state;

	f->layout.has = 0;
	add_with(f, "a1", MQ_HEADER_ATTEMPT, "5");
	start_all(f, -1);
	assert_string_equal(recorded(), "careful a1");
}

/* --- claims ----------------------------------------------------------------- */

static void
a_later_queue_is_asked_when_the_earlier_have_no_more(void **state)
{
	struct fixture *f = *state;

	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:a:10");
	answer(f, "a1 a2 a3");
	assert_string_equal(recorded(), "arrived claim:b:7");
	answer(f, "b1 b2 b3 b4 b5 b6 b7");
	assert_string_equal(recorded(), "arrived");
	assert_false(inbox_expects(&f->inbox, 1));
	start_all(f, 1);
	(void)recorded();
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:b:7");
	answer(f, "");
	assert_string_equal(recorded(), "claim:c:7");
	assert_false(inbox_drained(&f->inbox));
	answer(f, "");
	assert_string_equal(recorded(), "");
	assert_true(inbox_drained(&f->inbox));
}

static void
a_queue_that_had_all_that_was_wanted_is_asked_again(void **state)
{
	struct fixture *f = *state;

	f->room = 2;
	inbox_claim(&f->inbox);
	arrive(f, "a1 a2");
	start_all(f, -1);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:a:2 arrived a1 a2 claim:a:2");
}

static void
a_look_claims_nothing(void **state)
{
	struct fixture *f = *state;

	add(f, "b1");
	f->room = 1;
	inbox_look(&f->inbox, false);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:b:0");
	answer_with(f, (struct mq_claimed){.paused = true, .due_ms = 9});
	assert_string_equal(recorded(), "paused:b");
	assert_false(inbox_has_next(&f->inbox));
	assert_false(inbox_drained(&f->inbox));
}

static void
a_refused_claim_is_repeated(void **state)
{
	struct fixture *f = *state;
	const struct mq_answer no = {.error = "no", .status = 1};

	inbox_claim(&f->inbox);
	claimed_fn(&f->inbox, &no, NULL);
	inbox_claim(&f->inbox);
	answer(f, "a1");
	assert_string_equal(recorded(),
	    "claim:a:10 first-refused:no claim:a:10 arrived claim:b:9");
	answer(f, "");
	inbox_look(&f->inbox, true);
	answer(f, "");
	claimed_fn(&f->inbox, &no, NULL);
	assert_string_equal(recorded(), "claim:c:9 claim:a:9 refused:no");
}

static void
a_claim_without_an_answer_brings_nothing(void **state)
{
	struct fixture *f = *state;

	inbox_claim(&f->inbox);
	claimed_fn(&f->inbox, NULL, NULL);
	assert_string_equal(recorded(), "claim:a:10");
	assert_false(inbox_is_claiming(&f->inbox));
	inbox_look(&f->inbox, true);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:a:10");
}

static void
claims_tell_of_a_lost_lease_and_of_nonsense(void **state)
{
	struct fixture *f = *state;

	inbox_claim(&f->inbox);
	answer_with(f, (struct mq_claimed){.n = MQ_CLAIM_LOST});
	inbox_claim(&f->inbox);
	answer_with(f, (struct mq_claimed){.n = MQ_CLAIM_BAD});
	assert_string_equal(recorded(), "claim:a:10 lost claim:b:10 nonsense");
}

#define TEST(fn)                                                               \
	cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(gives_back_the_newest_first),
	    TEST(starts_by_the_order_of_queues),
	    TEST(what_returns_has_its_place),
	    TEST(what_returns_is_given_back_in_order),
	    TEST(nothing_starts_from_a_paused_queue),
	    TEST(a_paused_queue_gives_back),
	    TEST(pauses_of_our_own_are_counted),
	    TEST(unfit_messages_are_passed_over),
	    TEST(a_bad_header_is_unfit),
	    TEST(the_last_run_is_charged_to_a_dead_consumer),
	    TEST(runs_are_not_charged_where_claims_are_not_counted),
	    TEST(a_later_queue_is_asked_when_the_earlier_have_no_more),
	    TEST(a_queue_that_had_all_that_was_wanted_is_asked_again),
	    TEST(a_look_claims_nothing),
	    TEST(a_refused_claim_is_repeated),
	    TEST(a_claim_without_an_answer_brings_nothing),
	    TEST(claims_tell_of_a_lost_lease_and_of_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
