/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * What the inbox claims, and why; and how it hears of messages, by changes, calls and
 * looks.  Between the steps the facts are taken, as at the beginning of a turn.
 */
#include "mq-consume/inbox.c"

#include "hand.h"

struct house {
	struct fixture f;
	struct inbox *inbox;
	struct claim_terms terms;
	int room;	 /* for this many messages */
	bool no_room[3]; /* for those of a queue */
	bool woken;	 /* the engine, since it was asked */
	struct mq_consumer_queue queues[3];
};

/* --- a test a row --------------------------------------------------------------- */

static const struct row claim_rows[] = {
    {"a later queue is asked when the earlier have no more",
	{"claim -> claim:a:10", "answer a1 a2 a3 -> arrived claim:b:7",
	    "answer b1 b2 b3 b4 b5 b6 b7 -> arrived", "expects -> - b",
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
    {"a claim of one by one has left others",
	{"one-by-one", "claim -> claim:a:10", "arrive a1 -> arrived",
	    "more a -> yes"}},
    {"only one claim is under way",
	{"claim -> claim:a:10", "ready -> no", "asks -> none", "answer-only",
	    "ready -> yes", "asks -> b"}},
    {"without room for the first queue the later ones wait",
	{"no-room a", "claim", "more a -> yes", "drained -> no"}},
    {"a queue of which as many run as may does not make the later ones wait",
	{"no-room a", "full a", "claim -> claim:b:10"}},
    {"a queue that is away is passed over",
	{"away a", "claim -> claim:b:10", "answer -> claim:c:10", "answer"}},
    {"a look claims nothing",
	{"add b1", "room 1", "look", "claim -> claim:b:0", "expects -> - a",
	    "is-paused -> paused:b", "has-next -> no", "drained -> no"}},
    {"a look leaves the reasons for a claim",
	{"add a1", "room 0", "look", "claim -> claim:a:0", "more a -> yes"}},
    {"a look is made once",
	{"all-are watch", "add b1", "look", "claim -> claim:b:0",
	    "is-paused -> paused:b", "claim"}},
    {"no look is made where no message runs or is held",
	{"all-are watch", "takes-back", "look", "claim"}},
    {"a look leaves the role",
	{"all-are watch", "add b1", "look", "claim -> claim:b:0", "arrive",
	    "pass -> pass:a pass:b pass:c"}},
    {"a look is for what a pause would give back",
	{"all-are watch", "add a1", "start -> a1", "look", "claim",
	    "takes-back", "look", "claim -> claim:a:0"}},
    {"a refused claim is repeated by the tick",
	{"claim -> claim:a:10", "refuse -> first-refused:no", "claim",
	    "look-around", "claim -> claim:a:10",
	    "answer a1 -> arrived claim:b:9", "answer -> claim:c:9", "look-all",
	    "answer -> claim:a:9", "refuse -> refused:no", "claim"}},
    {"a refused claim is repeated when there are news",
	{"claim -> claim:a:10", "refuse -> first-refused:no", "settling b",
	    "claim -> claim:a:10", "refuse -> first-refused:no", "called c",
	    "claim -> claim:a:10", "refuse -> first-refused:no", "down",
	    "claim -> claim:a:10"}},
    {"a claim without an answer brings nothing",
	{"claim -> claim:a:10", "no-answer", "claiming -> no", "look-all",
	    "claim -> claim:a:10"}},
    {"claims tell of a lost lease and of nonsense",
	{"claim -> claim:a:10", "is-lost -> lost", "claim -> claim:b:10",
	    "is-bad -> nonsense"}},
    {"what a claim says of the queue is known",
	{"tick-of a -> 0", "claim -> claim:a:10", "tick 7", "tick-of a -> 7",
	    "server-ms -> 2000", "claim -> claim:b:10", "tick -1",
	    "tick-of b -> 0"}},
    {"a queue is expected to have more behind those that have none",
	{"expects -> - a", "no-more a", "expects -> - b", "claim -> claim:b:10",
	    "expects -> b c", "no-more c", "expects -> b -"}},
};

static const struct row pause_rows[] = {
    {"nothing starts from a paused queue",
	{"add a1 b1", "paused a -> paused:a", "start -> b1", "has-next -> no",
	    "resumed a", "start -> a1"}},
    {"what comes to a paused queue goes back, too",
	{"paused a -> paused:a", "paused a -> paused:a"}},
    {"while all are paused nothing is claimed",
	{"add b1", "paused -> paused:a paused:b paused:c", "paused",
	    "has-next -> no", "claim", "drained -> yes", "resumed",
	    "has-next -> yes", "claim -> claim:a:9"}},
    {"what was claimed before all were paused goes back",
	{"claim -> claim:a:10", "paused -> paused:a paused:b paused:c",
	    "arrive a1 -> arrived paused:a", "has-next -> no"}},
    {"a queue is paused beside all",
	{"paused a -> paused:a", "paused -> paused:a paused:b paused:c",
	    "resumed", "add a1 b1", "start -> b1"}},
    {"the end of the pause of all is asked for everywhere",
	{"all-are watch", "paused -> paused:a paused:b paused:c", "resumed",
	    "claim -> claim:a:10"}},
    {"the end of a pause is looked for",
	{"all-are none", "paused a -> paused:a", "look", "claim -> claim:a:0",
	    "arrive", "claim -> claim:a:10"}},
};

static const struct row bring_rows[] = {
    {"acks bring messages while nothing else is to be claimed",
	{"lets-bring a -> no", "all-are watch", "lets-bring a -> yes",
	    "called a", "lets-bring a -> yes", "lets-bring b -> no",
	    "claim -> claim:a:10-tracked", "lets-bring a -> no", "answer",
	    "lets-bring a -> yes", "look", "lets-bring a -> no", "claim",
	    "lets-bring a -> yes", "called a", "claim -> claim:a:10-tracked",
	    "refuse -> refused:no", "lets-bring a -> no"}},
    {"a claim that begins a watch waits for the next ack",
	{"all-are watch", "brought a", "first -> 1", "more a -> yes",
	    "drained -> no", "ready -> no", "brought a", "settling a",
	    "claim -> claim:a:10", "answer", "brought a", "settle-first-over",
	    "claim -> claim:a:10-tracked"}},
    {"a watch without room is others'",
	{"all-are watch", "brought a", "no-room a", "settle-first-over",
	    "claim -> pass:a"}},
    {"an idle consumer has nothing to claim",
	{"all-are idle", "brought a", "first -> -1", "more a -> no"}},
    {"what comes with an ack to a paused queue goes back",
	{"all-are watch", "paused a -> paused:a", "brought a -> paused:a",
	    "resumed a", "paused -> paused:a paused:b paused:c",
	    "brought b -> paused:b"}},
};

static const struct row wakeup_rows[] = {
    {"a key that changed is asked",
	{"all-are watch", "claim", "changed b", "claim -> claim:b:10"}},
    {"an idle queue is asked when another consumer calls",
	{"all-are idle", "changed b", "claim", "called b",
	    "claim -> claim:b:10-tracked"}},
    /* As soon as there is room again, the consumer waits again. */
    {"without room a call is passed on once",
	{"all-are watch", "room 0", "changed b", "claim -> pass:b", "changed b",
	    "claim", "room 3", "claim -> claim:b:3"}},
    {"a queue behind a busy one is passed on",
	{"all-are watch", "room 1", "changed a", "changed c",
	    "claim -> claim:a:1", "answer a1 -> arrived pass:c"}},
    {"calls that come for queues that a pass has left behind are passed on",
	{"all-are watch", "changed c", "claim -> claim:c:10", "changed a",
	    "changed b", "room 0", "is watch -> pass:a pass:b"}},
    {"a call for a queue whose pause is looked for is passed on",
	{"all-are idle", "called a", "claim -> claim:a:10-tracked",
	    "arrive a1 -> arrived", "room 0", "called a", "look",
	    "claim -> pass:a claim:a:0"}},
    {"a claim that takes all there is room for calls itself",
	{"all-are watch", "room 1", "changed a", "claim -> claim:a:1",
	    "changed a", "arrive a1 -> arrived", "claim"}},
    {"a change during the claim that begins a watch is asked for",
	{"claim -> claim:a:10", "changed a", "is watch -> claim:b:10",
	    "is watch -> claim:c:10", "is watch -> claim:a:10"}},
    {"a claim is tracked when the server asks for that",
	{"claim -> claim:a:10", "is claim -> claim:b:10",
	    "is watch -> claim:c:10", "is idle -> claim:a:10-tracked",
	    "is watch"}},
    {"a settlement goes ahead of a claim that begins a watch",
	{"claim -> claim:a:10", "take a1 -> arrived", "start -> a1",
	    "settling a", "claim -> claim:b:10", "is watch -> claim:c:10",
	    "is watch -> claim:a:10"}},
    {"a claim that begins a watch waits for one round of events",
	{"claim -> claim:a:10", "take a1 -> arrived", "ready -> no", "round",
	    "claim -> claim:b:9", "is watch -> claim:c:9",
	    "is watch -> claim:a:9-tracked"}},
    {"after a quick settlement the next one is awaited once",
	{"settling a", "claim -> claim:a:10", "take a1 -> arrived",
	    "first -> 1", "settle-first-over", "claim -> claim:b:9",
	    "is watch -> claim:c:9", "is watch -> claim:a:9-tracked",
	    "take a2 -> arrived", "first -> 0"}},
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
    {"while a claim is under way nothing is passed on",
	{"all-are watch", "changed b", "claim -> claim:b:10", "pass"}},
    {"a watch is not renewed at each look",
	{"all-are watch", "look-around", "claim", "time-is-over b",
	    "look-around", "claim -> claim:b:10-tracked", "is watch",
	    "look-around", "claim"}},
    {"when all may have changed there is no role left",
	{"all-are watch", "changed", "pass", "all-are idle"}},
    {"a refused claim leaves no role",
	{"all-are watch", "changed b", "claim -> claim:b:10",
	    "refuse -> refused:no", "pass -> pass:a pass:c"}},
    {"the timer is of the first that falls due",
	{"all-are watch", "due-in -> -1", "due 50 a", "due-in -> 50",
	    "due 20 b", "due 30 c", "due-in -> 20", "due 90 b", "due-in -> 30",
	    "due -1 c", "due-in -> 50", "due -1 a", "due -1 b",
	    "due-in -> -1"}},
    {"a message that falls due calls and has pauses looked for",
	{"all-are watch", "due 0 b", "looks-for-pauses -> no", "add a1",
	    "round", "looks-for-pauses -> yes", "claim -> claim:b:9"}},
    {"a connection that is lost takes the roles with it",
	{"all-are watch", "down", "pass"}},
    {"all of these lead to a turn",
	{"all-are watch", "woken -> no", "changed b", "woken -> yes",
	    "called b", "woken -> yes", "look", "woken -> yes", "due 0 c",
	    "woken -> yes", "woken -> no", "due-over", "woken -> yes"}},
    {"what looks find leads to a turn",
	{"all-are idle", "look-around -> check:a check:b check:c",
	    "woken -> yes", "looked 1 0 1", "woken -> yes"}},
    {"what looks do not find leads to none",
	{"all-are idle", "look-around -> check:a check:b check:c",
	    "woken -> yes", "looked 1 1 1", "woken -> no"}},
    {"a look without an answer leads to claims",
	{"all-are idle", "look-around -> check:a check:b check:c", "looked",
	    "claim -> claim:a:10-look"}},
    {"a look goes with what is sent",
	{"all-are idle", "look-around -> check:a check:b check:c",
	    "looked 4 4 4", "look-around",
	    "look-around sending -> look:a look:b look:c", "looked 0"}},
    {"a settlement leads to a claim",
	{"all-are watch", "settling b", "claim -> claim:b:10"}},
    {"when all may have changed no call is left to be passed on",
	{"all-are watch", "changed b", "changed", "room 0", "claim"}},
    {"a change of a held message's queue has pauses looked for",
	{"all-are idle", "changed b", "looks-for-pauses -> no", "add b1",
	    "changed b", "looks-for-pauses -> yes", "claim", "look-over",
	    "woken -> yes", "claim -> claim:b:0"}},
    {"a change while a pause is looked for is a call",
	{"all-are watch", "add b1", "look", "claim -> claim:b:0", "changed b",
	    "room 0", "arrive", "claim -> pass:b"}},
    {"who is called waits no more",
	{"all-are idle", "called b", "look-around -> check:a check:c",
	    "looked 1 1"}},
    {"without room the claim that begins a watch is left to others",
	{"claim -> claim:a:10", "take a1 -> arrived", "room 0",
	    "settle-first-over", "woken -> yes", "claim -> pass:a"}},
    {"but not when the queue has more",
	{"room 1", "claim -> claim:a:1", "called a", "take a1 -> arrived",
	    "settle-first-over", "claim"}},
    {"it is left to others behind a busy queue, too",
	{"no-more a", "no-more b", "claim -> claim:c:10", "take c1 -> arrived",
	    "settling a", "room 0", "claim -> pass:c"}},
    {"a call before an answer is over if nobody calls then",
	{"all-are idle", "called b", "claim -> claim:b:10-tracked", "called b",
	    "room 0", "is none"}},
    {"a call before an answer stands if others may call",
	{"all-are idle", "called b", "claim -> claim:b:10-tracked", "called b",
	    "room 0", "is idle -> pass:b"}},
    {"what was passed on is asked for later",
	{"all-are watch", "pass -> pass:a pass:b pass:c", "more a -> yes",
	    "claim -> claim:a:10"}},
    {"a connection that is lost takes the claim with it",
	{"claim -> claim:a:10", "down", "claiming -> no",
	    "claim -> claim:b:10"}},
};

/* --- the neighbours ------------------------------------------------------------- */

/* Writes down what the inbox has told. */
static void
take_facts(struct house *h)
{
	struct fact f;

	while (fact_take(h->f.facts, &f)) {
		if (f.kind == FACT_CLAIM_REFUSED)
			record("%s:%s", f.yes ? "first-refused" : "refused",
			    f.text);
		else if (f.kind == FACT_PAUSED)
			record("paused:%s", queue_names[f.queue]);
		else if (f.kind == FACT_WAKE)
			h->woken = true;
		else if (f.kind == FACT_CLAIMED && f.status != 0)
			record(f.status > 0		  ? "arrived" :
				f.status == MQ_CLAIM_LOST ? "lost" :
							    "nonsense");
		fact_free(&f);
	}
}

static int
room_of(const struct house *h, int queue)
{
	int room = h->room - hand_count(h->f.hand, -1, MESSAGE_UNSTARTED);

	return h->no_room[queue] ? 0 : room;
}

/* As the engine does in each turn. */
static void
claim(struct house *h)
{
	int queue;

	if (!inbox_ready(h->inbox))
		return;
	while ((queue = inbox_asks(h->inbox, &h->terms)) != -1)
		inbox_offer(h->inbox, queue, room_of(h, queue), &h->terms);
}

static mq_answer_fn *claimed_fn;

void
mq_consumer_claim(struct mq_consumer *k, int queue, const struct mq_claim *how,
    mq_answer_fn *fn, void *arg)
{
	claimed_fn = fn;
	record("claim:%s:%d%s%s", queue_names[queue], how->max,
	    how->max > 0 && how->tracked ? "-tracked" : "",
	    how->why == MQ_CLAIM_LOOK ? "-look" : "");
}

static mq_looked_fn *looked_fn;
static void *looked_arg;

void
mq_consumer_look(struct mq_consumer *k, const int *queues, int n,
    enum mq_look how, mq_looked_fn *fn, void *arg)
{
	static const char *const names[] = {
	    [MQ_LOOK_ANY] = "look", "left", "check"};
	int i;

	looked_fn = fn;
	looked_arg = arg;
	for (i = 0; i < n; i++)
		record("%s:%s", names[how], queue_names[queues[i]]);
}

void
mq_consumer_pass(struct mq_consumer *k, int queue)
{
	record("pass:%s", queue_names[queue]);
}

/* --- their steps ---------------------------------------------------------------- */

static void
answer_with(struct house *h, struct mq_claimed claimed)
{
	claimed_fn(h->inbox, &(struct mq_answer){.claimed = &claimed});
	take_facts(h);
}

static void
arrive(struct house *h, const char *names, enum mq_role role)
{
	struct mq_element list[16];
	char name[64];
	int n = 0;

	while (next_word(&names, name)) {
		assert_between(n, 0, COUNT(list) - 1);
		list[n++] = (struct mq_element){mq_xstrdup(name), strlen(name)};
	}
	answer_with(h,
	    (struct mq_claimed){
		.elements = list, .n = n, .role = role, .due_ms = -1});
	/* The hand has taken them. */
	while (n > 0)
		assert_null(list[--n].data);
}

static void
arrive_large(struct house *h)
{
	size_t len = (size_t)1 << 20;
	struct mq_element one = {mq_xcalloc(1, len), len};

	answer_with(
	    h, (struct mq_claimed){.elements = &one, .n = 1, .due_ms = -1});
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
answer_as(struct house *h, enum mq_role role)
{
	answer_with(h, (struct mq_claimed){.role = role, .due_ms = -1});
	claim(h);
}

/* Finds nothing; in that role with all queues then. */
static void
claim_all(struct house *h, enum mq_role role)
{
	int i;

	claim(h);
	for (i = 0; i < h->f.opt.queue_count; i++)
		answer_as(h, role);
	assert_string_equal(recorded(), "claim:a:10 claim:b:10 claim:c:10");
}

static void
tick(struct house *h, int n)
{
	answer_with(h,
	    (struct mq_claimed){
		.tick = n, .missing = n < 0, .now_ms = 2000, .due_ms = -1});
}

/* The first message that falls due: in so many seconds, in this one of the queues. */
static void
fall_due(struct house *h, const char *about)
{
	int s = atoi(about);

	inbox_changed(h->inbox, queue_of(strchr(about, ' ') + 1));
	claim(h);
	answer_with(h,
	    (struct mq_claimed){
		.role = MQ_ROLE_WATCH, .due_ms = s > 0 ? s * 1000 : s});
	claim(h);
	(void)recorded();
}

static void
look_over(const char *about)
{
	long long waiting[3];
	int n = sscanf(
	    about, "%lld %lld %lld", &waiting[0], &waiting[1], &waiting[2]);

	looked_fn(looked_arg, n > 0 ? waiting : NULL, n > 0 ? n : 0);
}

static void
look_around(struct house *h, bool sending)
{
	int room[3], i;

	for (i = 0; i < 3; i++)
		room[i] = room_of(h, i);
	inbox_look_around(h->inbox, room, sending);
}

static void
start_all(struct house *h, int queue)
{
	struct message *m;

	while ((m = hand_next(h->f.hand, queue)) != NULL) {
		record("%s", name_of(m));
		hand_start(h->f.hand, m);
	}
}

/* A message that was claimed just now. */
static void
settle_one(struct house *h, int queue)
{
	inbox_settling(h->inbox, queue, mq_clock_steady_s() + 1);
}

static void
run_out(struct mq_timer *timer)
{
	mq_timer_stop(timer);
	timer->fire(timer->arg);
}

static const char *
queue_or_none(int queue)
{
	return queue == -1 ? "-" : queue_names[queue];
}

/* How many seconds, or milliseconds, a timer still runs; -1: it does not. */
static void
record_timer(struct house *h, struct mq_timer *timer, double unit)
{
	double left = ev_timer_remaining(h->f.loop, &timer->ev);

	record("%d", mq_timer_runs(timer) ? (int)(left / unit + 0.5) : -1);
}

static bool
ask(struct house *h, const char *word, const char *about)
{
	struct inbox *in = h->inbox;
	int q = which(about), next;

	WORD("has-next", answers(hand_next(h->f.hand, -1) != NULL));
	WORD("more", answers(in->queues[q].reasons != 0));
	WORD("expects", q = inbox_expects(in, &next),
	    record("%s %s", queue_or_none(q), queue_or_none(next)));
	WORD("asks", next = inbox_asks(in, &h->terms),
	    record("%s", next == -1 ? "none" : queue_names[next]));
	WORD("woken", answers(h->woken), h->woken = false);
	WORD("ready", answers(inbox_ready(in)));
	WORD("lets-bring", answers(inbox_lets_bring(in, q)));
	WORD("drained", answers(inbox_drained(in)));
	WORD("claiming", answers(inbox_is_claiming(in)));
	WORD("tick-of", record("%d", (int)inbox_tick(in, q)));
	WORD("server-ms", record("%d", (int)(inbox_server_ms(in) / 100 * 100)));
	WORD("looks-for-pauses", answers(mq_timer_runs(&in->look_timer)));
	WORD("due-in", record_timer(h, &in->due_timer, 1));
	WORD("first", record_timer(h, &in->settle_first, 0.001));
	return false;
}

/* What the server says. */
static bool
hear(struct house *h, const char *word, const char *about)
{
	const struct mq_answer no = {.error = "no", .status = 1};
	struct inbox *in = h->inbox;
	int q = which(about);

	WORD("arrive", arrive(h, about, MQ_ROLE_NONE));
	WORD("arrive-large", arrive_large(h));
	WORD("answer-only", arrive(h, "", MQ_ROLE_NONE));
	WORD("answer", arrive(h, about, MQ_ROLE_NONE), claim(h));
	WORD("take", arrive(h, about, MQ_ROLE_CLAIM), claim(h));
	WORD("is", answer_as(h, role_of(about)));
	WORD("all-are", claim_all(h, role_of(about)));
	WORD("tick", tick(h, atoi(about)));
	WORD("is-paused",
	    answer_with(h, (struct mq_claimed){.paused = true, .due_ms = 9}));
	WORD(
	    "is-lost", answer_with(h, (struct mq_claimed){.n = MQ_CLAIM_LOST}));
	WORD("is-bad", answer_with(h, (struct mq_claimed){.n = MQ_CLAIM_BAD}));
	WORD("refuse", claimed_fn(in, &no));
	WORD("no-answer", claimed_fn(in, NULL));
	WORD("changed", inbox_changed(in, q));
	WORD("called", inbox_called(in, q));
	WORD("looked", look_over(about));
	WORD("due", fall_due(h, about));
	return false;
}

/* How things are. */
static bool
arrange(struct house *h, const char *word, const char *about)
{
	int q = which(about);

	WORD("room", h->room = atoi(about));
	WORD("no-room", h->no_room[q] = true);
	WORD("full", hand_bar(h->f.hand, q, BAR_FULL, true));
	WORD("away", h->queues[q].absent = true);
	WORD("one-by-one", h->terms.one_by_one = true);
	WORD("takes-back", h->terms.takes_back = true);
	WORD("mute", h->f.server.session.wake = NULL);
	WORD("add", add(&h->f, about));
	WORD("no-more", h->inbox->queues[q].reasons = 0);
	WORD("time-is-over",
	    h->inbox->queues[q].look_at = h->inbox->queues[q].claim_at = 0);
	WORD("round", ev_run(h->f.loop, EVRUN_NOWAIT));
	WORD("look-over", run_out(&h->inbox->look_timer));
	WORD("due-over", run_out(&h->inbox->due_timer));
	WORD("settle-first-over", run_out(&h->inbox->settle_first));
	return false;
}

/* What the engine has the inbox do. */
static bool
engine(struct house *h, const char *word, const char *about)
{
	struct inbox *in = h->inbox;
	int q = which(about);

	WORD("claim", claim(h));
	WORD("start", start_all(h, q));
	WORD("settling", settle_one(h, q));
	WORD("brought", inbox_brought(in, q));
	WORD("paused", inbox_pause_seen(in, q, true));
	WORD("resumed", inbox_pause_seen(in, q, false));
	WORD("look", inbox_look(in, false));
	WORD("look-all", inbox_look(in, true));
	WORD("look-around", look_around(h, is(about, "sending")));
	WORD("pass", inbox_pass(in));
	WORD("down", inbox_down(in));
	return false;
}

static bool
take(void *arg, const char *word, const char *about)
{
	struct house *h = arg;
	bool known = ask(h, word, about) || hear(h, word, about) ||
	    arrange(h, word, about) || engine(h, word, about);

	take_facts(h);
	return known;
}

static void *
setup(void)
{
	struct house *h = mq_xcalloc(1, sizeof(*h));

	fixture_init(&h->f);
	h->room = 10;
	h->f.server.queues = h->queues;
	h->inbox = inbox_new(
	    h->f.loop, &h->f.opt, h->f.hand, h->f.facts, &h->f.server);
	return h;
}

static void
teardown(void *arg)
{
	struct house *h = arg;

	inbox_free(h->inbox);
	fixture_free(&h->f);
	free(h);
}

TEST_ROWS(claim)
TEST_ROWS(pause)
TEST_ROWS(bring)
TEST_ROWS(wakeup)

/* --- and others ----------------------------------------------------------------- */

TEST_OF(idle_consumers_look_six_times_a_second_together, struct house *h)
{
	static const struct {
		long long idle;
		double every;
	} rows[] = {{1, 1.0 / 6}, {3, 0.5}, {4, 2}, {12, 2}, {18, 3}, {180, 30},
	    {186, 30}};
	long long waiting[3] = {0};
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		claim_all(h, MQ_ROLE_IDLE);
		look_around(h, false);
		waiting[0] = rows[i].idle;
		waiting[1] = waiting[2] = 1;
		looked_fn(looked_arg, waiting, 3);
		assert_float_equal(
		    h->inbox->queues[0].every, rows[i].every, 0.001);
		(void)recorded();
		inbox_down(h->inbox);
		inbox_look(h->inbox, true);
	}
}

/* Once, whatever pauses come between. */
TEST_OF(a_deleted_queue_is_said, struct house *h)
{
	static const struct {
		bool missing, paused;
		const char *says;
	} rows[] = {{true, false, ""}, {true, true, "a: paused"},
	    {true, false, "a: resumed"}, {false, false, ""},
	    {false, true, "a: paused"}, {true, false, "a: the queue was"},
	    {true, false, ""}};
	FILE *say;
	char *text;
	size_t n, i;

	for (i = 0; i < COUNT(rows); i++) {
		say = open_memstream(&text, &n);
		mq_say_to(say);
		inbox_down(h->inbox);
		inbox_look(h->inbox, true);
		claim(h);
		answer_with(h,
		    (struct mq_claimed){.missing = rows[i].missing,
			.paused = rows[i].paused,
			.due_ms = -1});
		mq_say_to(h->f.say);
		fclose(say);
		assert_non_null(strstr(text, rows[i].says));
		assert_int_equal(*rows[i].says == '\0', n == 0);
		free(text);
		(void)recorded();
	}
}
