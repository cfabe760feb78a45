/*
 * An outbox, with the inbox of inbox.h, whose neighbours record what they see.
 */
#include "base/exit.h"
#include "inbox.h"
#include "mq-consume/outbox/outbox.h"

/* --- a test a row ---------------------------------------------------------- */

static const struct row together_rows[] = {
    /* Somebody may wait for a key or a group. */
    {"what holds waits less",
	{"run a1 a2", "group a2", "ack a1", "timer -> 50", "ack a2",
	    "timer -> 20"}},
    /* In fork mode, a killed consumer repeats no more than twice its slots. */
    {"as many wait as there are slots",
	{"slots 2", "run a1 a2 a3", "ack a1 a2",
	    "ack a3 -> ack:a1 ack:a2 ack:a3"}},
    {"acks wait for others",
	{"run a1 a2 a3", "ack a2 a1 a3", "waits -> yes", "settling -> 3",
	    "flush -> ack:a2 ack:a1 ack:a3", "waits -> no",
	    "settled -> done:a2", "settling -> 2", "moves -> 1"}},
    {"acks wait a little", {"run a1", "ack a1", "loop -> ack:a1"}},
    {"the oldest go together",
	{"run a1 a2 a3 a4 a5", "ack a4 a2 a1 a3",
	    "flush -> oldest:a( a1 a2 a3 a4 )",
	    "settled -> done:a1 done:a2 done:a3 done:a4"}},
    {"others may be between",
	{"run a1 a2 a3 a4 a5 a6 a7 b1 b2 b3 b4 b5 b6 b7",
	    "ack a2 a3 a6 a5 b1 b2 b3 b4 b6 b7",
	    "flush -> oldest:a( a2@2 a3@3 a5@5 a6@6 ) "
	    "oldest:b( b1 b2 b3 b4 b6@6 b7@7 )"}},
    {"equal ones are no part of it",
	{"run a1 a2 a3 a4 a5 a6 a7 a3", "ack a1 a2 a3 a4 a5",
	    "flush -> oldest:a( a1 a2 a4@4 a5@5 ) ack:a3", "in-order a -> no",
	    "in-order b -> yes"}},
    {"what the server has lost has no place",
	{"run a1 a2 a3 a4 a5 a6 a7 a8", "reject a3 -> reject:a3", "lost a1",
	    "gone a5", "ack a4 a6 a7 a8",
	    "flush -> oldest:a( a4@2 a6@3 a7@4 a8@5 )", "oldest -> a2"}},
    /* Others, which would be costly now, wait until those between have ended. */
    {"many wait for those between",
	{"enough 6", "run a1 a2 a3 a4 a5 a6 a7 a8 a9 b1 b2 b3 b4 b5",
	    "ack a2 a3 a4 a5", "flush-enough", "ack a9 b5",
	    "flush-enough -> oldest:a( a2@2 a3@3 a4@4 a5@5 )", "waits -> yes",
	    "ack b1 b2 b3", "flush-enough",
	    "loop -> oldest:b( b1 b2 b3 b5@5 ) ack:a9"}},
    /* Not if nothing can be sent cheaply, and not if one may hold a key. */
    {"many do not wait in vain",
	{"enough 4", "run a1 a2 a3 a4 a5 a6 a7 a8", "ack a2 a4 a6 a8",
	    "flush-enough -> oldest:a( a2@2 a4@4 a6@6 a8@8 )", "key b1",
	    "run b2 b3 b4 b5 b6", "ack b1 b2 b3 b4 b6",
	    "flush-enough -> oldest:b:holds( b1 b2 b3 b4 b6@6 )"}},
    {"what is sent before is older",
	{"run a1 a2 a3 a4 a5", "reject a1 -> reject:a1", "ack a2 a3 a4 a5",
	    "flush -> oldest:a( a2 a3 a4 a5 )"}},
    {"acks out of order go alone",
	{"run a1 a2 a3 a4", "disorder a", "ack a1 a2 a3 a4",
	    "flush -> ack:a1 ack:a2 ack:a3 ack:a4"}},
    {"keys are a batch of their own",
	{"key a1", "run a2 a3 a4 a5", "ack a1 a2 a3 a4", "holds -> yes",
	    "flush -> oldest:a:holds( a1 a2 a3 a4 )", "holds -> no"}},
    {"an awaited one goes at once and alone",
	{"run a1 a2 a3 a4", "awaited a4", "ack a1 a2 a3",
	    "ack a4 -> ack:a1 ack:a2 ack:a3 ack:a4:result"}},
    {"a batch that is not the oldest goes one by one",
	{"run a1 a2 a3 a4", "ack a1 a2 a3 a4",
	    "flush -> oldest:a( a1 a2 a3 a4 )",
	    "settled lost -> ack:a1 ack:a2 ack:a3 ack:a4", "in-order a -> no",
	    "refused -> no"}},
    {"a refused batch is repeated one by one",
	{"run a1 a2 a3 a4", "ack a1 a2 a3 a4",
	    "flush -> oldest:a( a1 a2 a3 a4 )",
	    "refuse again -> refused:no refused:no refused:no refused:no",
	    "send-again -> ack:a1 ack:a2 ack:a3 ack:a4"}},
};

static const struct row equal_rows[] = {
    {"of equal ones, one settlement is under way",
	{"run a1 a1 a1 a1 b1", "reject a1", "flush-enough -> reject:a1",
	    "ack a1#2", "again a1#3", "flush", "reject b1 -> reject:b1",
	    "refused -> no", "settled -> done:a1",
	    "flush-enough -> equal:a( again:a1 ack:a1 )", "settled -> done:b1",
	    "settled -> done:a1 done:a1", "settling -> 0"}},
    {"equal ones that are not there go one by one",
	{"run a1 a1", "reject a1 a1#2",
	    "flush -> equal:a( reject:a1 reject:a1 )", "settled lost",
	    "flush-enough -> reject:a1", "settled -> done:a1",
	    "flush-enough -> reject:a1", "settled lost -> over:a1"}},
    {"what asks for more goes alone",
	{"run a1 a1 a1", "pause a1#2", "to-b a1#3", "reject a1", "again a1#2",
	    "push a1#3", "flush-enough -> reject:a1", "settled -> done:a1",
	    "flush-enough -> pause:a:5000 again:a1", "paused lost",
	    "settled -> done:a1", "flush-enough -> push:a1"}},
    {"equal ones wait for what goes back",
	{"run a1 a1 a1 a1 a1 a1", "reject a1", "keep a1#6 a1#5 a1#4 a1#3",
	    "flush-enough -> reject:a1", "send-back", "settled -> done:a1",
	    "send-back -> back:a:each( a1 a1 a1 a1 )", "reject a1",
	    "flush-enough", "went 4 -> done:a1 done:a1 done:a1 done:a1",
	    "flush-enough -> reject:a1"}},
    {"equal ones that were not started go back together",
	{"add a1 a1 a1 a1", "keep a1#4 a1#3 a1#2 a1#1",
	    "send-back -> back:a:each( a1 a1 a1 a1 )", "went 0",
	    "flush -> equal:a( front:a1 front:a1 front:a1 front:a1 )"}},
};

static const struct row once_more_rows[] = {
    {"a refused one is repeated",
	{"run a1 a2 a3", "reject a1 a2 a3 -> reject:a1 reject:a2 reject:a3",
	    "refuse again -> refused:no", "settled -> done:a2",
	    "refused -> yes", "sent a1 -> no", "in-order a -> no",
	    "send-again -> reject:a1", "refused -> no", "settled -> done:a3",
	    "settled -> done:a1", "unanswered -> 0"}},
    {"the oldest is given back last",
	{"run a1 a2 a3 a4 a5", "front a5 a4 a2 -> front:a5 front:a4 front:a2",
	    "reject a1 a3 -> reject:a1 reject:a3", "lose",
	    "send-again -> reject:a1 reject:a3 front:a5 front:a4 front:a2"}},
    {"without a connection nothing is sent",
	{"run a1 a2 a3", "ack a1", "down", "ack a2", "front a3", "flush",
	    "send-again", "up", "send-again -> ack:a1 ack:a2 front:a3",
	    "waits -> no"}},
    /* Else the next turn, which may come before the end of the session, would send another
     * one of equal messages. */
    {"a lost answer wakes nobody",
	{"run a1 a2 a3 a4 b1", "reject b1 -> reject:b1", "ack a1 a2 a3 a4",
	    "flush -> oldest:a( a1 a2 a3 a4 )", "lose", "woken -> no",
	    "send-again -> ack:a1 ack:a2 ack:a3 ack:a4 reject:b1",
	    "settled -> done:a1", "woken -> yes"}},
    {"a wrong key gives back",
	{"run a1 a2", "again a1 -> again:a1",
	    "refuse wrong-type -> front:a1 wrong-key",
	    "refuse wrong-type -> refused:no"}},
    {"a pause is sent first",
	{"run a1", "pause a1", "again a1 -> pause:a:5000 again:a1",
	    "pausing a -> 1", "paused -> paused:a", "pausing a -> 0", "lose",
	    "send-again -> pause:a:5000 again:a1", "pausing a -> 1",
	    "paused lost", "pausing a -> 0"}},
    {"a lost answer is made up",
	{"run a1", "again a1 -> again:a1", "lose", "confirm a1 -> done:a1",
	    "counters -> a:done=0,failed=0,retried=1,lost=0"}},
    /* Nothing but acks, until there is room. */
    {"what copies waits for room",
	{"run a1 a2 b1", "full", "again a1 b1", "ack a2", "flush -> ack:a2",
	    "refused -> yes", "send-again", "room",
	    "send-again -> again:a1 again:b1", "refused -> no", "copying -> 4",
	    "settled -> done:a2", "settled -> done:a1", "settled -> done:b1",
	    "copying -> 0"}},
    /* If its connection is lost then, a message that is missing was not settled. */
    {"what waits for room after a refusal is not sent",
	{"run a1 a2 a3 a4", "back a4 a3 a2 a1 -> back:a( a4 a3 a2 a1 )", "full",
	    "went 0", "sent a1 -> no", "in-flight a1 -> no", "room",
	    "send-again -> front:a4 front:a3 front:a2 front:a1"}},
};

static const struct row back_rows[] = {
    {"a connection that takes nothing is not tried for ever",
	{"run a1 a2 a3 a4", "deaf", "back a4 a3 a2 a1 -> back:a( a4 a3 a2 a1 )",
	    "hears", "send-back -> back:a( a4 a3 a2 a1 )",
	    "went 4 -> done:a4 done:a3 done:a2 done:a1"}},
    {"the newest go back together",
	{"run a1 a2 a3 a4 b1 b2 b3 b4",
	    "back a4 a3 a2 a1 b4 b3 b2 b1 -> back:a( a4 a3 a2 a1 )",
	    "gives-back a -> yes", "send-back", "refused -> no",
	    "went 4 -> done:a4 done:a3 done:a2 done:a1", "gives-back a -> no",
	    "send-back -> back:b( b4 b3 b2 b1 )",
	    "went 3 -> done:b4 done:b3 done:b2", "send-back -> front:b1",
	    "settled -> done:b1", "settling -> 0"}},
    {"what is behind others goes back alone",
	{"run a1 a2 a3 a4 a5", "back a4 a3 a2 a1 -> back:a( a4 a3 a2 a1 )",
	    "went 0 -> front:a4 front:a3 front:a2 front:a1",
	    "gives-back a -> no", "settled -> done:a4",
	    "settled lost -> over:a3"}},
    {"those that look alike are all named",
	{"run a1 a1 a2 a3 b1 b2 b3 b4", "keep a1#2",
	    "back a3 a2 a1 -> back:a:each( a3 a2 a1 a1 )",
	    "went 4 -> done:a3 done:a2 done:a1 done:a1", "disorder b",
	    "back b1 b2 b3 b4 -> back:b:each( b4 b3 b2 b1 )"}},
    {"one more goes back behind the others",
	{"run a1 a2 a3 a4 a5 a6 b1",
	    "back a6 a5 a4 a3 -> back:a( a6 a5 a4 a3 )",
	    "front a1 a2 b1 -> front:b1",
	    "went 4 -> done:a6 done:a5 done:a4 done:a3",
	    "send-back -> front:a2 front:a1"}},
    /* The server had done a part of it. */
    {"what goes back survives a lost connection",
	{"run a1 a2 a3 a4 a5", "back a5 a4 a3 a2 -> back:a( a5 a4 a3 a2 )",
	    "lost a4", "lose -> over:a4", "confirm a5 -> done:a5",
	    "back a1 -> front:a3 front:a2 front:a1", "send-again",
	    "settling -> 3"}},
    {"what is refused together goes back alone",
	{"run a1 a2 a3 a4", "back a4 a3 a2 a1 -> back:a( a4 a3 a2 a1 )",
	    "back-refused -> front:a4 front:a3 front:a2 front:a1",
	    "refuse no-permission -> refused:no", "refused -> yes",
	    "send-again -> front:a4"}},
};

static const struct row ends_rows[] = {
    {"ends are told",
	{"run a1 a2 a3", "reject a1 a2 a3 -> reject:a1 reject:a2 reject:a3",
	    "settled -> done:a1", "settled lost -> over:a2",
	    "settled gone -> over:a3",
	    "counters -> a:done=0,failed=1,retried=0,lost=1", "settling -> 0"}},
    {"what is lost in flight is over",
	{"run a1 a2", "reject a1 a2 -> reject:a1 reject:a2", "lost a1 a2",
	    "settled -> over:a1", "lose -> over:a2", "counters"}},
    {"pushed ones are counted where they went",
	{"run a1 a2 a3", "to-c a1 a2", "to-b a3",
	    "push a1 a2 a3 -> push:a1 push:a2 push:a3", "settled -> done:a1",
	    "settled -> done:a2",
	    "settled -> c:done=0,failed=0,retried=0,lost=0:2 done:a3",
	    "counters -> b:done=0,failed=0,retried=0,lost=0:1 "
	    "a:done=3,failed=0,retried=0,lost=0"}},
    {"too long to be pushed",
	{"run a1", "to-b a1", "push a1 -> push:a1",
	    "settled too-long -> too-long:a1", "settling -> 0",
	    "reject a1 -> reject:a1", "settled -> done:a1"}},
};

/* --- the server --- */

struct house {
	struct fixture f;	  /* first: see fixture_init() */
	struct mq_counts counted; /* the last of a queue */
	char oldest[64];	  /* that the last batch of acks named */
	struct outbox outbox;
	bool woken; /* the engine was */
	bool deaf;  /* the connection takes no more, although it is up */
	struct {
		mq_answer_fn *fn;
		void *arg;
	} sent[64]; /* without an answer, in order */
	int sent_count;
	mq_answer_fn *paused_fn;
	void *paused_arg;
	mq_answer_fn *back_fn; /* NULL: nothing goes back */
	void *back_arg;
};

static struct house *house;

static const char *const outcomes[] = {
    "ack", "reject", "front", "again", "push"};

static void
await_answer(mq_answer_fn *fn, void *arg)
{
	assert_between(house->sent_count, 0, COUNT(house->sent) - 1);
	house->sent[house->sent_count].fn = fn;
	house->sent[house->sent_count++].arg = arg;
}

void
mq_consumer_settle(struct mq_consumer *k, int queue,
    const struct mq_settlement *how, int n, mq_answer_fn *fn, void *arg)
{
	int i;

	if (n > 1)
		record("equal:%s(", queue_names[queue]);
	for (i = 0; i < n; i++)
		record("%s:%s%s", outcomes[how[i].outcome],
		    payload_of(how[i].element, how[i].len),
		    how[i].result != NULL ? ":result" : "");
	if (n > 1)
		record(")");
	await_answer(fn, arg);
}

void
mq_consumer_ack_oldest(struct mq_consumer *k, int queue,
    const struct mq_acks *acks, mq_answer_fn *fn, void *arg)
{
	int i;

	snprintf(house->oldest, sizeof(house->oldest), "%s",
	    payload_of(acks->oldest.p, acks->oldest.n));
	record("oldest:%s%s(", queue_names[queue], acks->holds ? ":holds" : "");
	for (i = 0; i < acks->n; i++)
		record("%s%s%.0d",
		    payload_of(acks->elements[i].p, acks->elements[i].n),
		    acks->places[i] > i + 1 ? "@" : "",
		    acks->places[i] > i + 1 ? acks->places[i] : 0);
	record(")");
	await_answer(fn, arg);
}

void
mq_consumer_give_back(struct mq_consumer *k, int queue,
    const struct mq_newest *newest, mq_answer_fn *fn, void *arg)
{
	int i;

	record("back:%s%s(", queue_names[queue], newest->each ? ":each" : "");
	for (i = 0; i < newest->n; i++)
		record("%s",
		    payload_of(newest->elements[i].p, newest->elements[i].n));
	record(")");
	if (house->deaf) {
		fn(arg, NULL);
		return;
	}
	assert_null(house->back_fn);
	house->back_fn = fn;
	house->back_arg = arg;
}

void
mq_consumer_pause(struct mq_consumer *k, const char *queue, int64_t ms,
    mq_answer_fn *fn, void *arg)
{
	record("pause:%s:%d", queue, (int)ms);
	house->paused_fn = fn;
	house->paused_arg = arg;
}

void
mq_consumer_count(struct mq_consumer *k, const char *queue,
    const struct mq_counts *n, mq_answer_fn *fn, void *arg)
{
	house->counted = *n;
	record("%s:done=%lld,failed=%lld,retried=%lld,lost=%lld%s%.0lld", queue,
	    n->done, n->failed, n->retried, n->lease_lost,
	    n->published > 0 ? ":" : "", n->published);
}

void
mq_consumer_tell_running(struct mq_consumer *k, const struct mq_buf *text,
    mq_answer_fn *fn, void *arg)
{
}

/* The oldest sending is answered; NULL: the connection was lost. */
static void
answer_with(const struct mq_answer *answer, enum mq_settled how)
{
	mq_answer_fn *fn = house->sent[0].fn;
	void *arg = house->sent[0].arg;
	struct mq_answer with =
	    answer != NULL ? *answer : (struct mq_answer){0};

	with.n = how;
	assert_true(house->sent_count > 0);
	memmove(house->sent, house->sent + 1,
	    (size_t)--house->sent_count * sizeof(house->sent[0]));
	fn(arg, answer != NULL ? &with : NULL);
}

/* What goes back is answered: so many of it went. */
static void
answer_back(const struct mq_answer *answer, int n)
{
	mq_answer_fn *fn = house->back_fn;
	struct mq_answer with =
	    answer != NULL ? *answer : (struct mq_answer){0};

	with.n = n;
	assert_non_null(fn);
	house->back_fn = NULL;
	fn(house->back_arg, answer != NULL ? &with : NULL);
}

static void
lose_connection(struct house *h)
{
	up = false;
	if (h->back_fn != NULL)
		answer_back(NULL, 0);
	while (h->sent_count > 0)
		answer_with(NULL, MQ_SETTLED_LOST);
	up = true;
}

/* --- the engine --- */

/* Writes down what the outbox tells. */
static void
on_outbox_fact(void *arg, const struct fact *f)
{
	struct house *h = arg;

	if (f->kind == FACT_SETTLED) {
		record("%s:%s", f->yes ? "done" : "over", name_of(f->message));
		inbox_forget(&h->f.inbox, f->message);
	} else if (f->kind == FACT_UNFIT)
		record("too-long:%s", name_of(f->message));
	else if (f->kind == FACT_WRONG_KEY)
		record("wrong-key");
	else if (f->kind == FACT_WAKE)
		h->woken = true;
	else if (f->kind == FACT_REFUSED)
		record("refused:%s", f->text);
}

/* All of them are started. */
static void
run(struct house *h, const char *names)
{
	add(&h->f, names);
	start_all(&h->f, -1);
	(void)recorded();
}

static void *
setup(void)
{
	struct house *h = house = mq_xcalloc(1, sizeof(*h));
	struct fixture *f = &h->f;

	fixture_init(f);
	h->outbox = (struct outbox){.loop = f->loop,
	    .opt = &f->opt,
	    .server = &f->server,
	    .ids = &f->ids,
	    .inbox = &f->inbox,
	    .session = &f->session,
	    .host = "",
	    .hear = on_outbox_fact,
	    .arg = h};
	outbox_init(&h->outbox);
	return h;
}

static void
teardown(void *arg)
{
	struct house *h = arg;

	lose_connection(h);
	outbox_free(&h->outbox);
	fixture_free(&h->f);
	free(h);
}

/* --- what happens --- */

/* A name, or the nth message of it: a1#2. */
static struct message *
message_of(struct house *h, const char *word)
{
	struct message *m;
	char name[8];
	int n = 1;

	assert_true(sscanf(word, "%7[^#]#%d", name, &n) > 0);
	for (m = find(&h->f, name); n > 1; n -= is(name_of(m), name)) {
		m = TAILQ_NEXT(m, link);
		assert_non_null(m);
	}
	return m;
}

static bool
do_to(struct house *h, const char *word, struct message *m)
{
	struct outbox *o = &h->outbox;
	size_t i;

	for (i = 0; i < COUNT(outcomes); i++)
		WORD(outcomes[i], outbox_settle(o, m, (enum mq_outcome)i));
	WORD("keep", outbox_give_back(o, m));
	WORD("back", outbox_give_back(o, m));
	WORD("lost", m->lost = true);
	WORD("gone", m->gone = true);
	WORD("group", mq_envelope_set(&m->envelope, MQ_HEADER_GROUP, "g"));
	WORD("awaited", m->awaited = true);
	WORD("pause", m->pause_ms = 5000);
	WORD("to-b", m->to = mq_xstrdup("b"));
	WORD("to-c", m->to = mq_xstrdup("c"));
	WORD("confirm", outbox_confirm(o, m));
	WORD("sent", answers(m->sent));
	WORD("in-flight", answers(m->in_flight));
	return false;
}

/* What is said of the outbox itself. */
static bool
ask(struct house *h, const char *word, const char *about)
{
	struct outbox *o = &h->outbox;
	double waits_s = ev_timer_remaining(h->f.loop, &o->timer);

	WORD("waits", answers(o->in_line[LINE_ACKS] > 0));
	WORD("holds", answers(o->holding));
	WORD("woken", answers(h->woken));
	WORD("refused", answers(outbox_refused(o)));
	WORD("gives-back",
	    answers(!TAILQ_EMPTY(&o->queues[queue_of(about)].back)));
	WORD("in-order", answers(inbox_in_order(&h->f.inbox, queue_of(about))));
	WORD("pausing",
	    record("%d", h->f.inbox.queues[queue_of(about)].pausing));
	WORD("settling", record("%d", o->settling));
	WORD("moves", record("%d", (int)o->moves));
	WORD("copying", record("%d", (int)o->copying));
	WORD("timer", record("%d", (int)(waits_s * 1000 + 0.5)));
	WORD("unanswered", record("%d", h->sent_count));
	WORD("oldest", record("%s", h->oldest));
	return false;
}

static enum mq_settled
settled_of(const char *word)
{
	return is(word, "lost")	 ? MQ_SETTLED_LOST :
	    is(word, "gone")	 ? MQ_SETTLED_GONE :
	    is(word, "too-long") ? MQ_SETTLED_TOO_LONG :
				   MQ_SETTLED;
}

static int
status_of(const char *word)
{
	return is(word, "again")   ? MQ_EXIT_AGAIN :
	    is(word, "wrong-type") ? MQ_EXIT_WRONGTYPE :
				     MQ_EXIT_NOPERM;
}

/* What the server answers, or the connection does. */
static bool
hear(struct house *h, const char *word, const char *about)
{
	const struct mq_answer no = {.error = "no", .status = MQ_EXIT_NOPERM};
	const struct mq_answer yes = {0};

	WORD("settled", answer_with(&yes, settled_of(about)));
	WORD("refuse",
	    answer_with(
		&(struct mq_answer){.error = "no", .status = status_of(about)},
		MQ_SETTLED_LOST));
	WORD("went", answer_back(&yes, atoi(about)));
	WORD("back-refused", answer_back(&no, 0));
	WORD("paused",
	    h->paused_fn(h->paused_arg, is(about, "lost") ? NULL : &yes));
	WORD("lose", lose_connection(h));
	WORD("down", up = false);
	WORD("up", up = true);
	WORD("deaf", h->deaf = true);
	WORD("hears", h->deaf = false);
	WORD("full", full = true);
	WORD("room", full = false);
	return false;
}

static void
give_slots(struct house *h, int n)
{
	h->f.opt.given.slots = n;
	rules_free(&h->f.opt);
	rules_init(&h->f.opt);
}

/* What the engine has the outbox do. */
static bool
engine(struct house *h, const char *word, const char *about)
{
	struct outbox *o = &h->outbox;

	WORD("add", add(&h->f, about));
	WORD("run", run(h, about));
	WORD("key", add_with(&h->f, about, MQ_HEADER_KEY, "k"));
	WORD("disorder", inbox_disorder(&h->f.inbox, queue_of(about)));
	WORD("slots", give_slots(h, atoi(about)));
	WORD("enough", o->enough = atoi(about));
	WORD("flush", outbox_flush(o, true));
	WORD("flush-enough", outbox_flush(o, false));
	WORD("send-again", outbox_send_again(o, false));
	WORD("send-back", outbox_send_back(o));
	WORD("loop", ev_run(h->f.loop, EVRUN_ONCE));
	WORD("counters", counters_send(&h->outbox));
	return false;
}

/* Another word is for each of the messages behind it. */
static bool
take(void *arg, const char *word, const char *about)
{
	struct house *h = arg;
	char name[64];
	bool known = false;

	if (ask(h, word, about) || hear(h, word, about) ||
	    engine(h, word, about))
		return true;
	while (next_word(&about, name))
		known = do_to(h, word, message_of(h, name));
	if (is(word, "back"))
		outbox_send_back(&h->outbox);
	return known;
}

TEST_ROWS(together)
TEST_ROWS(equal)
TEST_ROWS(once_more)
TEST_ROWS(back)
TEST_ROWS(ends)

/* --- and those that count or measure ---------------------------------------------- */

TEST_OF(enough_go_at_once, struct house *h)
{
	char name[8];
	int i;

	for (i = 0; i < 65; i++) {
		assert_int_equal(h->outbox.in_line[LINE_ACKS] > 0, i > 0);
		snprintf(name, sizeof(name), "%c%d", i < 60 ? 'a' : 'b', i);
		take(h, "run", name);
		take(h, "ack", name);
	}
	assert_non_null(
	    strstr(recorded(), " a59 ) oldest:b( b60 b61 b62 b63 b64 )"));
	assert_false(h->outbox.in_line[LINE_ACKS] > 0);
}

TEST_OF(runs_are_counted_by_their_time, struct house *h)
{
	const struct mq_counts *n = &h->counted;

	counters_ran(&h->outbox, 0, 0.0004);
	counters_ran(&h->outbox, 0, 0.0004);
	counters_send(&h->outbox);
	assert_int_equal(n->run_ms, 0);
	assert_int_equal(n->bucket[0], 2);
	counters_ran(&h->outbox, 0, 0.0004);
	counters_ran(&h->outbox, 0, mq_bucket_s[1]);
	counters_ran(&h->outbox, 0, 1e6);
	counters_send(&h->outbox);
	assert_int_equal(n->bucket[0], 1);
	assert_int_equal(n->bucket[1], 1);
	assert_int_equal(n->bucket[MQ_BUCKETS - 1], 1);
	assert_int_equal(n->runs, 3);
	assert_between(n->run_ms, 1000000001, 1000002000);
}

/* As facts.c. */
static void
on_missing(void *arg, struct message *m)
{
	struct house *h = arg;

	if (m->state != MESSAGE_SETTLING)
		record("taken:%s", name_of(m));
	else if (m->sent)
		outbox_confirm(&h->outbox, m);
}

/* Of queue a the server has handed out so many, and holds n, all of them alike. */
static void
reconcile(struct house *h, int received, int n)
{
	struct elements e = make_elements(&"a1 a1 a1 a1 a1"[3 * (5 - n)]);
	struct mq_held held = {received, e.list, e.n};

	inbox_reconcile(&h->f.inbox, 0, &held, on_missing, h);
	free_elements(&e);
}

/*
 * Of four equal messages, one or two run, and a step with the others loses its answer.
 * The step has taken effect, or not, and so has a claim of a fifth one, whose answer is
 * lost, too.
 */
static void
check_lost_answer(
    const char *step, const char *which, bool took_effect, bool claimed)
{
	int settled = is(which, "a1#4 a1#3 a1#2") ? 3 : 2;
	struct house *h = setup();

	reconcile(h, 4, 4);
	start_all(&h->f, -1);
	take(h, step, which);
	take(h, "flush", "");
	(void)recorded();
	lose_connection(h);
	reconcile(h, 4 + claimed, 4 + claimed - (took_effect ? settled : 0));
	assert_int_equal(h->outbox.settling, took_effect ? 0 : settled);
	assert_int_equal(h->f.inbox.held, claimed);
	assert_string_equal(recorded(),
	    !took_effect     ? "" :
		settled == 3 ? "done:a1 done:a1 done:a1" :
			       "done:a1 done:a1");
	teardown(h);
}

TEST(of_equal_ones_a_lost_answer_is_made_up)
{
	int i;

	for (i = 0; i < 4; i++) {
		check_lost_answer("ack", "a1#4 a1#3 a1#2", i & 1, i & 2);
		check_lost_answer("back", "a1#4 a1#3 a1#2", i & 1, i & 2);
		check_lost_answer("reject", "a1#4 a1#3", i & 1, i & 2);
		check_lost_answer("again", "a1#4 a1#3", i & 1, i & 2);
	}
}
