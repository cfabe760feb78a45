#include "claims.h"

#define TEST_OF(fn)                                                            \
	TEST_WITH(fn, struct fixture *f, fixture_setup, fixture_teardown)

/* --- what is held ----------------------------------------------------------- */

static void
take_all_newest(struct fixture *f, int queue)
{
	struct message *m;

	while ((m = inbox_take_newest(&f->inbox, queue)) != NULL)
		record("%s", name_of(m));
}

TEST_OF(gives_back_the_newest_first)
{
	add(f, "b1 a1 b2 a2");
	take_all_newest(f, 1);
	assert_string_equal(recorded(), "b2 b1");
	assert_int_equal(inbox_held(&f->inbox), 2);
	assert_int_equal(inbox_held_of(&f->inbox, 1), 0);
	assert_int_equal(inbox_held_of(&f->inbox, 0), 2);
}

TEST_OF(starts_by_the_order_of_queues)
{
	add(f, "c1 b1 a1 c2 a2");
	assert_int_equal(inbox_held_bytes(&f->inbox), 10);
	assert_string_equal(name_of(inbox_next(&f->inbox, 2)), "c1");
	start_all(f, -1);
	assert_string_equal(recorded(), "a1 a2 b1 c2");
	assert_false(inbox_has_next(&f->inbox));
	assert_int_equal(inbox_held_bytes(&f->inbox), 0);
}

TEST_OF(what_returns_has_its_place)
{
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

TEST_OF(what_returns_is_given_back_in_order)
{
	struct message *first;

	add(f, "a1 b1 a2");
	first = inbox_next(&f->inbox, 0);
	inbox_return(&f->inbox, first);
	take_all_newest(f, 0);
	assert_string_equal(recorded(), "a2 a1");
}

/* --- pauses ----------------------------------------------------------------- */

TEST_OF(nothing_starts_from_a_paused_queue)
{
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

TEST_OF(a_paused_queue_gives_back)
{
	add(f, "a1 a2");
	inbox_pause_seen(&f->inbox, 0, true);
	take_all_newest(f, 0);
	assert_string_equal(recorded(), "paused:a a2 a1");
}

TEST_OF(pauses_of_our_own_are_counted)
{
	add(f, "a1");
	inbox_pausing(&f->inbox, 0, true);
	inbox_pausing(&f->inbox, 0, true);
	inbox_pausing(&f->inbox, 0, false);
	assert_false(inbox_has_next(&f->inbox));
	inbox_pausing(&f->inbox, 0, false);
	assert_true(inbox_has_next(&f->inbox));
}

/* --- messages that may not start -------------------------------------------- */

TEST_OF(unfit_messages_are_passed_over)
{
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
	assert_int_equal(inbox_tick(&f->inbox, 0), 0);
	assert_int_equal(inbox_tick(&f->inbox, 1), 7);
	assert_int_equal(inbox_held(&f->inbox), 0);
	assert_int_equal(inbox_count(&f->inbox, 0), 2);
}

TEST_OF(a_bad_header_is_unfit)
{
	static const char bad[] = "\xff\0\xbe\xbeJ{no json}\na1";
	char *element = mq_xmalloc(sizeof(bad) - 1);

	memcpy(element, bad, sizeof(bad) - 1);
	inbox_add(&f->inbox, 0, element, sizeof(bad) - 1);
	add(f, "a2");
	start_all(f, 0);
	assert_string_equal(recorded(), "header:a1 a2");
	assert_non_null(strstr(f->why, "JSON"));
}

TEST_OF(the_last_run_is_charged_to_a_dead_consumer)
{
	add_with(f, "a1", MQ_HEADER_ATTEMPT, "1");
	add_with(f, "a2", MQ_HEADER_ATTEMPT, "2");
	add_with(f, "a3", MQ_HEADER_ATTEMPT, "5");
	start_all(f, -1);
	assert_string_equal(
	    recorded(), "careful a1 careful alone a2 careful alone crashed:a3");
}

TEST_OF(runs_are_not_charged_where_claims_are_not_counted)
{
	f->layout.has = 0;
	add_with(f, "a1", MQ_HEADER_ATTEMPT, "5");
	start_all(f, -1);
	assert_string_equal(recorded(), "careful a1");
}

/* --- claims ----------------------------------------------------------------- */

TEST_OF(a_later_queue_is_asked_when_the_earlier_have_no_more)
{
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

TEST_OF(a_queue_that_had_all_that_was_wanted_is_asked_again)
{
	f->room = 2;
	inbox_claim(&f->inbox);
	arrive(f, "a1 a2");
	start_all(f, -1);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:a:2 arrived a1 a2 claim:a:2");
}

TEST_OF(a_look_claims_nothing)
{
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

TEST_OF(a_refused_claim_is_repeated)
{
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

TEST_OF(a_claim_without_an_answer_brings_nothing)
{
	inbox_claim(&f->inbox);
	claimed_fn(&f->inbox, NULL, NULL);
	assert_string_equal(recorded(), "claim:a:10");
	assert_false(inbox_is_claiming(&f->inbox));
	inbox_look(&f->inbox, true);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:a:10");
}

TEST_OF(claims_tell_of_a_lost_lease_and_of_nonsense)
{
	inbox_claim(&f->inbox);
	answer_with(f, (struct mq_claimed){.n = MQ_CLAIM_LOST});
	inbox_claim(&f->inbox);
	answer_with(f, (struct mq_claimed){.n = MQ_CLAIM_BAD});
	assert_string_equal(recorded(), "claim:a:10 lost claim:b:10 nonsense");
}

TEST_OF(attachments_need_a_command_for_each_message)
{
	char *command[] = {f->why, NULL};

	/* Nobody looks into them here. */
	f->layout.attachments = (const void *)f;
	f->opt.command = command;
	add_with(f, "a1", MQ_HEADER_ATTACH, "x");
	start_all(f, 0);
	assert_string_equal(recorded(), "a1");
	f->opt.stream = true;
	add_with(f, "a2", MQ_HEADER_ATTACH, "x");
	start_all(f, 0);
	f->opt.stream = false;
	f->opt.batch = 1;
	add_with(f, "a3", MQ_HEADER_ATTACH, "x");
	start_all(f, 0);
	f->opt.batch = 0;
	f->opt.command = NULL;
	add_with(f, "a4", MQ_HEADER_ATTACH, "x");
	start_all(f, 0);
	f->opt.command = command;
	f->layout.attachments = NULL;
	add_with(f, "a5", MQ_HEADER_ATTACH, "x");
	start_all(f, 0);
	assert_string_equal(recorded(), "files:a2 files:a3 files:a4 files:a5");
}

TEST_OF(a_queue_is_expected_to_have_more_behind_those_that_have_none)
{
	assert_true(inbox_expects(&f->inbox, 0));
	assert_false(inbox_expects(&f->inbox, 1));
	f->inbox.queues[0].more = false;
	assert_false(inbox_expects(&f->inbox, 0));
	assert_true(inbox_expects(&f->inbox, 1));
	assert_false(inbox_expects(&f->inbox, 2));
	f->room = 0;
	assert_false(inbox_expects(&f->inbox, 1));
}

TEST_OF(whether_somebody_waits_for_its_result)
{
	static const char id[] = "0123456789abcdef0123456789abcdef";
	struct mq_envelope e = {.payload = "a1", .payload_len = 2};
	struct mq_buf element = {0};
	struct message *waits, *not ;

	mq_envelope_set(&e, MQ_HEADER_ID, id);
	mq_envelope_set(&e, MQ_HEADER_REPLY_TO, id);
	mq_envelope_write(&e, &element);
	mq_envelope_free(&e);
	waits = inbox_add(&f->inbox, 0, element.data, element.len);
	not = add_with(f, "a2", MQ_HEADER_REPLY_TO, id);
	start_all(f, 0);
	assert_string_equal(recorded(), "a1 a2");
	assert_true(waits->awaited);
	assert_false(not ->awaited);
}

TEST_OF(a_claim_of_many_bytes_has_left_others)
{
	size_t len = (size_t)1 << 20;
	struct mq_element one = {mq_xcalloc(1, len), len};

	inbox_claim(&f->inbox);
	assert_true(inbox_is_claiming(&f->inbox));
	answer_with(
	    f, (struct mq_claimed){.elements = &one, .n = 1, .due_ms = -1});
	assert_true(f->inbox.queues[0].more);
	assert_false(inbox_is_claiming(&f->inbox));
	inbox_claim(&f->inbox);
	answer(f, "b1");
	assert_false(f->inbox.queues[1].more);
}
