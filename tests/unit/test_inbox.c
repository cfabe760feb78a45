/*
 * What the inbox holds, claims, and is told of by the server; how it hears of
 * messages, by changes, calls and looks; and what it makes of answers that were lost.
 */
#include "inbox.h"

/* --- a test a row --------------------------------------------------------------- */

static const struct row held_rows[] = {
    {"gives back the newest first",
	{"add b1 a1 b2 a2", "newest b -> b2 b1", "held -> 2", "held b -> 0",
	    "held a -> 2"}},
    {"starts by the order of queues",
	{"add c1 b1 a1 c2 a2", "bytes -> 10", "next c -> c1",
	    "start -> a1 a2 b1 c2", "has-next -> no", "bytes -> 0"}},
    {"what returns has its place",
	{"add a1 a2 a3", "next -> a1", "next -> a2", "return a1 a2", "add a4",
	    "oldest a -> a1", "start -> a1 a2 a3 a4"}},
    {"what returns is given back in order",
	{"add a1 b1 a2", "next a -> a1", "return a1", "newest a -> a2 a1"}},
    {"nothing starts from a paused queue",
	{"add a1 b1", "paused a -> paused:a", "oldest a -> none", "start -> b1",
	    "has-next -> no", "resumed a", "start -> a1"}},
    {"a paused queue gives back",
	{"add a1 a2", "paused a -> paused:a", "newest a -> a2 a1"}},
    {"pauses of our own are counted",
	{"add a1", "pausing a", "pausing a", "pausing-over a", "has-next -> no",
	    "pausing-over a", "has-next -> yes"}},
    {"the last run is charged to a dead consumer",
	{"attempt 1 a1", "attempt 2 a2", "attempt 5 a3",
	    "start -> careful a1 careful alone a2 careful alone crashed:a3"}},
    {"runs are not charged where claims are not counted",
	{"uncounted", "attempt 4 a1", "attempt 5 a2",
	    "start -> careful a1 careful spent:a2"}},
};

static const struct row claim_rows[] = {
    {"unfit messages are passed over",
	{"expires 1 a1", "add a2 b1", "until-tick 6 b2", "look-all",
	    "claim -> claim:a:6", "is none -> claim:b:6", "tick 7",
	    "start -> expired:a1 a2 b1 expired:b2", "tick-of a -> 0",
	    "tick-of b -> 7", "held -> 0", "count a -> 2"}},
    {"a later queue is asked when the earlier have no more",
	{"claim -> claim:a:10", "answer a1 a2 a3 -> arrived claim:b:7",
	    "answer b1 b2 b3 b4 b5 b6 b7 -> arrived", "expects b -> no",
	    "start b -> b1 b2 b3 b4 b5 b6 b7", "claim -> claim:b:7",
	    "answer -> claim:c:7", "drained -> no", "answer",
	    "drained -> yes"}},
    {"a queue that had all that was wanted is asked again",
	{"room 2", "claim -> claim:a:2", "arrive a1 a2 -> arrived",
	    "start -> a1 a2", "claim -> claim:a:2"}},
    {"a claim of many bytes has left others",
	{"claim -> claim:a:10", "claiming -> yes", "arrive-large -> arrived",
	    "more a -> yes", "claiming -> no", "claim -> claim:a:9",
	    "arrive a1 -> arrived", "more a -> no"}},
    {"a look claims nothing",
	{"add b1", "room 1", "look", "claim -> claim:b:0",
	    "is-paused -> paused:b", "has-next -> no", "drained -> no"}},
    {"a refused claim is repeated",
	{"claim -> claim:a:10", "refuse -> first-refused:no",
	    "claim -> claim:a:10", "answer a1 -> arrived claim:b:9",
	    "answer -> claim:c:9", "look-all", "answer -> claim:a:9",
	    "refuse -> refused:no"}},
    {"a claim without an answer brings nothing",
	{"claim -> claim:a:10", "no-answer", "claiming -> no", "look-all",
	    "claim -> claim:a:10"}},
    {"claims tell of a lost lease and of nonsense",
	{"claim -> claim:a:10", "is-lost -> lost", "claim -> claim:b:10",
	    "is-bad -> nonsense"}},
    {"a queue is expected to have more behind those that have none",
	{"expects a -> yes", "expects b -> no", "no-more a", "expects a -> no",
	    "expects b -> yes", "expects c -> no", "room 0",
	    "expects b -> no"}},
};

static const struct row wakeup_rows[] = {
    {"a key that changed is asked",
	{"all-are watch", "changed other", "changed key:bb", "claim",
	    "changed key:b", "claim -> claim:b:10"}},
    {"an idle queue is asked when another consumer calls",
	{"all-are idle", "changed key:b", "claim", "called key:other",
	    "called key:b", "claim -> claim:b:10-tracked"}},
    /* As soon as there is room again, the consumer waits again. */
    {"without room a call is passed on once",
	{"all-are watch", "room 0", "changed key:b", "claim -> pass:b",
	    "changed key:b", "claim", "room 3", "claim -> claim:b:3"}},
    {"a queue behind a busy one is passed on",
	{"all-are watch", "room 1", "changed key:a", "changed key:c",
	    "claim -> claim:a:1", "answer a1 -> arrived pass:c"}},
    {"calls that come for queues that a pass has left behind are passed on",
	{"all-are watch", "changed key:c", "claim -> claim:c:10",
	    "changed key:a", "changed key:b", "room 0",
	    "is watch -> pass:a pass:b"}},
    {"a call for a queue whose pause is looked for is passed on",
	{"all-are idle", "called key:a", "claim -> claim:a:10-tracked",
	    "arrive a1 -> arrived", "room 0", "called key:a", "look",
	    "claim -> pass:a claim:a:0"}},
    {"a claim that takes all there is room for calls itself",
	{"all-are watch", "room 1", "changed key:a", "claim -> claim:a:1",
	    "changed key:a", "arrive a1 -> arrived", "claim"}},
    {"a claim is tracked when the server asks for that",
	{"claim -> claim:a:10", "is claim -> claim:b:10",
	    "is watch -> claim:c:10", "is idle -> claim:a:10-tracked",
	    "is watch"}},
    {"a settlement goes ahead of a claim that begins a watch",
	{"claim -> claim:a:10", "take a1 -> arrived", "settling a",
	    "claim -> claim:b:10", "is watch -> claim:c:10",
	    "is watch -> claim:a:10"}},
    {"a claim that begins a watch waits for one round of events",
	{"claim -> claim:a:10", "take a1 -> arrived", "round",
	    "claim -> claim:b:9", "is watch -> claim:c:9",
	    "is watch -> claim:a:9-tracked"}},
    /* With many, the next look is later. */
    {"an idle consumer looks and one without room does not",
	{"all-are idle", "look-around -> check:a check:b check:c",
	    "looked 1 0 600", "claim -> claim:b:10-look", "is watch",
	    "look-around -> look:a", "looked 0", "claim", "room 0",
	    "look-around -> pass:a"}},
    {"what is there may have been left there",
	{"all-are idle", "look-around -> check:a check:b check:c",
	    "looked 1 1 1", "look-around -> look:a look:b look:c",
	    "looked 3 -> left:a left:b left:c", "looked -1 -1 0",
	    "claim -> claim:c:10-look"}},
    {"others are to know of an idle one",
	{"all-are idle", "look-around -> check:a check:b check:c",
	    "looked 1 1 1", "time-is-over b",
	    "look-around -> look:a look:b look:c", "looked 0",
	    "claim -> claim:b:10-look"}},
    {"without a role queues are asked once a second",
	{"mute", "all-are none", "claim", "look-around",
	    "claim -> claim:a:10"}},
    {"who stops passes all on",
	{"all-are watch", "pass -> pass:a pass:b pass:c", "pass"}},
    {"a watch is not renewed at each look",
	{"all-are watch", "look-around", "claim", "time-is-over b",
	    "look-around", "claim -> claim:b:10-tracked", "is watch",
	    "look-around", "claim"}},
    {"when all may have changed there is no role left",
	{"all-are watch", "changed", "pass", "all-are idle"}},
    {"a refused claim leaves no role",
	{"all-are watch", "changed key:b", "claim -> claim:b:10",
	    "refuse -> refused:no", "pass -> pass:a pass:c"}},
    {"the timer is of the first that falls due",
	{"all-are watch", "due-in -> -1", "due 50 key:a", "due-in -> 50",
	    "due 20 key:b", "due 30 key:c", "due-in -> 20", "due 90 key:b",
	    "due-in -> 30", "due -1 key:c", "due-in -> 50", "due -1 key:a",
	    "due -1 key:b", "due-in -> -1"}},
    {"a message that falls due calls and has pauses looked for",
	{"all-are watch", "due 0 key:b", "looks-for-pauses -> no", "add a1",
	    "round", "looks-for-pauses -> yes", "claim -> claim:b:9"}},
    {"a connection that is lost takes the roles with it",
	{"all-are watch", "down", "pass"}},
};

/* Of queue a the server has handed out so many, and holds these, the newest first. */
static const struct row reconcile_rows[] = {
    {"nothing is missing",
	{"add a1 b1 a2 a3", "start b -> b1", "server 0 a3 a2 a1",
	    "count a -> 3", "in-order -> yes"}},
    {"what the server does not hold is missing",
	{"add a1 b1 a2 a3 a4 a5", "in-flight a2", "lost a3", "gone a4",
	    "server 0 a5 -> missing:a1:1", "count a -> 2"}},
    {"an answer that was lost is made up",
	{"server 2 a2 a1", "server 4 a4 a3 a2 a1", "server 4 a4 a3 a2 a1",
	    "held -> 4", "in-order -> yes", "start a -> a1 a2 a3 a4"}},
    {"an answer that was lost had an equal message",
	{"server 1 a1", "server 2 a1 -> missing:a1:1", "count a -> 1"}},
    {"what nobody claimed is out of order",
	{"server 1 a1", "server 1 a1 a0", "held -> 2", "in-order -> no",
	    "forget a1", "in-order -> no", "forget a0", "in-order -> yes"}},
    {"a new name has received nothing",
	{"server 2 a2 a1", "renamed",
	    "server 1 a3 -> missing:a1:1 missing:a2:2", "in-order -> yes",
	    "start a -> a3"}},
    {"as many are missing as were settled, and one was claimed",
	{"server 4 a1 a1 a1 a1", "sent-ends",
	    "server 5 a1 a1 a1 -> missing:a1:1 missing:a1:4",
	    "server 5 a1 a1 -> missing:a1:5"}},
    {"the settlement of what is there had no effect",
	{"server 2 a2 a1", "sent-ends", "server 2 a2 a1",
	    "sent a1 a2 -> no no"}},
    {"under a new name claims are counted anew",
	{"server 2 a2 a1", "renamed", "server 1 a3 a2 a1", "in-order -> yes",
	    "held -> 3"}},
};

/* --- their steps ---------------------------------------------------------------- */

static void
arrive(struct fixture *f, const char *names, enum mq_role role)
{
	struct elements e = make_elements(names);
	struct mq_claimed claimed = {
	    .elements = e.list, .n = e.n, .role = role, .due_ms = -1};

	claimed_fn(&f->inbox, &(struct mq_answer){.claimed = &claimed});
	free_elements(&e);
}

static void
answer_with(struct fixture *f, struct mq_claimed claimed)
{
	claimed_fn(&f->inbox, &(struct mq_answer){.claimed = &claimed});
}

static void
arrive_large(struct fixture *f)
{
	size_t len = (size_t)1 << 20;
	struct mq_element one = {mq_xcalloc(1, len), len};

	answer_with(
	    f, (struct mq_claimed){.elements = &one, .n = 1, .due_ms = -1});
	free(one.data);
}

static enum mq_role
role_of(const char *word)
{
	return is(word, "watch") ? MQ_ROLE_WATCH :
	    is(word, "idle")	 ? MQ_ROLE_IDLE :
	    is(word, "claim")	 ? MQ_ROLE_CLAIM :
				   MQ_ROLE_NONE;
}

/* There was nothing; and the next claim as in the next turn. */
static void
answer_as(struct fixture *f, enum mq_role role)
{
	answer_with(f, (struct mq_claimed){.role = role, .due_ms = -1});
	inbox_claim(&f->inbox, 0);
}

/* Finds nothing; in that role with all queues then. */
static void
claim_all(struct fixture *f, enum mq_role role)
{
	int i;

	inbox_claim(&f->inbox, 0);
	for (i = 0; i < f->opt.queue_count; i++)
		answer_as(f, role);
	assert_string_equal(recorded(), "claim:a:10 claim:b:10 claim:c:10");
}

static void
take_all_newest(struct fixture *f, int queue)
{
	struct message *m;

	while ((m = inbox_take_newest(&f->inbox, queue)) != NULL)
		record("%s", name_of(m));
}

static void
change(struct fixture *f, const char *key, bool called)
{
	int queue = inbox_queue_of(&f->inbox, key, strlen(key));

	if (called && queue != -1)
		inbox_called(&f->inbox, queue);
	else if (*key == '\0' || queue != -1)
		inbox_changed(&f->inbox, queue);
}

/* The first message that falls due: in so many seconds, in this one of the queues. */
static void
fall_due(struct fixture *f, const char *about)
{
	int s = atoi(about);

	change(f, strchr(about, ' ') + 1, false);
	inbox_claim(&f->inbox, 0);
	answer_with(f,
	    (struct mq_claimed){
		.role = MQ_ROLE_WATCH, .due_ms = s > 0 ? s * 1000 : s});
	inbox_claim(&f->inbox, 0);
	(void)recorded();
}

static void
look_over(const char *about)
{
	long long waiting[3];
	int n = sscanf(
	    about, "%lld %lld %lld", &waiting[0], &waiting[1], &waiting[2]);

	looked_fn(looked_arg, waiting, n);
}

static void
on_missing(void *arg, struct message *m)
{
	struct fixture *f = arg;

	record("missing:%s:%lu", name_of(m), m->number);
	inbox_forget(&f->inbox, m);
}

static void
reconcile(struct fixture *f, long long received, const char *names)
{
	struct elements e = make_elements(names);
	struct mq_held held = {received, e.list, e.n};

	inbox_reconcile(&f->inbox, 0, &held, on_missing, f);
	free_elements(&e);
}

/* The queue that is named; -1: any. */
static int
which(const char *about)
{
	return *about != '\0' ? queue_of(about) : -1;
}

static bool
ask(struct fixture *f, const char *word, const char *about)
{
	struct inbox *b = &f->inbox;
	const struct message *m;
	int q = which(about);
	double due_s = ev_timer_remaining(f->loop, &b->due_timer);

	WORD("held", record("%d", q < 0 ? b->held : b->queues[q].held));
	WORD("bytes", record("%d", (int)b->held_bytes));
	WORD("tick-of", record("%d", (int)b->queues[q].tick));
	WORD("count", record("%d", (int)inbox_count(b, q)));
	WORD("oldest", m = inbox_oldest_of(b, q),
	    record("%s", m != NULL ? name_of(m) : "none"));
	WORD("has-next", answers(inbox_oldest_of(b, -1) != NULL));
	WORD("more", answers(b->queues[q].more));
	WORD("expects", answers(inbox_expects(b, q)));
	WORD("drained", answers(inbox_drained(b)));
	WORD("claiming", answers(b->claiming));
	WORD("in-order", answers(inbox_in_order(b, 0)));
	WORD("looks-for-pauses", answers(ev_is_active(&b->look_timer)));
	WORD("due-in",
	    record(
		"%d", ev_is_active(&b->due_timer) ? (int)(due_s + 0.5) : -1));
	return false;
}

/* What the server says. */
static bool
hear(struct fixture *f, const char *word, const char *about)
{
	const struct mq_answer no = {.error = "no", .status = 1};

	WORD("arrive", arrive(f, about, MQ_ROLE_NONE));
	WORD("arrive-large", arrive_large(f));
	WORD("answer", arrive(f, about, MQ_ROLE_NONE),
	    inbox_claim(&f->inbox, 0));
	WORD(
	    "take", arrive(f, about, MQ_ROLE_CLAIM), inbox_claim(&f->inbox, 0));
	WORD("is", answer_as(f, role_of(about)));
	WORD("all-are", claim_all(f, role_of(about)));
	WORD("tick",
	    answer_with(
		f, (struct mq_claimed){.tick = atoi(about), .now_ms = 2}));
	WORD("is-paused",
	    answer_with(f, (struct mq_claimed){.paused = true, .due_ms = 9}));
	WORD(
	    "is-lost", answer_with(f, (struct mq_claimed){.n = MQ_CLAIM_LOST}));
	WORD("is-bad", answer_with(f, (struct mq_claimed){.n = MQ_CLAIM_BAD}));
	WORD("refuse", claimed_fn(&f->inbox, &no));
	WORD("no-answer", claimed_fn(&f->inbox, NULL));
	WORD("changed", change(f, about, false));
	WORD("called", change(f, about, true));
	WORD("looked", look_over(about));
	WORD("due", fall_due(f, about));
	WORD("server", reconcile(f, atoi(about), strchr(about, ' ') + 1));
	return false;
}

static void
send_ends(struct inbox *b)
{
	TAILQ_FIRST(&b->all)->sent = true;
	TAILQ_LAST(&b->all, messages)->sent = true;
}

/* How things are. */
static bool
arrange(struct fixture *f, const char *word, const char *about)
{
	char number[2] = {*about, '\0'};

	WORD("room", f->room = atoi(about));
	WORD("uncounted", f->layout.has = 0);
	WORD("mute", f->server.session.wake = NULL);
	WORD("add", add(f, about));
	WORD("attempt", add_with(f, about + 2, MQ_HEADER_ATTEMPT, number));
	WORD("expires", add_with(f, about + 2, MQ_HEADER_EXPIRES, number));
	WORD(
	    "until-tick", add_with(f, about + 2, MQ_HEADER_UNTIL_TICK, number));
	WORD("no-more", f->inbox.queues[which(about)].more = false);
	WORD("time-is-over",
	    f->inbox.queues[which(about)].look_at =
		f->inbox.queues[which(about)].claim_at = 0);
	WORD("round", ev_run(f->loop, EVRUN_NOWAIT));
	WORD("sent-ends", send_ends(&f->inbox));
	return false;
}

static void
settle_next(struct fixture *f, int queue)
{
	struct message *m = inbox_next(&f->inbox, queue);

	m->outcome = MQ_OUTCOME_AGAIN;
	inbox_settling(&f->inbox, m);
}

/* What the engine has the inbox do. */
static bool
engine(struct fixture *f, const char *word, const char *about)
{
	struct inbox *b = &f->inbox;
	int q = which(about);

	WORD("claim", inbox_claim(b, 0));
	WORD("start", start_all(f, q));
	WORD("next", record("%s", name_of(inbox_next(b, q))));
	WORD("newest", take_all_newest(f, q));
	WORD("settling", settle_next(f, q));
	WORD("paused", inbox_pause_seen(b, q, true));
	WORD("resumed", inbox_pause_seen(b, q, false));
	WORD("pausing", inbox_pausing(b, q, true));
	WORD("pausing-over", inbox_pausing(b, q, false));
	WORD("look", inbox_look(b, false));
	WORD("look-all", inbox_look(b, true));
	WORD("look-around", inbox_look_around(b, false));
	WORD("pass", inbox_pass(b));
	WORD("down", inbox_down(b));
	WORD("renamed", inbox_renamed(b));
	return false;
}

static bool
do_to(struct fixture *f, const char *word, struct message *m)
{
	WORD("return", inbox_return(&f->inbox, m));
	WORD("forget", inbox_forget(&f->inbox, m));
	WORD("in-flight", m->in_flight = true);
	WORD("sent", answers(m->sent));
	WORD("lost", m->lost = true);
	WORD("gone", m->gone = true);
	return false;
}

/* Another word is for each of the messages behind it. */
static bool
take(void *arg, const char *word, const char *about)
{
	struct fixture *f = arg;
	char name[64];
	bool known = false;

	if (ask(f, word, about) || hear(f, word, about) ||
	    arrange(f, word, about) || engine(f, word, about))
		return true;
	while (next_word(&about, name))
		known = do_to(f, word, find(f, name));
	return known;
}

static void *
setup(void)
{
	struct fixture *f = mq_xcalloc(1, sizeof(*f));

	fixture_init(f);
	return f;
}

static void
teardown(void *f)
{
	fixture_free(f);
	free(f);
}

TEST_ROWS(held)
TEST_ROWS(claim)
TEST_ROWS(wakeup)
TEST_ROWS(reconcile)

/* --- and others ----------------------------------------------------------------- */

TEST_OF(idle_consumers_look_six_times_a_second_together, struct fixture *f)
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
