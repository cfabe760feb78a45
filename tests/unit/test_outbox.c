#include "outbox.h"

#define TEST_OF(fn) TEST_WITH(fn, struct house *h, house_setup, house_teardown)

/* --- acks that go together -------------------------------------------------- */

TEST_OF(acks_wait_for_others)
{
	run(h, "a1 a2 a3");
	settle(h, "a2 a1 a3", MQ_OUTCOME_ACK);
	assert_string_equal(recorded(), "");
	assert_true(outbox_waits(&h->outbox));
	assert_int_equal(outbox_settling(&h->outbox), 3);
	outbox_flush(&h->outbox);
	assert_string_equal(recorded(), "ack:a2 ack:a1 ack:a3");
	assert_false(outbox_waits(&h->outbox));
	answer(MQ_SETTLED);
	assert_string_equal(recorded(), "done:a2");
	assert_int_equal(outbox_settling(&h->outbox), 2);
	assert_int_equal(outbox_moves(&h->outbox), 1);
}

TEST_OF(acks_wait_a_little)
{
	run(h, "a1");
	settle(h, "a1", MQ_OUTCOME_ACK);
	assert_string_equal(recorded(), "");
	ev_run(h->f.loop, EVRUN_ONCE);
	assert_string_equal(recorded(), "ack:a1");
}

/* Somebody may wait for a key or a group. */
TEST_OF(what_holds_waits_less)
{
	run(h, "a1 a2");
	mq_envelope_set(&find(&h->f, "a2")->envelope, MQ_HEADER_GROUP, "g");
	settle(h, "a1", MQ_OUTCOME_ACK);
	assert_true(ev_timer_remaining(h->f.loop, &h->outbox.timer) > 0.04);
	settle(h, "a2", MQ_OUTCOME_ACK);
	assert_true(ev_timer_remaining(h->f.loop, &h->outbox.timer) < 0.021);
}

TEST_OF(the_oldest_go_together)
{
	run(h, "a1 a2 a3 a4 a5");
	settle(h, "a4 a2 a1 a3", MQ_OUTCOME_ACK);
	outbox_flush(&h->outbox);
	assert_string_equal(recorded(), "oldest:a( a1 a2 a3 a4 )");
	answer(MQ_SETTLED);
	assert_string_equal(recorded(), "done:a1 done:a2 done:a3 done:a4");
}

TEST_OF(enough_go_at_once)
{
	char name[8];
	int i;

	for (i = 0; i < 65; i++) {
		assert_int_equal(outbox_waits(&h->outbox), i > 0);
		snprintf(name, sizeof(name), "%c%d", i < 60 ? 'a' : 'b', i);
		run(h, name);
		settle(h, name, MQ_OUTCOME_ACK);
	}
	assert_non_null(
	    strstr(recorded(), " a59 ) oldest:b( b60 b61 b62 b63 b64 )"));
	assert_false(outbox_waits(&h->outbox));
}

/* In fork mode, a killed consumer repeats no more than twice its slots. */
TEST_OF(as_many_wait_as_there_are_slots)
{
	h->f.opt.given.slots = 2;
	rules_free(&h->f.opt);
	rules_init(&h->f.opt);
	run(h, "a1 a2 a3");
	settle(h, "a1 a2", MQ_OUTCOME_ACK);
	assert_string_equal(recorded(), "");
	settle(h, "a3", MQ_OUTCOME_ACK);
	assert_string_equal(recorded(), "ack:a1 ack:a2 ack:a3");
}

TEST_OF(others_may_be_between)
{
	run(h, "a1 a2 a3 a4 a5 a6 a7 b1 b2 b3 b4 b5 b6 b7");
	settle(h, "a2 a3 a6 a5 b1 b2 b3 b4 b6 b7", MQ_OUTCOME_ACK);
	outbox_flush(&h->outbox);
	assert_string_equal(recorded(),
	    "oldest:a( a2@2 a3@3 a5@5 a6@6 ) oldest:b( b1 b2 b3 b4 b6@6 b7@7 )");
}

TEST_OF(equal_ones_are_no_part_of_it)
{
	run(h, "a1 a2 a3 a4 a5 a6 a7 a3");
	settle(h, "a1 a2 a3 a4 a5", MQ_OUTCOME_ACK);
	outbox_flush(&h->outbox);
	assert_string_equal(recorded(), "oldest:a( a1 a2 a4@4 a5@5 ) ack:a3");
	assert_false(inbox_in_order(&h->f.inbox, 0));
	assert_true(inbox_in_order(&h->f.inbox, 1));
}

TEST_OF(what_the_server_has_lost_has_no_place)
{
	run(h, "a1 a2 a3 a4 a5 a6 a7 a8");
	settle(h, "a3", MQ_OUTCOME_REJECT);
	find(&h->f, "a1")->lost = true;
	find(&h->f, "a5")->gone = true;
	settle(h, "a4 a6 a7 a8", MQ_OUTCOME_ACK);
	outbox_flush(&h->outbox);
	assert_string_equal(
	    recorded(), "reject:a3 oldest:a( a4@2 a6@3 a7@4 a8@5 )");
	assert_string_equal(h->oldest, "a2");
}

/* Others, which would be costly now, wait until those between them have ended. */
TEST_OF(many_wait_for_those_between)
{
	h->outbox.enough = 6;
	h->outbox.most = 100;
	run(h, "a1 a2 a3 a4 a5 a6 a7 a8 a9 b1 b2 b3 b4 b5");
	settle(h, "a2 a3 a4 a5", MQ_OUTCOME_ACK);
	outbox_flush_enough(&h->outbox);
	settle(h, "a9 b5", MQ_OUTCOME_ACK);
	assert_string_equal(recorded(), "");
	outbox_flush_enough(&h->outbox);
	assert_string_equal(recorded(), "oldest:a( a2@2 a3@3 a4@4 a5@5 )");
	assert_true(outbox_waits(&h->outbox));
	settle(h, "b1 b2 b3", MQ_OUTCOME_ACK);
	outbox_flush_enough(&h->outbox);
	assert_string_equal(recorded(), "");
	ev_run(h->f.loop, EVRUN_ONCE);
	assert_string_equal(recorded(), "oldest:b( b1 b2 b3 b5@5 ) ack:a9");
}

/* Not if nothing can be sent cheaply, and not if one may hold a key. */
TEST_OF(many_do_not_wait_in_vain)
{
	h->outbox.enough = 4;
	h->outbox.most = 100;
	run(h, "a1 a2 a3 a4 a5 a6 a7 a8");
	settle(h, "a2 a4 a6 a8", MQ_OUTCOME_ACK);
	outbox_flush_enough(&h->outbox);
	assert_string_equal(recorded(), "oldest:a( a2@2 a4@4 a6@6 a8@8 )");
	add_with(&h->f, "b1", MQ_HEADER_KEY, "k");
	run(h, "b2 b3 b4 b5 b6");
	settle(h, "b1 b2 b3 b4 b6", MQ_OUTCOME_ACK);
	outbox_flush_enough(&h->outbox);
	assert_string_equal(recorded(), "oldest:b:holds( b1 b2 b3 b4 b6@6 )");
}

TEST_OF(what_is_sent_before_is_older)
{
	run(h, "a1 a2 a3 a4 a5");
	settle(h, "a1", MQ_OUTCOME_REJECT);
	settle(h, "a2 a3 a4 a5", MQ_OUTCOME_ACK);
	outbox_flush(&h->outbox);
	assert_string_equal(recorded(), "reject:a1 oldest:a( a2 a3 a4 a5 )");
}

TEST_OF(acks_out_of_order_go_alone)
{
	run(h, "a1 a2 a3 a4");
	inbox_disorder(&h->f.inbox, 0);
	settle(h, "a1 a2 a3 a4", MQ_OUTCOME_ACK);
	outbox_flush(&h->outbox);
	assert_string_equal(recorded(), "ack:a1 ack:a2 ack:a3 ack:a4");
}

TEST_OF(keys_are_a_batch_of_their_own)
{
	add_with(&h->f, "a1", MQ_HEADER_KEY, "k");
	run(h, "a2 a3 a4 a5");
	settle(h, "a1 a2 a3 a4", MQ_OUTCOME_ACK);
	assert_true(outbox_holds(&h->outbox));
	outbox_flush(&h->outbox);
	assert_false(outbox_holds(&h->outbox));
	assert_string_equal(recorded(), "oldest:a:holds( a1 a2 a3 a4 )");
}

TEST_OF(an_awaited_one_goes_at_once_and_alone)
{
	run(h, "a1 a2 a3 a4");
	find(&h->f, "a4")->awaited = true;
	settle(h, "a1 a2 a3", MQ_OUTCOME_ACK);
	assert_string_equal(recorded(), "");
	settle(h, "a4", MQ_OUTCOME_ACK);
	assert_string_equal(recorded(), "ack:a1 ack:a2 ack:a3 ack:a4:result");
}

/* --- equal ones ---------------------------------------------------------------- */

TEST_OF(of_equal_ones_one_settlement_is_under_way)
{
	run(h, "a1 a1 a1 a1 b1");
	outbox_settle(&h->outbox, nth(h, "a1", 1), MQ_OUTCOME_REJECT);
	outbox_flush_enough(&h->outbox);
	assert_string_equal(recorded(), "reject:a1");
	outbox_settle(&h->outbox, nth(h, "a1", 2), MQ_OUTCOME_ACK);
	outbox_settle(&h->outbox, nth(h, "a1", 3), MQ_OUTCOME_AGAIN);
	outbox_flush(&h->outbox);
	settle(h, "b1", MQ_OUTCOME_REJECT);
	assert_string_equal(recorded(), "reject:b1");
	assert_false(outbox_refused(&h->outbox));
	answer(MQ_SETTLED);
	outbox_flush_enough(&h->outbox);
	assert_string_equal(recorded(), "done:a1 equal:a( again:a1 ack:a1 )");
	answer(MQ_SETTLED);
	answer(MQ_SETTLED);
	assert_string_equal(recorded(), "done:b1 done:a1 done:a1");
	assert_int_equal(outbox_settling(&h->outbox), 0);
}

TEST_OF(equal_ones_that_are_not_there_go_one_by_one)
{
	run(h, "a1 a1");
	settle(h, "a1", MQ_OUTCOME_REJECT);
	outbox_settle(&h->outbox, nth(h, "a1", 2), MQ_OUTCOME_REJECT);
	outbox_flush(&h->outbox);
	answer(MQ_SETTLED_LOST);
	outbox_flush_enough(&h->outbox);
	assert_string_equal(
	    recorded(), "equal:a( reject:a1 reject:a1 ) reject:a1");
	answer(MQ_SETTLED);
	outbox_flush_enough(&h->outbox);
	answer(MQ_SETTLED_LOST);
	assert_string_equal(recorded(), "done:a1 reject:a1 over:a1");
}

TEST_OF(what_asks_for_more_goes_alone)
{
	run(h, "a1 a1 a1");
	nth(h, "a1", 2)->pause_ms = 5000;
	nth(h, "a1", 3)->to = mq_xstrdup("b");
	settle(h, "a1", MQ_OUTCOME_REJECT);
	outbox_settle(&h->outbox, nth(h, "a1", 2), MQ_OUTCOME_AGAIN);
	outbox_settle(&h->outbox, nth(h, "a1", 3), MQ_OUTCOME_PUSH);
	outbox_flush_enough(&h->outbox);
	assert_string_equal(recorded(), "reject:a1");
	answer(MQ_SETTLED);
	outbox_flush_enough(&h->outbox);
	assert_string_equal(
	    recorded(), "done:a1 pausing:a pause:a:5000 again:a1");
	h->paused_fn(h->paused_arg, NULL);
	answer(MQ_SETTLED);
	outbox_flush_enough(&h->outbox);
	assert_string_equal(recorded(), "answered:a done:a1 push:a1");
}

/* As comparison.c. */
static void
on_missing(void *arg, struct message *m)
{
	struct house *h = arg;

	if (m->state != MESSAGE_SETTLING)
		record("taken:%s", name_of(m));
	else if (m->sent)
		outbox_confirm(&h->outbox, m);
}

/*
 * Of four equal messages, one or two run, and a step of this outcome with the others
 * loses its answer.  The step has taken effect, or not, and so has a claim of a fifth one,
 * whose answer is lost, too.
 */
static void
check_lost_answer(
    struct house *h, enum mq_outcome outcome, bool took_effect, bool claimed)
{
	bool back = outcome == MQ_OUTCOME_FRONT;
	int i, settled = outcome == MQ_OUTCOME_ACK || back ? 3 : 2;
	struct elements e = make_elements("a1 a1 a1 a1");
	struct mq_held held = {4, e.list, e.n};

	inbox_reconcile(&h->f.inbox, 0, &held, on_missing, h);
	free_elements(&e);
	start_all(&h->f, -1);
	(void)recorded();
	for (i = 0; i < settled; i++)
		if (back)
			outbox_give_back(&h->outbox, nth(h, "a1", 4 - i));
		else
			outbox_settle(&h->outbox, nth(h, "a1", 4 - i), outcome);
	outbox_send_back(&h->outbox);
	outbox_flush(&h->outbox);
	(void)recorded();
	lose_connection(h);
	e = make_elements(&"a1 a1 a1 a1 a1"[3 *
	    (5 - (4 + claimed - (took_effect ? settled : 0)))]);
	held = (struct mq_held){4 + claimed, e.list, e.n};
	inbox_reconcile(&h->f.inbox, 0, &held, on_missing, h);
	free_elements(&e);
	assert_int_equal(
	    outbox_settling(&h->outbox), took_effect ? 0 : settled);
	assert_int_equal(inbox_held(&h->f.inbox), claimed);
	assert_string_equal(recorded(),
	    !took_effect     ? "" :
		settled == 3 ? "done:a1 done:a1 done:a1" :
			       "done:a1 done:a1");
	while (!inbox_empty(&h->f.inbox)) {
		struct message *m = inbox_first(&h->f.inbox);

		if (m->state == MESSAGE_SETTLING)
			outbox_forget(&h->outbox, m);
		inbox_forget(&h->f.inbox, m);
	}
	inbox_renamed(&h->f.inbox);
}

TEST_OF(of_equal_ones_a_lost_answer_is_made_up)
{
	static const enum mq_outcome table[] = {MQ_OUTCOME_ACK,
	    MQ_OUTCOME_REJECT, MQ_OUTCOME_AGAIN, MQ_OUTCOME_FRONT};
	int i;

	for (i = 0; i < 16; i++)
		check_lost_answer(h, table[i / 4], i & 1, i & 2);
}

TEST_OF(equal_ones_wait_for_what_goes_back)
{
	int i;

	run(h, "a1 a1 a1 a1 a1 a1");
	settle(h, "a1", MQ_OUTCOME_REJECT);
	for (i = 6; i > 2; i--)
		outbox_give_back(&h->outbox, nth(h, "a1", i));
	outbox_flush_enough(&h->outbox);
	outbox_send_back(&h->outbox);
	assert_string_equal(recorded(), "reject:a1");
	answer(MQ_SETTLED);
	outbox_send_back(&h->outbox);
	settle(h, "a1", MQ_OUTCOME_REJECT);
	outbox_flush_enough(&h->outbox);
	assert_string_equal(recorded(), "done:a1 back:a:each( a1 a1 a1 a1 )");
	went_back(4);
	outbox_flush_enough(&h->outbox);
	assert_string_equal(
	    recorded(), "done:a1 done:a1 done:a1 done:a1 reject:a1");
}

/* --- once more -------------------------------------------------------------- */

TEST_OF(a_refused_one_is_repeated)
{
	run(h, "a1 a2 a3");
	settle(h, "a1 a2 a3", MQ_OUTCOME_REJECT);
	(void)recorded();
	refuse(MQ_EXIT_AGAIN);
	answer(MQ_SETTLED);
	assert_string_equal(recorded(), "refused:no done:a2");
	assert_true(outbox_refused(&h->outbox));
	assert_false(find(&h->f, "a1")->sent);
	assert_false(inbox_in_order(&h->f.inbox, 0));
	outbox_send_again(&h->outbox);
	assert_false(outbox_refused(&h->outbox));
	answer(MQ_SETTLED);
	answer(MQ_SETTLED);
	assert_string_equal(recorded(), "reject:a1 done:a3 done:a1");
	assert_int_equal(h->sent_count, 0);
}

TEST_OF(a_batch_that_is_not_the_oldest_goes_one_by_one)
{
	run(h, "a1 a2 a3 a4");
	settle(h, "a1 a2 a3 a4", MQ_OUTCOME_ACK);
	outbox_flush(&h->outbox);
	(void)recorded();
	answer(MQ_SETTLED_LOST);
	assert_string_equal(recorded(), "ack:a1 ack:a2 ack:a3 ack:a4");
	assert_false(inbox_in_order(&h->f.inbox, 0));
	assert_false(outbox_refused(&h->outbox));
}

TEST_OF(a_refused_batch_is_repeated_one_by_one)
{
	run(h, "a1 a2 a3 a4");
	settle(h, "a1 a2 a3 a4", MQ_OUTCOME_ACK);
	outbox_flush(&h->outbox);
	(void)recorded();
	refuse(MQ_EXIT_AGAIN);
	assert_string_equal(
	    recorded(), "refused:no refused:no refused:no refused:no");
	outbox_send_again(&h->outbox);
	assert_string_equal(recorded(), "ack:a1 ack:a2 ack:a3 ack:a4");
}

TEST_OF(the_oldest_is_given_back_last)
{
	run(h, "a1 a2 a3 a4 a5");
	settle(h, "a5 a4 a2", MQ_OUTCOME_FRONT);
	settle(h, "a1 a3", MQ_OUTCOME_REJECT);
	assert_string_equal(
	    recorded(), "front:a5 front:a4 front:a2 reject:a1 reject:a3");
	lose_connection(h);
	assert_string_equal(recorded(), "");
	outbox_send_again(&h->outbox);
	assert_string_equal(
	    recorded(), "reject:a1 reject:a3 front:a5 front:a4 front:a2");
}

/* --- what goes back unstarted ------------------------------------------------ */

TEST_OF(the_newest_go_back_together)
{
	run(h, "a1 a2 a3 a4 b1 b2 b3 b4");
	give_back(h, "a4 a3 a2 a1 b4 b3 b2 b1");
	assert_string_equal(recorded(), "back:a( a4 a3 a2 a1 )");
	assert_true(outbox_gives_back(&h->outbox, 0));
	outbox_send_back(&h->outbox);
	assert_string_equal(recorded(), "");
	assert_false(outbox_refused(&h->outbox));
	went_back(4);
	assert_string_equal(recorded(), "done:a4 done:a3 done:a2 done:a1");
	assert_false(outbox_gives_back(&h->outbox, 0));
	outbox_send_back(&h->outbox);
	assert_string_equal(recorded(), "back:b( b4 b3 b2 b1 )");
	went_back(3);
	outbox_send_back(&h->outbox);
	assert_string_equal(recorded(), "done:b4 done:b3 done:b2 front:b1");
	answer(MQ_SETTLED);
	assert_int_equal(outbox_settling(&h->outbox), 0);
}

TEST_OF(what_is_behind_others_goes_back_alone)
{
	run(h, "a1 a2 a3 a4 a5");
	give_back(h, "a4 a3 a2 a1");
	assert_string_equal(recorded(), "back:a( a4 a3 a2 a1 )");
	went_back(0);
	assert_string_equal(recorded(), "front:a4 front:a3 front:a2 front:a1");
	assert_false(outbox_gives_back(&h->outbox, 0));
	answer(MQ_SETTLED);
	answer(MQ_SETTLED_LOST);
	assert_string_equal(recorded(), "done:a4 over:a3");
}

TEST_OF(those_that_look_alike_are_all_named)
{
	run(h, "a1 a1 a2 a3 b1 b2 b3 b4");
	outbox_give_back(&h->outbox, TAILQ_NEXT(find(&h->f, "a1"), link));
	give_back(h, "a3 a2 a1");
	assert_string_equal(recorded(), "back:a:each( a3 a2 a1 a1 )");
	went_back(4);
	inbox_disorder(&h->f.inbox, 1);
	give_back(h, "b1 b2 b3 b4");
	assert_string_equal(recorded(),
	    "done:a3 done:a2 done:a1 done:a1 back:b:each( b4 b3 b2 b1 )");
}

TEST_OF(one_more_goes_back_behind_the_others)
{
	run(h, "a1 a2 a3 a4 a5 a6 b1");
	give_back(h, "a6 a5 a4 a3");
	(void)recorded();
	settle(h, "a1 a2 b1", MQ_OUTCOME_FRONT);
	assert_string_equal(recorded(), "front:b1");
	went_back(4);
	outbox_send_back(&h->outbox);
	assert_string_equal(
	    recorded(), "done:a6 done:a5 done:a4 done:a3 front:a2 front:a1");
}

TEST_OF(what_goes_back_survives_a_lost_connection)
{
	run(h, "a1 a2 a3 a4 a5");
	give_back(h, "a5 a4 a3 a2");
	find(&h->f, "a4")->lost = true;
	(void)recorded();
	lose_connection(h);
	assert_string_equal(recorded(), "over:a4");
	/* The server had done a part of it. */
	outbox_confirm(&h->outbox, find(&h->f, "a5"));
	give_back(h, "a1");
	outbox_send_again(&h->outbox);
	assert_string_equal(recorded(), "done:a5 front:a3 front:a2 front:a1");
	assert_int_equal(outbox_settling(&h->outbox), 3);
}

TEST_OF(what_is_refused_together_goes_back_alone)
{
	run(h, "a1 a2 a3 a4");
	give_back(h, "a4 a3 a2 a1");
	(void)recorded();
	answer_back(
	    &(struct mq_answer){.error = "no", .status = MQ_EXIT_NOPERM}, 0);
	assert_string_equal(recorded(), "front:a4 front:a3 front:a2 front:a1");
	refuse(MQ_EXIT_NOPERM);
	assert_string_equal(recorded(), "refused:no");
	assert_true(outbox_refused(&h->outbox));
	outbox_send_again(&h->outbox);
	assert_string_equal(recorded(), "front:a4");
}

/* --- without a connection ---------------------------------------------------- */

TEST_OF(without_a_connection_nothing_is_sent)
{
	run(h, "a1 a2 a3");
	settle(h, "a1", MQ_OUTCOME_ACK);
	up = false;
	settle(h, "a2", MQ_OUTCOME_ACK);
	settle(h, "a3", MQ_OUTCOME_FRONT);
	outbox_flush(&h->outbox);
	outbox_send_again(&h->outbox);
	assert_string_equal(recorded(), "");
	up = true;
	outbox_send_again(&h->outbox);
	assert_string_equal(recorded(), "ack:a1 ack:a2 front:a3");
	assert_false(outbox_waits(&h->outbox));
}

/* --- answers ---------------------------------------------------------------- */

TEST_OF(ends)
{
	run(h, "a1 a2 a3");
	settle(h, "a1 a2 a3", MQ_OUTCOME_REJECT);
	(void)recorded();
	answer(MQ_SETTLED);
	assert_false(has_said(&h->f, "lease lost"));
	answer(MQ_SETTLED_LOST);
	assert_true(has_said(&h->f, "lease lost"));
	assert_false(has_said(&h->f, "gone"));
	answer(MQ_SETTLED_GONE);
	assert_true(has_said(&h->f, "gone"));
	assert_string_equal(recorded(), "done:a1 over:a2 over:a3");
	counters_send(&h->counters);
	assert_string_equal(recorded(), "a:done=0,failed=1,retried=0,lost=1");
	assert_int_equal(outbox_settling(&h->outbox), 0);
}

TEST_OF(what_is_lost_in_flight_is_over)
{
	run(h, "a1 a2");
	settle(h, "a1 a2", MQ_OUTCOME_REJECT);
	find(&h->f, "a1")->lost = true;
	find(&h->f, "a2")->lost = true;
	(void)recorded();
	answer(MQ_SETTLED);
	lose_connection(h);
	assert_string_equal(recorded(), "over:a1 over:a2");
	counters_send(&h->counters);
	assert_string_equal(recorded(), "");
}

TEST_OF(too_long_to_be_pushed)
{
	run(h, "a1");
	find(&h->f, "a1")->to = mq_xstrdup("b");
	settle(h, "a1", MQ_OUTCOME_PUSH);
	answer(MQ_SETTLED_TOO_LONG);
	assert_string_equal(recorded(), "push:a1 too-long:a1");
	assert_int_equal(outbox_settling(&h->outbox), 0);
	settle(h, "a1", MQ_OUTCOME_REJECT);
	answer(MQ_SETTLED);
	assert_string_equal(recorded(), "reject:a1 done:a1");
}

TEST_OF(a_wrong_key_gives_back)
{
	run(h, "a1 a2");
	settle(h, "a1", MQ_OUTCOME_AGAIN);
	refuse(MQ_EXIT_WRONGTYPE);
	assert_string_equal(recorded(), "again:a1 front:a1 wrong-key");
	refuse(MQ_EXIT_WRONGTYPE);
	assert_string_equal(recorded(), "refused:no");
}

TEST_OF(a_pause_is_sent_first)
{
	run(h, "a1");
	find(&h->f, "a1")->pause_ms = 5000;
	settle(h, "a1", MQ_OUTCOME_AGAIN);
	assert_string_equal(recorded(), "pausing:a pause:a:5000 again:a1");
	h->paused_fn(h->paused_arg, &(struct mq_answer){0});
	assert_string_equal(recorded(), "answered:a paused:a");
	lose_connection(h);
	outbox_send_again(&h->outbox);
	h->paused_fn(h->paused_arg, NULL);
	assert_string_equal(
	    recorded(), "pausing:a pause:a:5000 again:a1 answered:a");
}

TEST_OF(a_lost_answer_is_made_up)
{
	run(h, "a1");
	settle(h, "a1", MQ_OUTCOME_AGAIN);
	lose_connection(h);
	(void)recorded();
	outbox_confirm(&h->outbox, find(&h->f, "a1"));
	counters_send(&h->counters);
	assert_string_equal(
	    recorded(), "done:a1 a:done=0,failed=0,retried=1,lost=0");
}

/* Nothing but acks, until there is room. */
TEST_OF(what_copies_waits_for_room)
{
	run(h, "a1 a2 b1");
	h->full = true;
	settle(h, "a1 b1", MQ_OUTCOME_AGAIN);
	settle(h, "a2", MQ_OUTCOME_ACK);
	outbox_flush(&h->outbox);
	assert_string_equal(recorded(), "ack:a2");
	assert_true(outbox_refused(&h->outbox));
	outbox_send_again(&h->outbox);
	assert_string_equal(recorded(), "");
	h->full = false;
	outbox_send_again(&h->outbox);
	assert_string_equal(recorded(), "again:a1 again:b1");
	assert_false(outbox_refused(&h->outbox));
	assert_int_equal(h->outbox.copying, 2 * find(&h->f, "a1")->len);
	answer(MQ_SETTLED);
	answer(MQ_SETTLED);
	answer(MQ_SETTLED);
	assert_int_equal(h->outbox.copying, 0);
}

TEST_OF(counters_are_said)
{
	run(h, "a1 a2 b1");
	h->f.opt.verbose = true;
	settle(h, "a1", MQ_OUTCOME_AGAIN);
	answer(MQ_SETTLED);
	settle(h, "b1", MQ_OUTCOME_REJECT);
	answer(MQ_SETTLED);
	counters_say(&h->counters);
	assert_true(has_said(&h->f,
	    "0 done, 1 rejected, 1 to be tried again, 0 returned, "
	    "0 leases lost"));
	counters_send(&h->counters);
	settle(h, "a2", MQ_OUTCOME_REJECT);
	answer(MQ_SETTLED_LOST);
	counters_say(&h->counters);
	assert_true(has_said(&h->f,
	    "0 done, 1 rejected, 1 to be tried again, 0 returned, "
	    "1 lease lost"));
}

/* Where to may change between two. */
TEST_OF(pushed_ones_are_counted_where_they_went)
{
	static const char *const to[] = {"x", "x", "y"};
	struct message *m;
	int i;

	run(h, "a1 a2 a3");
	for (i = 0; i < (int)COUNT(to); i++) {
		m = inbox_first(&h->f.inbox);
		free(m->to);
		m->to = mq_xstrdup(to[i]);
		m->outcome = MQ_OUTCOME_PUSH;
		counters_settled(&h->counters, m);
	}
	counters_send(&h->counters);
	assert_string_equal(recorded(),
	    "x:done=0,failed=0,retried=0,lost=0:2 "
	    "y:done=0,failed=0,retried=0,lost=0:1 "
	    "a:done=3,failed=0,retried=0,lost=0");
}

TEST_OF(runs_are_counted_by_their_time)
{
	const struct mq_counts *n = &h->counted;

	counters_ran(&h->counters, 0, 0.0004);
	counters_ran(&h->counters, 0, 0.0004);
	counters_send(&h->counters);
	assert_int_equal(n->run_ms, 0);
	assert_int_equal(n->bucket[0], 2);
	counters_ran(&h->counters, 0, 0.0004);
	counters_ran(&h->counters, 0, mq_bucket_s[1]);
	counters_ran(&h->counters, 0, 1e6);
	counters_send(&h->counters);
	assert_int_equal(n->bucket[0], 1);
	assert_int_equal(n->bucket[1], 1);
	assert_int_equal(n->bucket[MQ_BUCKETS - 1], 1);
	assert_int_equal(n->runs, 3);
	assert_in_range(n->run_ms, 1000000001, 1000002000);
}

TEST_OF(long_runs_are_told_when_they_have_changed)
{
	struct mq_buf text = {0};

	mq_buf_addstr(&text, "x");
	counters_tell_runs(&h->counters, &text);
	assert_string_equal(recorded(), "runs:x");
	mq_buf_addstr(&text, "x");
	counters_tell_runs(&h->counters, &text);
	assert_string_equal(recorded(), "");
	counters_runs_lost(&h->counters);
	mq_buf_addstr(&text, "x");
	counters_tell_runs(&h->counters, &text);
	counters_tell_runs(&h->counters, &text);
	assert_string_equal(recorded(), "runs:x runs:");
}

/* If its connection is lost then, a message that is missing was not settled. */
TEST_OF(what_waits_for_room_after_a_refusal_is_not_sent)
{
	run(h, "a1 a2 a3 a4");
	give_back(h, "a4 a3 a2 a1");
	h->full = true;
	(void)recorded();
	went_back(0);
	assert_string_equal(recorded(), "");
	assert_false(find(&h->f, "a1")->sent);
	assert_false(find(&h->f, "a1")->in_flight);
	h->full = false;
	outbox_send_again(&h->outbox);
	assert_string_equal(recorded(), "front:a4 front:a3 front:a2 front:a1");
}

TEST_OF(equal_ones_that_were_not_started_go_back_together)
{
	int i;

	add(&h->f, "a1 a1 a1 a1");
	for (i = 4; i > 0; i--)
		outbox_give_back(&h->outbox, nth(h, "a1", i));
	outbox_send_back(&h->outbox);
	(void)recorded();
	went_back(0);
	outbox_send_equal(&h->outbox);
	assert_string_equal(
	    recorded(), "equal:a( front:a1 front:a1 front:a1 front:a1 )");
}
