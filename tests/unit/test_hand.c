/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The hand: the states of messages and their counts, their order, what may start, which
 * are equal, and what the server holds.
 */
#include "hand.h"

/* --- a test a row --------------------------------------------------------------- */

static const struct row state_rows[] = {
    {"each state is counted by queue",
	{"add a1 a2 a3 a4 a5 b1", "start a2 a3 a4 a5 b1", "end a3 a4 a5",
	    "settle a4 a5", "settled a5", "states -> 1 2 1 1 1",
	    "states a -> 1 1 1 1 1", "states b -> 0 1 0 0 0",
	    "states c -> 0 0 0 0 0", "size -> 6", "size a -> 5", "forget a5 b1",
	    "states -> 1 1 1 1 0", "size -> 4", "size b -> 0"}},
    {"bytes are those of the held ones",
	{"bytes -> 0", "add a1 b12", "bytes -> 5", "start a1", "bytes -> 3",
	    "hold a1", "bytes -> 5", "settle b12", "bytes -> 2", "forget a1",
	    "bytes -> 0"}},
    {"what is held again has not been started",
	{"add a1 a2 a3", "start a1 a2 a3", "started -> 3", "hold a1",
	    "started -> 2", "end a2", "started -> 2", "lose a3", "hold a3",
	    "started -> 1"}},
    {"what is held again can start as if for the first time",
	{"attempt a1", "start a1", "unpack a1", "attached a1",
	    "unpacked a1 -> yes", "hold a1 -> kept:a1", "unpacked a1 -> no",
	    "start a1", "hold a1"}},
    {"what is lost is forgotten rather than held again",
	{"add a1 a2 a3", "start a1 a2 a3", "lose a1", "gone a2",
	    "hold a1 a2 a3", "all -> a3", "states -> 1 0 0 0 0"}},
    {"messages come, go and are lost",
	{"moved -> no", "add a1 a2", "moved -> yes", "start a1", "end a1",
	    "settle a1", "start a2", "hold a2", "moved -> no", "settled a1",
	    "moved -> yes", "lose a2", "moved -> yes", "gone a2",
	    "moved -> yes", "forget a1", "moved -> yes", "sweep",
	    "moved -> no"}},
    {"the forgotten ones live until the end of the turn",
	{"add a1 b1 a2", "attached b1", "forget b1 -> kept:b1", "all -> a1 a2",
	    "all b", "last -> b1", "add c1", "last -> b1", "sweep", "sweep",
	    "all c -> c1"}},
    {"a message is found by its number",
	{"add a1 b1 a2", "find 2 -> b1", "start b1", "find 2 -> b1",
	    "forget b1", "find 2 -> none", "find 3 -> a2", "find 4 -> none",
	    "sweep", "add b1", "find 2 -> none", "find 4 -> b1"}},
    {"all are in the order of their claims, whatever their states",
	{"add b1 a1 b2 a2", "start a1 b2", "settle b1", "hold a1",
	    "all -> b1 a1 b2 a2", "all a -> a1 a2", "all b -> b1 b2", "all c"}},
};

static const struct row start_rows[] = {
    {"gives back the newest first",
	{"add b1 a1 b2 a2", "back b -> b2 b1", "states -> 2 0 0 2 0",
	    "states b -> 0 0 0 2 0", "states a -> 2 0 0 0 0"}},
    {"gives all back by the order of queues",
	{"add c1 b1 a1 c2 a2", "back -> a2 a1 b1 c2 c1", "newest -> none"}},
    {"starts by the order of queues",
	{"add c1 b1 a1 c2 a2", "bytes -> 10", "start-one c -> c1",
	    "start-all -> a1 a2 b1 c2", "next -> none", "bytes -> 0"}},
    {"what returns has its place",
	{"add a1 a2 a3", "start-one -> a1", "start-one -> a2", "hold a1 a2",
	    "add a4", "next a -> a1", "start-all -> a1 a2 a3 a4"}},
    {"what returns last has its place, too",
	{"add a1 a2 a3 a4 a5", "start a2 a3 a5", "hold a5 a3 a2",
	    "start-all -> a1 a2 a3 a4 a5"}},
    {"what returns is given back in order",
	{"add a1 b1 a2", "start-one a -> a1", "hold a1", "back a -> a2 a1"}},
    {"nothing starts from a paused queue",
	{"add a1 b1", "paused a", "next a -> none", "start-all -> b1",
	    "next -> none", "resumed a", "start-all -> a1"}},
    {"a paused queue gives back", {"add a1 a2", "paused a", "back a -> a2 a1"}},
    {"while all are paused nothing starts",
	{"add a1 b1", "paused", "next -> none", "next b -> none",
	    "is-paused b -> yes", "is-paused -> yes", "resumed",
	    "is-paused b -> no", "start-all -> a1 b1"}},
    {"a queue is paused beside all",
	{"add a1 b1", "paused a", "is-paused -> no", "paused", "resumed",
	    "is-paused a -> yes", "is-paused b -> no", "start-all -> b1"}},
    {"each bar is one by itself",
	{"add a1 b1", "paused a", "pausing a", "full a", "is-pausing a -> yes",
	    "is-full a -> yes", "is-full b -> no", "resumed a",
	    "is-paused a -> no", "next a -> none", "free a", "next a -> none",
	    "is-pausing a -> yes", "pausing-over a", "next a -> a1"}},
    {"a full queue lets the others start, and gives back",
	{"add a1 b1", "full a", "next a -> none", "start-all -> b1",
	    "back a -> a1"}},
};

static const struct row equal_rows[] = {
    {"equal ones have the same bytes and queue",
	{"add a1 a2", "equal a1 a2 -> no no", "copy b a1", "equal a1 -> no",
	    "add a1", "equal a1 a1#3 a2 -> yes yes no", "equal a1#2 -> no"}},
    {"what had an equal one stays so",
	{"add a1 a1 a1", "forget a1", "equal a1 a1#2 -> yes yes", "forget a1",
	    "equal a1 -> yes", "add a1", "equal a1#2 -> yes"}},
    {"a forgotten one is equal to none",
	{"add a1", "forget a1", "add a1", "equal a1 -> no"}},
    {"a lost one is equal",
	{"add a1", "lose a1", "add a1", "equal a1 a1#2 -> yes yes"}},
    /* A step settles several messages only if they are equal. */
    {"what has an id, and was claimed again, is equal to none",
	{"ids", "add a1 a1", "equal a1 a1#2 -> no no"}},
};

/* What the server should hold for us, and in which order. */
static const struct row owned_rows[] = {
    {"the server holds what it has not lost or settled",
	{"add a1 a2 a3 a4 a5 a6 b1", "start a2 a3 a4", "end a3 a4",
	    "settle a4 a5", "owned a -> 6", "settled a5", "owned a -> 5",
	    "lose a1", "gone a6", "owned a -> 3", "forget a2", "owned a -> 2",
	    "owned b -> 1", "owned c -> 0"}},
    {"order is there again when all are gone that had none",
	{"in-order a -> yes", "add a1 a2 b1", "disorder a", "in-order a -> no",
	    "in-order b -> yes", "add a3", "forget a1", "in-order a -> no",
	    "forget a2", "in-order a -> yes"}},
};

/* Of queue a the server has handed out so many, and holds these, the newest first. */
static const struct row reconcile_rows[] = {
    {"nothing is missing",
	{"add a1 b1 a2 a3", "start b1", "server 0 a3 a2 a1", "owned a -> 3",
	    "in-order a -> yes"}},
    {"what the server does not hold is missing",
	{"add a1 b1 a2 a3 a4 a5", "in-flight a2", "lose a3", "gone a4",
	    "server 0 a5 -> missing:a1:1", "owned a -> 2"}},
    {"in all states, until it is settled",
	{"add a1 a2 a3 a4 a5", "start a2 a3 a4 a5", "end a3 a4 a5",
	    "settle a4 a5", "settled a5",
	    "server 5 -> missing:a1:1 missing:a2:2 missing:a3:3 missing:a4:4",
	    "all -> a5"}},
    {"an answer that was lost is made up",
	{"server 2 a2 a1", "server 4 a4 a3 a2 a1", "server 4 a4 a3 a2 a1",
	    "states -> 4 0 0 0 0", "in-order a -> yes",
	    "start-all -> a1 a2 a3 a4"}},
    {"an answer that was lost had an equal message",
	{"server 1 a1", "server 2 a1 -> missing:a1:1", "owned a -> 1"}},
    {"what nobody claimed is out of order",
	{"server 1 a1", "server 1 a1 a0", "states -> 2 0 0 0 0",
	    "in-order a -> no", "forget a1", "in-order a -> no", "forget a0",
	    "in-order a -> yes"}},
    {"what nobody claimed does not count as claimed",
	{"server 1 a1", "server 1 a1 a0", "forget a1 a0", "server 2 a2",
	    "in-order a -> yes"}},
    {"a new name has received nothing",
	{"server 2 a2 a1", "renamed",
	    "server 1 a3 -> missing:a1:1 missing:a2:2", "in-order a -> yes",
	    "start-all a -> a3"}},
    {"under a new name claims are counted anew",
	{"server 2 a2 a1", "renamed", "server 1 a3 a2 a1", "in-order a -> yes",
	    "states -> 3 0 0 0 0"}},
    {"a message that came by itself counts as claimed",
	{"server 1 a1", "add a2", "server 2 a2 a1", "all -> a1 a2",
	    "server 3 a3 a2 a1", "all -> a1 a2 a3"}},
    {"of equal ones the oldest is there",
	{"server 3 a1 a1 a1", "server 3 a1 -> missing:a1:2 missing:a1:3",
	    "find 1 -> a1"}},
    {"as many are missing as were settled, and one was claimed",
	{"server 4 a1 a1 a1 a1", "sent a1 a1#4",
	    "server 5 a1 a1 a1 -> missing:a1:1 missing:a1:4",
	    "server 5 a1 a1 -> missing:a1:5"}},
    {"of equal ones that were all settled the oldest is there",
	{"server 2 a1 a1", "sent a1 a1#2", "server 2 a1 -> missing:a1:2",
	    "was-sent a1 -> no"}},
    {"the settlement of what is there had no effect",
	{"server 2 a2 a1", "sent a1 a2", "server 2 a2 a1",
	    "was-sent a1 a2 -> no no"}},
    {"one in flight still may have one",
	{"server 2 a2 a1", "sent a1 a2", "in-flight a1", "server 2 a2 a1",
	    "was-sent a1 a2 -> yes no"}},
    {"that of what is not there may have had one",
	{"server 2 a2 a1", "sent a1 a2", "keep", "server 2 a2 -> missing:a1:1",
	    "was-sent a1 a2 -> yes no"}},
    {"what the server has lost is another message if it is there",
	{"server 1 a1", "lose a1", "server 1 a1", "all -> a1 a1",
	    "find 2 -> a1", "in-order a -> no"}},
    {"what was there once has to be there again",
	{"server 2 a2 a1", "server 2 a2 -> missing:a1:1",
	    "server 2 -> missing:a2:2", "all"}},
    {"other queues are not concerned",
	{"add b1 a1 c1", "sent b1", "server 1 -> missing:a1:2", "all -> b1 c1",
	    "was-sent b1 -> yes"}},
};

/* --- the neighbours ------------------------------------------------------------- */

/* done is said of one whose outcome is confirmed: never by the hand. */
void
message_let_go(struct message *m, bool done)
{
	assert_false(done);
	if (m->cleanup_fd != 0)
		record("kept:%s", name_of(m));
	m->cleanup_fd = 0;
}

/* --- their steps ---------------------------------------------------------------- */

struct house {
	struct fixture f;
	unsigned long moves;	    /* when they were asked for last */
	const struct message *last; /* that was forgotten */
	bool keep;		    /* what is missing is not forgotten */
};

static void
record_one(const struct message *m)
{
	record("%s", m != NULL ? name_of(m) : "none");
}

static void
record_moved(struct house *h)
{
	answers(hand_moves(h->f.hand) != h->moves);
	h->moves = hand_moves(h->f.hand);
}

static void
start_one(struct hand *hand, struct message *m)
{
	record_one(m);
	hand_start(hand, m);
}

static void
start_all(struct hand *hand, int queue)
{
	struct message *m;

	while ((m = hand_next(hand, queue)) != NULL)
		start_one(hand, m);
}

static void
give_back(struct hand *hand, int queue)
{
	struct message *m;

	while ((m = hand_newest(hand, queue)) != NULL) {
		record_one(m);
		hand_settle(hand, m);
	}
}

/* about: the queue, and the bytes. */
static void
add_copy(struct hand *hand, const char *about)
{
	hand_add(
	    hand, queue_of(about), mq_xstrdup(about + 2), strlen(about + 2));
}

static void
reconcile(struct house *h, const char *about)
{
	struct mq_element list[16];
	struct mq_held held = {.elements = list};
	struct message *m, *next;
	char word[64];

	next_word(&about, word);
	held.received = atoi(word);
	for (; next_word(&about, word); held.n++) {
		assert_between(held.n, 0, COUNT(list) - 1);
		list[held.n] =
		    (struct mq_element){mq_xstrdup(word), strlen(word)};
	}
	hand_compare(h->f.hand, 0, &held);
	while (held.n > 0)
		free(list[--held.n].data);
	for (m = hand_missing(h->f.hand, 0, NULL); m != NULL; m = next) {
		next = hand_missing(h->f.hand, 0, m);
		record("missing:%s:%lu", name_of(m), m->number);
		if (!h->keep)
			hand_forget(h->f.hand, m);
	}
}

static void
unpack(struct message *m)
{
	const char *bad;

	assert_int_equal(
	    mq_envelope_parse(m->element, m->len, &m->envelope, &bad), 0);
}

static bool
ask(struct house *h, const char *word, const char *about)
{
	const struct hand *hand = h->f.hand;
	int q = which(about);

	WORD("states", record_states(hand, q));
	WORD("size", record("%d", hand_size(hand, q)));
	WORD("bytes", record("%d", (int)hand_unstarted_bytes(hand)));
	WORD("started", record("%ld", hand_started(hand)));
	WORD("last", record_one(h->last));
	WORD("moved", record_moved(h));
	WORD("owned", record("%d", hand_owned(hand, q)));
	WORD("in-order", answers(hand_in_order(hand, q)));
	WORD("all", record_all(hand, q));
	WORD("next", record_one(hand_next(hand, q)));
	WORD("newest", record_one(hand_newest(hand, q)));
	WORD("find", record_one(hand_find(hand, (unsigned long)atoi(about))));
	WORD("is-paused", answers(hand_barred(hand, q, BAR_PAUSED)));
	WORD("is-pausing", answers(hand_barred(hand, q, BAR_PAUSING)));
	WORD("is-full", answers(hand_barred(hand, q, BAR_FULL)));
	return false;
}

static bool
bar(struct hand *hand, const char *word, int q)
{
	WORD("paused", hand_bar(hand, q, BAR_PAUSED, true));
	WORD("resumed", hand_bar(hand, q, BAR_PAUSED, false));
	WORD("pausing", hand_bar(hand, q, BAR_PAUSING, true));
	WORD("pausing-over", hand_bar(hand, q, BAR_PAUSING, false));
	WORD("full", hand_bar(hand, q, BAR_FULL, true));
	WORD("free", hand_bar(hand, q, BAR_FULL, false));
	return false;
}

static bool
act(struct house *h, const char *word, const char *about)
{
	struct hand *hand = h->f.hand;
	int q = which(about);

	WORD("add", add(&h->f, about));
	WORD("copy", add_copy(hand, about));
	WORD("ids", h->f.layout.has |= MQ_HAS_IDS);
	WORD("attempt", add_with(&h->f, about, MQ_HEADER_ATTEMPT, "1"));
	WORD("start-one", start_one(hand, hand_next(hand, q)));
	WORD("start-all", start_all(hand, q));
	WORD("back", give_back(hand, q));
	WORD("disorder", hand_disorder(hand, q));
	WORD("renamed", hand_renamed(hand));
	WORD("keep", h->keep = true);
	WORD("server", reconcile(h, about));
	WORD("sweep", hand_sweep(hand));
	return bar(hand, word, q);
}

static bool
do_to(struct house *h, const char *word, struct message *m)
{
	struct hand *hand = h->f.hand;

	WORD("start", hand_start(hand, m));
	WORD("hold", hand_put_back(hand, m));
	WORD("end", hand_end(hand, m));
	WORD("settle", hand_settle(hand, m));
	WORD("settled", hand_settled(hand, m));
	WORD("lose", hand_lose(hand, m, false));
	WORD("gone", hand_lose(hand, m, true));
	WORD("forget", hand_forget(hand, m), h->last = m);
	WORD("attached", m->cleanup_fd = 1);
	WORD("unpack", unpack(m));
	WORD("unpacked", answers(m->envelope.headers != NULL));
	WORD("equal", answers(m->equal));
	WORD("in-flight", m->in_flight = true);
	WORD("sent", m->sent = true);
	WORD("was-sent", answers(m->sent));
	return false;
}

/* Another word is for each of the messages behind it. */
static bool
take(void *arg, const char *word, const char *about)
{
	struct house *h = arg;
	char name[64];
	bool known = false;

	if (ask(h, word, about) || act(h, word, about))
		return true;
	while (next_word(&about, name))
		known = do_to(h, word, find(&h->f, name));
	return known;
}

static void *
setup(void)
{
	struct house *h = mq_xcalloc(1, sizeof(*h));

	fixture_init(&h->f);
	return h;
}

/* All that the hand had is freed. */
static void
teardown(void *arg)
{
	struct house *h = arg;

	fixture_free(&h->f);
	free(h);
}

TEST_ROWS(state)
TEST_ROWS(start)
TEST_ROWS(equal)
TEST_ROWS(owned)
TEST_ROWS(reconcile)

/* --- and others ----------------------------------------------------------------- */

/* Only beginning and end of a long element are hashed. */
TEST_OF(long_messages_are_compared_as_a_whole, struct house *h)
{
	static const struct {
		size_t len, differs; /* at this byte; len: nowhere */
		bool equal;
	} rows[] = {{600, 300, false}, {600, 600, true}, {600, 0, false},
	    {600, 599, false}, {256, 255, false}, {513, 256, false},
	    {3, 3, true}, {3, 2, false}, {8, 7, false}, {9, 8, false}};
	struct hand *hand = h->f.hand;
	struct message *m[2];
	char *element;
	size_t i, j;

	for (i = 0; i < COUNT(rows); i++) {
		for (j = 0; j < 2; j++) {
			element = mq_xcalloc(1, rows[i].len + 1);
			memset(element, 'x', rows[i].len);
			if (j == 1 && rows[i].differs < rows[i].len)
				element[rows[i].differs] = 'y';
			m[j] = hand_add(hand, 0, element, rows[i].len);
		}
		assert_int_equal(m[0]->equal, rows[i].equal);
		assert_int_equal(m[1]->equal, rows[i].equal);
		hand_forget(hand, m[0]);
		hand_forget(hand, m[1]);
	}
}

TEST_OF(a_claim_has_its_number_queue_and_time, struct house *h)
{
	double before = mq_clock_steady_s();
	const struct message *m;

	add(&h->f, "a1 b1");
	m = find(&h->f, "b1");
	assert_int_equal(m->number, 2);
	assert_int_equal(m->queue, 1);
	assert_string_equal(m->queue_name, "b");
	assert_true(m->since >= before && m->since <= mq_clock_steady_s());
}
