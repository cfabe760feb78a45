/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * What the engine makes of ends: of runs, of settlements, of messages that the server does
 * not hold any more, of runs that an operator wants stopped, and of the consumer.
 */
#include "engine.h"

/* --- a test a row --------------------------------------------------------------- */

static const struct row outcome_rows[] = {
    {"the end of a run is settled",
	{"show policy dirs", "joblog", "add a1 a2", "run a1 a2", "end a1",
	    "fail a2",
	    "turn -> log:a1:done remove-dir ack:a1 active log:a2:rejected "
	    "reject:a2 active"}},
    {"what is printed is done",
	{"joblog", "add a1 a2", "run a1 a2", "end-print a1", "lose a2",
	    "end-print a2", "turn -> log:a1:done ack:a1 log:a2:lost",
	    "all -> a1"}},
    {"what cannot be pushed is rejected",
	{"show news", "add a1 a2", "run a1 a2", "too-long a1", "lose a2",
	    "too-long a2", "turn -> reject:a1 (rejected: too long)",
	    "all -> a1"}},
    {"what has gone meanwhile is settled all the same",
	{"add a1", "run a1", "lose a1", "end a1", "turn", "add a2", "run a2",
	    "gone a2", "end a2", "turn -> ack:a2", "all -> a2"}},
    {"a settlement is confirmed, or is not",
	{"show policy", "add a1 a2", "settle a1 a2", "settled a1", "over a2",
	    "turn -> ended:a1 acked:a1", "all"}},
    {"only what is acked is acked",
	{"show policy", "add a1", "settle a1", "push-to a1", "settled a1",
	    "turn -> ended:a1 transfer"}},
    {"a notice is transferred, too",
	{"add a1", "settle a1", "notified a1", "settled a1",
	    "turn -> transfer"}},
    {"an operator hears of the end",
	{"add a1 a2 a3", "run a1 a2 a3", "name a1 a2 a3", "stop-wanted a1 a3",
	    "end a1 a2", "stop-run a3", "turn -> ack:a1 ack:a2 ack:a3",
	    "settled a1 a2 a3", "turn -> stopped:over:a1:1 stopped:purged:a3:1",
	    "all"}},
    {"in a log the operator's ends have their words",
	{"joblog", "add a1", "run a1", "stop-wanted a1", "stop-run a1",
	    "turn -> log:a1:purged ack:a1"}},
};

static const struct row held_rows[] = {
    {"what the server holds is ours",
	{"is waiting", "add a1", "claims 2", "server a2 a1", "turn",
	    "all -> a1 a2"}},
    {"a held message that it does not hold may be elsewhere",
	{"is waiting", "add a1 a2", "server a2", "turn -> exists?:a1",
	    "answer 1", "turn -> lost:a1", "all -> a2"}},
    {"or nowhere",
	{"is waiting", "add a1", "server", "turn -> exists?:a1", "answer 0",
	    "turn", "all"}},
    {"a refusal may mean anything",
	{"is waiting", "add a1", "server", "turn -> exists?:a1", "refuse",
	    "turn -> lost:a1", "all"}},
    {"without an answer nothing is known",
	{"is waiting", "add a1", "server", "turn -> exists?:a1", "no-answer",
	    "turn", "all -> a1"}},
    {"where nobody can be asked it is elsewhere",
	{"is waiting", "exists-not", "add a1", "server", "turn -> lost:a1",
	    "all"}},
    {"a run that is elsewhere is ended, and lost",
	{"joblog", "add a1", "run a1", "server", "turn -> exists?:a1",
	    "answer 1", "turn -> lost:a1 take-away:a1", "is-lost a1 -> yes",
	    "end a1", "turn -> log:a1:lost", "all"}},
    {"what is printed is not ended",
	{"way print", "add a1", "run a1", "server", "turn -> exists?:a1",
	    "answer 1", "turn -> lost:a1 take-away:a1", "all"}},
    {"a run that is nowhere goes on",
	{"add a1", "run a1", "server", "turn -> exists?:a1", "answer 0", "turn",
	    "is-gone a1 -> yes", "is-lost a1 -> no", "end a1",
	    "turn -> ack:a1"}},
    {"what has ended meanwhile is lost when that is told",
	{"joblog", "add a1", "run a1", "server", "turn -> exists?:a1",
	    "answer 1", "end a1", "turn -> lost:a1 log:a1:lost", "all"}},
    {"what is settled meanwhile has an answer of its own",
	{"add a1", "run a1", "server", "turn -> exists?:a1", "end a1",
	    "answer 1", "turn -> ack:a1", "settled a1", "turn", "all"}},
    {"what is gone meanwhile is nobody",
	{"is waiting", "add a1", "server", "turn -> exists?:a1",
	    "tell lease-lost", "turn -> kill:KILL outbox-down clean-soon",
	    "answer 1", "turn"}},
    {"a settlement that was sent has arrived",
	{"add a1 a2", "settle a1 a2", "sent a1", "server", "turn -> confirm:a1",
	    "all -> a2"}},
    {"one in flight has its answer to come",
	{"add a1", "settle a1", "sent a1", "in-flight a1", "server", "turn",
	    "all -> a1"}},
    {"an end that was told before is settled first",
	{"add a1", "run a1", "end a1", "server", "turn -> ack:a1",
	    "all -> a1"}},
    {"one that is told behind is lost",
	{"exists-not", "joblog", "add a1", "run a1", "server", "end a1",
	    "turn -> lost:a1 log:a1:lost", "all"}},
};

static const struct row count_rows[] = {
    {"while no message moves their number is compared",
	{"add a1", "run a1", "tell tick",
	    "turn -> count?:a send-again executor-tick look-around:10:10:10 "
	    "tell-runs counters jobs",
	    "answer 1", "turn", "said"}},
    {"what is not known is said and asked for",
	{"add a1", "run a1", "tell tick",
	    "turn -> count?:a send-again executor-tick look-around:10:10:10 "
	    "tell-runs counters jobs",
	    "answer 2 -> held?:a",
	    "said -> test_ends: server: the server has unacked messages that "
	    "this consumer does not have",
	    "claims 2", "answer-held a2 a1", "turn -> start:a2"}},
    {"not when one came together with the answer",
	{"is waiting", "add a1", "tell tick",
	    "turn -> count?:a send-again executor-tick look-around:9:9:9 "
	    "tell-runs counters jobs",
	    "answer 0 -> held?:a", "answer-held", "add a2", "turn",
	    "all -> a1 a2"}},
    {"what is missing is only asked for",
	{"add a1", "run a1", "tell tick",
	    "turn -> count?:a send-again executor-tick look-around:10:10:10 "
	    "tell-runs counters jobs",
	    "answer 0 -> held?:a", "said", "answer-held",
	    "turn -> exists?:a1"}},
    {"not when a message has moved meanwhile",
	{"add a1", "run a1", "tell tick",
	    "turn -> count?:a send-again executor-tick look-around:10:10:10 "
	    "tell-runs counters jobs",
	    "add a2", "answer 5", "turn"}},
    {"nor when the connection is lost",
	{"add a1", "run a1", "tell tick",
	    "turn -> count?:a send-again executor-tick look-around:10:10:10 "
	    "tell-runs counters jobs",
	    "is down", "answer 5", "turn"}},
    {"an answer of a lost connection tells nothing",
	{"add a1", "run a1", "tell tick",
	    "turn -> count?:a send-again executor-tick look-around:10:10:10 "
	    "tell-runs counters jobs",
	    "answer 2 -> held?:a", "is down", "claims 2", "answer-held a2 a1",
	    "turn"}},
    {"queues without a message are counted when there are any",
	{"is renewing", "add a1", "run a1", "tell tick",
	    "turn -> count?:a any?:b any?:c send-again executor-tick "
	    "look-around:10:10:10:sending stop?:a tell-runs counters jobs",
	    "answer 1", "answer 1 -> count?:b count?:c", "no-answer",
	    "answer 0", "answer 0"}},
    {"or are not",
	{"is renewing", "add a1", "run a1", "tell tick",
	    "turn -> count?:a any?:b any?:c send-again executor-tick "
	    "look-around:10:10:10:sending stop?:a tell-runs counters jobs",
	    "answer 1", "answer 0"}},
    {"while one is claimed or settled none is counted",
	{"is claiming", "add a1", "run a1", "tell tick",
	    "turn -> send-again executor-tick look-around:10:10:10 tell-runs "
	    "counters jobs",
	    "not claiming", "end a1", "turn -> ack:a1", "tell tick",
	    "turn -> send-again executor-tick look-around:10:10:10 tell-runs "
	    "counters jobs"}},
};

static const struct row stop_rows[] = {
    {"a run that an operator wants stopped is ended",
	{"add a1", "run a1", "name a1", "tell stop-wanted a", "turn -> stop?:a",
	    "answer-text purge 1 a1 me", "turn -> end-run:a1"}},
    {"or returned, once",
	{"add a1", "run a1", "name a1", "tell stop-wanted a", "turn -> stop?:a",
	    "answer-text return 1 a1 me", "turn -> end-run:a1",
	    "tell stop-wanted a", "turn -> stop?:a",
	    "answer-text return 1 a1 me", "turn"}},
    {"what is no run is over",
	{"is waiting", "add a1 a2", "run a2", "name a1 a2",
	    "tell stop-wanted a", "turn -> stop?:a",
	    "answer-text purge 1 a1 me", "turn -> stopped:over:a1:1",
	    "tell stop-wanted a", "turn -> stop?:a",
	    "answer-text purge 2 a2 me", "turn -> stopped:over:a2:2",
	    "tell stop-wanted a", "turn -> stop?:a",
	    "answer-text purge 1 a3 me", "turn -> stopped:over:a3:1"}},
    {"so is what no command runs on",
	{"is without-run", "add a1", "run a1", "name a1", "tell stop-wanted a",
	    "turn -> stop?:a", "answer-text purge 1 a1 me",
	    "turn -> stopped:over:a1:1"}},
    {"what is lost has an end of its own",
	{"add a1", "run a1", "name a1", "lose a1", "tell stop-wanted a",
	    "turn -> stop?:a", "answer-text purge 1 a1 me", "turn"}},
    {"a run in another queue is another one",
	{"add b1", "run b1", "name b1", "tell stop-wanted a", "turn -> stop?:a",
	    "answer-text purge 1 b1 me", "turn -> stopped:over:b1:1"}},
    {"other consumers have theirs",
	{"add a1", "run a1", "name a1", "tell stop-wanted a", "turn -> stop?:a",
	    "answer-text purge 1 a1 you", "turn"}},
    {"an answer is no request",
	{"add a1", "run a1", "name a1", "tell stop-wanted a", "turn -> stop?:a",
	    "answer-text purged 1 a1 me", "turn"}},
    {"there may be none, or no answer",
	{"tell stop-wanted a", "turn -> stop?:a", "answer 0", "turn",
	    "tell stop-wanted a", "turn -> stop?:a", "no-answer", "turn"}},
};

static const struct row end_rows[] = {
    {"a stop lets runs end, and leaves",
	{"show service", "add a1 a2", "run a1", "level 2", "tell stop yes",
	    "turn -> stopping executor-stop pass back:a2",
	    "said -> test_ends: stopping; waiting for 1 running message",
	    "over a2", "turn -> pass", "end a1", "turn -> ack:a1 pass",
	    "ending -> no", "settled a1",
	    "turn -> pass stopping pass counters resign leave",
	    "ending -> yes"}},
    {"a stop by itself says nothing",
	{"add a1", "run a1", "level 2", "tell stop",
	    "turn -> executor-stop pass", "said"}},
    {"a stop without runs says nothing",
	{"is known", "level 2", "tell stop yes", "turn -> executor-stop pass",
	    "said"}},
    {"how many runs",
	{"add a1 a2", "run a1 a2", "level 2", "tell stop yes",
	    "turn -> executor-stop pass",
	    "said -> test_ends: stopping; waiting for 2 running messages",
	    "level 3", "tell stop yes", "turn -> executor-stop pass", "said"}},
    {"the end of fetching is no stop",
	{"level 1", "tell stop yes", "turn -> pass"}},
    {"without a connection the session leaves alone",
	{"is down", "level 2", "tell wake", "turn -> leave"}},
    {"a join under way may have registered us",
	{"is down", "is known", "level 2", "tell wake", "turn", "is killed",
	    "tell wake", "turn -> leave"}},
    {"a claim under way is waited for",
	{"is claiming", "level 2", "tell wake", "turn -> pass", "not claiming",
	    "is owing", "tell wake", "turn -> pass", "not owing", "tell wake",
	    "turn -> pass pass counters resign leave"}},
    {"workers end before the connection leaves",
	{"limit 1", "add a1", "tell wake", "turn -> start:a1", "workers 1",
	    "end a1", "turn -> ack:a1", "settled a1",
	    "turn -> stop:soon:0 executor-stop pass", "workers 0", "tell wake",
	    "turn -> pass pass counters resign leave"}},
    {"with -n the last end is the consumer's",
	{"limit 2", "add a1 a2", "tell wake", "turn -> start:a1 start:a2",
	    "end a1", "turn -> ack:a1", "settled a1", "turn", "end a2",
	    "turn -> ack:a2", "settled a2",
	    "turn -> pass counters resign leave"}},
    {"a drained consumer looks whether all is",
	{"is to-drain", "tell wake", "turn", "is drained", "tell wake",
	    "turn -> is-drained?", "add a1", "is down", "tell wake",
	    "turn -> start:a1", "not down", "tell is-drained", "turn", "end a1",
	    "turn -> ack:a1", "settled a1", "turn -> is-drained?",
	    "tell is-drained",
	    "turn -> stop:soon:0 executor-stop pass pass "
	    "counters resign leave"}},
    {"without a connection it does not",
	{"is to-drain", "is drained", "is down", "tell wake", "turn"}},
    {"nothing else may be drained when nothing may start",
	{"is to-drain", "is waiting", "tell wake", "turn -> is-drained?",
	    "not waiting", "is resting", "tell wake", "turn -> is-drained?"}},
    {"an idle consumer has found nothing, and cleaned",
	{"tell idle", "turn", "is drained", "tell idle", "turn", "is cleaned",
	    "is down", "tell idle", "turn", "not down", "add a1", "tell idle",
	    "turn -> start:a1", "end a1", "turn -> ack:a1", "settled a1",
	    "turn", "tell idle",
	    "turn -> stop:soon:0 executor-stop pass pass counters resign "
	    "leave"}},
    {"output that nobody reads ends it",
	{"is known", "tell unread", "turn -> stop:soon:74 executor-stop pass",
	    "said -> test_ends: standard output: nobody reads it any more; "
	    "stopping, and returning what fails",
	    "tell unread", "turn -> pass", "said"}},
    {"what has been said ends it",
	{"is known", "tell must-end 76",
	    "turn -> stop:soon:76 executor-stop pass", "ending -> no"}},
};

static const struct row signal_rows[] = {
    {"signals go to the commands",
	{"add a1", "run a1", "tell signal 10", "turn -> kill:USR1",
	    "ending -> no"}},
    {"an earlier one that finds none does not end it",
	{"is known", "tell signal 15", "turn -> kill:TERM", "ending -> no"}},
    {"the last one waits for those that run",
	{"add a1 a2", "run a1", "is waiting", "tell signal yes 15",
	    "turn -> kill:TERM", "ending -> no", "level 3", "end a1", "is down",
	    "turn -> ack:a1", "tell signal yes 9", "turn -> kill:KILL",
	    "ending -> yes",
	    "said -> test_ends: 2 messages could not be settled; they stay "
	    "unacked at me until it is cleaned up"}},
    {"a grace time that is over ends it",
	{"add a1", "run a1", "tell give-up", "turn", "ending -> yes",
	    "said -> test_ends: 1 message could not be settled; it stays "
	    "unacked at me until it is cleaned up",
	    "tell give-up", "turn", "said"}},
    {"with nothing left only the name stays",
	{"is known", "tell give-up", "turn", "ending -> yes",
	    "said -> test_ends: me: connection not removed from the server; "
	    "mq-clean removes it"}},
    {"commands sleep with us",
	{"add a1", "run a1", "tell suspend",
	    "turn -> kill:STOP suspend kill:CONT"}},
    {"and go on only under the lease",
	{"is slept", "add a1 a2", "run a1", "tell suspend",
	    "turn -> kill:STOP suspend lost:a1 take-away:a1 kill:KILL "
	    "outbox-down clean-soon new-name kill:CONT",
	    "all -> a1"}},
    {"logs are opened anew", {"tell reopen-logs", "turn -> open-logs"}},
    {"what is there is counted", {"tell counted 7", "turn -> count:7"}},
};

/* A minute without room is long. */
static const struct row room_rows[] = {
    {"a lack of room is said once",
	{"tell no-room full", "tell no-room fuller", "turn -> complain:full"}},
    {"a claim may tell of it, too",
	{"tell claim-refused 75 no_room_to_copy",
	    "turn -> complain:no room to copy complain:no room to copy",
	    "tell claimed 0", "turn"}},
};

TEST_ROWS(outcome)
TEST_ROWS(held)
TEST_ROWS(count)
TEST_ROWS(stop)
TEST_ROWS(end)
TEST_ROWS(signal)
TEST_ROWS(room)

/* --- and those that take a minute -------------------------------------------------- */

static void
check(struct house *h, const char *step)
{
	const struct row row = {"room", {NULL}};

	take_step(&row, step, take, h);
}

/* So many seconds go by. */
static void
pass_time(struct house *h, double s)
{
	if (h->e.lacks_since != 0)
		h->e.lacks_since -= s;
}

static void
tick(struct house *h, const char *text)
{
	take(h, "tell", text);
	take(h, "tell", "tick");
	take(h, "turn", "");
	while (h->asked_count > 0)
		answer(NULL);
	(void)recorded();
}

TEST_OF(who_is_to_end_waits_a_minute_for_room, struct house *h)
{
	check(h, "is to-drain");
	check(h, "is known");
	check(h, "add a1");
	check(h, "run a1");
	tick(h, "no-room full");
	pass_time(h, 59);
	tick(h, "no-room full");
	assert_int_equal(h->level, STOP_NOT);
	pass_time(h, 2);
	tick(h, "no-room full");
	assert_int_equal(h->level, STOP_SOON);
	assert_false(h->e.ending);
	/* The run is waited for. */
	tick(h, "no-room full");
	assert_false(h->e.ending);
	check(h, "end a1");
	check(h, "turn -> ack:a1 pass");
	tick(h, "no-room full");
	assert_true(h->e.ending);
}

TEST_OF(room_that_is_there_again_ends_the_wait, struct house *h)
{
	check(h, "limit 5");
	tick(h, "no-room full");
	pass_time(h, 61);
	tick(h, "wake");
	assert_true(h->e.lacks_since == 0);
	tick(h, "no-room full");
	assert_int_equal(h->level, STOP_NOT);
}

TEST_OF(others_wait_for_ever, struct house *h)
{
	tick(h, "no-room full");
	pass_time(h, 3600);
	tick(h, "no-room full");
	assert_int_equal(h->level, STOP_NOT);
	assert_false(h->e.ending);
}
