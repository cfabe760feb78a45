/*
 * How the inbox hears of messages: by changes, calls and looks.
 */
#include "claims.h"

#define TEST_OF(fn)                                                            \
	TEST_WITH(fn, struct fixture *f, fixture_setup, fixture_teardown)

/* Answers that there was nothing, and claims again as the next turn would. */
static void
answer_as(struct fixture *f, enum mq_role role)
{
	answer_with(f, (struct mq_claimed){.role = role, .due_ms = -1});
	inbox_claim(&f->inbox);
}

/* Finds nothing; in that role with all queues then. */
static void
claim_all(struct fixture *f, enum mq_role role)
{
	int i;

	inbox_claim(&f->inbox);
	for (i = 0; i < f->opt.queue_count; i++)
		answer_as(f, role);
	assert_string_equal(recorded(), "claim:a:10 claim:b:10 claim:c:10");
}

TEST_OF(a_key_that_changed_is_asked)
{
	claim_all(f, MQ_ROLE_WATCH);
	inbox_changed(&f->inbox, "other", 5);
	inbox_changed(&f->inbox, "key:bb", 6);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "");
	inbox_changed(&f->inbox, "key:b", 5);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:b:10");
}

TEST_OF(an_idle_queue_is_asked_when_another_consumer_calls)
{
	claim_all(f, MQ_ROLE_IDLE);
	inbox_changed(&f->inbox, "key:b", 5);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "");
	inbox_called(&f->inbox, "key:other", 9);
	inbox_called(&f->inbox, "key:b", 5);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:b:10-tracked");
}

TEST_OF(without_room_a_call_is_passed_on_once)
{
	claim_all(f, MQ_ROLE_WATCH);
	f->room = 0;
	inbox_changed(&f->inbox, "key:b", 5);
	inbox_claim(&f->inbox);
	inbox_changed(&f->inbox, "key:b", 5);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "pass:b");
	/* As soon as there is room again, the consumer waits again. */
	f->room = 3;
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:b:3");
}

TEST_OF(a_queue_behind_a_busy_one_is_passed_on)
{
	claim_all(f, MQ_ROLE_WATCH);
	f->room = 1;
	inbox_changed(&f->inbox, "key:a", 5);
	inbox_changed(&f->inbox, "key:c", 5);
	inbox_claim(&f->inbox);
	answer(f, "a1");
	assert_string_equal(recorded(), "claim:a:1 arrived pass:c");
}

TEST_OF(calls_that_come_during_a_pass_are_passed_on)
{
	claim_all(f, MQ_ROLE_WATCH);
	inbox_changed(&f->inbox, "key:c", 5);
	inbox_claim(&f->inbox);
	/* The pass has left these queues behind. */
	inbox_changed(&f->inbox, "key:a", 5);
	inbox_changed(&f->inbox, "key:b", 5);
	f->room = 0;
	answer_as(f, MQ_ROLE_WATCH);
	assert_string_equal(recorded(), "claim:c:10 pass:a pass:b");
}

TEST_OF(a_call_for_a_queue_whose_pause_is_looked_for_is_passed_on)
{
	claim_all(f, MQ_ROLE_IDLE);
	inbox_called(&f->inbox, "key:a", 5);
	inbox_claim(&f->inbox);
	arrive(f, "a1");
	f->room = 0;
	inbox_called(&f->inbox, "key:a", 5);
	inbox_look(&f->inbox, false);
	inbox_claim(&f->inbox);
	assert_string_equal(
	    recorded(), "claim:a:10-tracked arrived pass:a claim:a:0");
}

TEST_OF(a_claim_that_takes_all_there_is_room_for_calls_itself)
{
	claim_all(f, MQ_ROLE_WATCH);
	f->room = 1;
	inbox_changed(&f->inbox, "key:a", 5);
	inbox_claim(&f->inbox);
	inbox_changed(&f->inbox, "key:a", 5);
	arrive(f, "a1");
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:a:1 arrived");
}

TEST_OF(a_claim_is_tracked_when_the_server_asks_for_that)
{
	inbox_claim(&f->inbox);
	answer_as(f, MQ_ROLE_CLAIM);
	answer_as(f, MQ_ROLE_WATCH);
	answer_as(f, MQ_ROLE_IDLE);
	answer_as(f, MQ_ROLE_WATCH);
	assert_string_equal(
	    recorded(), "claim:a:10 claim:b:10 claim:c:10 claim:a:10-tracked");
}

/* Takes one message of a queue, and is to claim again, tracked; not yet. */
static void
take_one(struct fixture *f)
{
	struct elements e = make_elements("a1");

	inbox_claim(&f->inbox);
	answer_with(f,
	    (struct mq_claimed){.elements = e.list,
		.n = e.n,
		.role = MQ_ROLE_CLAIM,
		.due_ms = -1});
	free_elements(&e);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:a:10 arrived");
}

TEST_OF(a_settlement_goes_ahead_of_a_claim_that_begins_a_watch)
{
	struct message *m;

	take_one(f);
	m = inbox_next(&f->inbox, 0);
	m->outcome = MQ_OUTCOME_AGAIN;
	inbox_settling(&f->inbox, m);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:b:10");
	answer_as(f, MQ_ROLE_WATCH);
	answer_as(f, MQ_ROLE_WATCH);
	assert_string_equal(recorded(), "claim:c:10 claim:a:10");
}

TEST_OF(a_claim_that_begins_a_watch_waits_for_one_round_of_events)
{
	take_one(f);
	ev_run(f->inbox.loop, EVRUN_NOWAIT);
	inbox_claim(&f->inbox);
	answer_as(f, MQ_ROLE_WATCH);
	answer_as(f, MQ_ROLE_WATCH);
	assert_string_equal(
	    recorded(), "claim:b:9 claim:c:9 claim:a:9-tracked");
}

TEST_OF(an_idle_consumer_looks_and_one_without_room_does_not)
{
	claim_all(f, MQ_ROLE_IDLE);
	inbox_look_around(&f->inbox, false);
	assert_string_equal(recorded(), "look:a look:b look:c");
	looked_fn(looked_arg, (const long long[]){1, 0, 600}, 3);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:b:10-look");
	answer_as(f, MQ_ROLE_IDLE);
	/* With many, the next look is later. */
	inbox_look_around(&f->inbox, false);
	assert_string_equal(recorded(), "look:a look:b");
	looked_fn(looked_arg, (const long long[]){1, 1}, 2);
	f->room = 0;
	inbox_look_around(&f->inbox, false);
	assert_string_equal(recorded(), "pass:a pass:b");
}

TEST_OF(without_a_role_queues_are_asked_once_a_second)
{
	f->server.session.wake = NULL;
	claim_all(f, MQ_ROLE_NONE);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "");
	inbox_look_around(&f->inbox, false);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:a:10");
}

TEST_OF(who_stops_passes_all_on)
{
	claim_all(f, MQ_ROLE_WATCH);
	inbox_pass(&f->inbox);
	inbox_pass(&f->inbox);
	assert_string_equal(recorded(), "pass:a pass:b pass:c");
}

TEST_OF(a_watch_is_not_renewed_at_each_look)
{
	claim_all(f, MQ_ROLE_WATCH);
	inbox_look_around(&f->inbox, false);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "");
	/* Its time is over. */
	f->inbox.queues[1].look_at = 0;
	inbox_look_around(&f->inbox, false);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:b:10-tracked");
	answer_as(f, MQ_ROLE_WATCH);
	inbox_look_around(&f->inbox, false);
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "");
}

TEST_OF(when_all_may_have_changed_there_is_no_role_left)
{
	claim_all(f, MQ_ROLE_WATCH);
	inbox_changed(&f->inbox, NULL, 0);
	inbox_pass(&f->inbox);
	assert_string_equal(recorded(), "");
	claim_all(f, MQ_ROLE_IDLE);
}

TEST_OF(a_refused_claim_leaves_no_role)
{
	struct mq_claimed none = {.n = 0};

	claim_all(f, MQ_ROLE_WATCH);
	inbox_changed(&f->inbox, "key:b", 5);
	inbox_claim(&f->inbox);
	claimed_fn(&f->inbox, &(struct mq_answer){.error = "no"}, &none);
	inbox_pass(&f->inbox);
	assert_string_equal(recorded(), "claim:b:10 refused:no pass:a pass:c");
}

/* The first message that falls due: in so many ms, in this one of the queues. */
static void
falls_due(struct fixture *f, const char *key, int ms)
{
	inbox_changed(&f->inbox, key, strlen(key));
	inbox_claim(&f->inbox);
	answer_with(
	    f, (struct mq_claimed){.role = MQ_ROLE_WATCH, .due_ms = ms});
	inbox_claim(&f->inbox);
	(void)recorded();
}

static int
seconds_left(struct fixture *f)
{
	return ev_is_active(&f->inbox.due_timer) ?
	    (int)(ev_timer_remaining(f->loop, &f->inbox.due_timer) + 0.5) :
	    -1;
}

TEST_OF(the_timer_is_of_the_first_that_falls_due)
{
	claim_all(f, MQ_ROLE_WATCH);
	assert_int_equal(seconds_left(f), -1);
	falls_due(f, "key:a", 50000);
	assert_int_equal(seconds_left(f), 50);
	falls_due(f, "key:b", 20000);
	falls_due(f, "key:c", 30000);
	assert_int_equal(seconds_left(f), 20);
	falls_due(f, "key:b", 90000);
	assert_int_equal(seconds_left(f), 30);
	falls_due(f, "key:c", -1);
	assert_int_equal(seconds_left(f), 50);
	falls_due(f, "key:a", -1);
	falls_due(f, "key:b", -1);
	assert_int_equal(seconds_left(f), -1);
}

TEST_OF(a_message_that_falls_due_calls_and_has_pauses_looked_for)
{
	claim_all(f, MQ_ROLE_WATCH);
	falls_due(f, "key:b", 0);
	assert_false(ev_is_active(&f->inbox.look_timer));
	add(f, "a1");
	ev_run(f->loop, EVRUN_NOWAIT);
	assert_true(ev_is_active(&f->inbox.look_timer));
	inbox_claim(&f->inbox);
	assert_string_equal(recorded(), "claim:b:9");
}

TEST_OF(a_connection_that_is_lost_takes_the_roles_with_it)
{
	claim_all(f, MQ_ROLE_WATCH);
	inbox_down(&f->inbox);
	inbox_pass(&f->inbox);
	assert_string_equal(recorded(), "");
}

TEST_OF(idle_consumers_look_six_times_a_second_together)
{
	static const struct {
		long long idle;
		double every;
	} rows[] = {{1, 1.0 / 6}, {3, 0.5}, {4, 2}, {12, 2}, {18, 3}, {180, 30},
	    {186, 30}};
	long long waiting[3] = {0};
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		claim_all(f, MQ_ROLE_IDLE);
		inbox_look_around(&f->inbox, false);
		waiting[0] = rows[i].idle;
		waiting[1] = waiting[2] = 1;
		looked_fn(looked_arg, waiting, 3);
		assert_float_equal(
		    f->inbox.queues[0].every, rows[i].every, 0.001);
		(void)recorded();
		inbox_down(&f->inbox);
		inbox_look(&f->inbox, true);
	}
}
