/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * cmd/mq-consume/session: how it joins, what it tells of, and what it does once a second.
 * The commands that it sends are recorded.
 */
#include "mq-consume/session/parts.h"
#include "hand.h"

struct call {
	mq_answer_fn *fn;
	void *arg;
};

struct house {
	struct fixture f;
	struct mq_server server;
	struct mq_children children;
	struct session *session;
	const struct mq_loop_events *events;
	int away; /* a queue on a node that is away; -9: none */
	struct call join, enter, renew, pause, settings[3], held[3];
	void (*left)(void *arg);
	void *left_arg;
	char first[NAME_SIZE];
};

static struct house *house;

/* --- a test a row ----------------------------------------------------------- */

#define JOIN  "ready -> policy pause settings:a settings:b settings:c join"
#define KNOW  "pause -2 -> pause:no", "settings a", "settings b", "settings c"
#define ENTER "enter 2 -> enter:2 held:a held:b held:c"
#define UP                                                                     \
	"entered", "held a 0 -> held:a:0", "held b 0 -> held:b:0",             \
	    "held c 0 -> held:c:0 up"

static const struct row session_rows[] = {
    {"it joins with a lease and all settings",
	{"begin 2 -> open", JOIN, "joining -> yes", "may-be-known -> yes",
	    "lease 60000", "settings a", "pause -1 -> pause:yes", "settings b",
	    "slots-are -> 2", "settings c 3 -> rules enter?", "is-up -> no",
	    ENTER, UP, "is-up -> yes", "joining -> no"}},
    {"the lease may come last",
	{"begin 2 -> open", JOIN, KNOW, "lease 60000 -> enter?", ENTER,
	    "held c 0 -> held:c:0", "held b 2 -> held:b:2", "entered",
	    "held a 0 -> held:a:0 up"}},
    {"it enters once",
	{"begin 2 -> open", "enter 2", JOIN, "enter 2", KNOW, "enter 2",
	    "lease 60000 -> enter?", ENTER, "enter 2"}},
    {"not with a connection that is lost meanwhile",
	{"begin 2 -> open", JOIN, KNOW, "lease 60000 -> enter?",
	    "down -> closed down", "enter 2", "retry -> open", "enter 2", JOIN,
	    "enter 2", KNOW, "lease 60000 -> enter?", ENTER}},
    {"nor if it leaves",
	{"begin 2 -> open", JOIN, KNOW, "lease 60000 -> enter?",
	    "leave -> left", "enter 2"}},
    {"nor without a queue of which it has messages",
	{"begin 2 -> open", "add b1", "away b", JOIN, KNOW,
	    "lease 60000 -> enter?", "enter 2 -> closed down"}},
    {"another queue may be away",
	{"begin 2 -> open", "add b1", "away a", JOIN, KNOW,
	    "lease 60000 -> enter?", ENTER, UP}},
    {"slots are told if they have changed",
	{"begin 2 -> open", "slots 3", "slots-are -> 3", JOIN, KNOW,
	    "lease 60000 -> enter?", ENTER, UP, "slots 2", "slots 4 -> slots:4",
	    "slots 4", "down -> closed down", "slots 5", "slots-are -> 5"}},
    {"what is printed has none, unless messages are cut",
	{"begin 0 -> open", "slots-are -> 0", "cut", "slots 0",
	    "slots-are -> 1"}},
    {"settings change the rules",
	{"joined", "ask-settings b -> settings:b", "settings b",
	    "ask-settings b -> settings:b", "settings b 7 -> rules",
	    "ask-pause -> pause", "pause 100 -> pause:yes"}},
    {"it tells of keys of its queues",
	{"joined", "key rmq::queue::[b]::ready -> changed:b",
	    "key rmq::queue::[c]::settings -> settings-changed:c",
	    "key rmq::queue::[d]::ready", "key rmq::queue::[d]::settings",
	    "key rmq::paused -> all-paused-changed", "key nonsense",
	    "any-key -> any-changed", "down -> closed down",
	    "key rmq::queue::[b]::ready", "any-key"}},
    {"and of calls",
	{"joined", "call rmq::queue::[b]::ready -> called:b",
	    "call rmq::queue::[a]::stop -> stop:a",
	    "call rmq::queue::[d]::stop", "call rmq::queue::[d]::ready",
	    "down -> closed down", "call rmq::queue::[b]::ready"}},
    {"where nothing tells of keys it asks once a second",
	{"begin 2 -> open", "untracked", JOIN, KNOW, "lease 60000 -> enter?",
	    ENTER, UP, "untracked", "tick -> pause tick",
	    "long-ago -> pause settings:a settings:b settings:c tick"}},
    {"once it is up, keys may have changed before",
	{"joined", "untracked -> any-changed", "untracked"}},
    {"it renews its lease",
	{"joined", "tick -> tick", "add a1", "after 4 -> renew tick",
	    "renews -> yes", "tick -> tick", "renewed 60000", "renews -> no"}},
    {"a lease that may have lapsed is not renewed",
	{"joined", "add a1", "holds -> yes", "after 46 -> tick", "holds -> no",
	    "name -> first", "lapsed -> closed lost down", "holds -> yes",
	    "name -> another", "tick -> tick", "retry -> open",
	    "ready -> pause settings:a settings:b settings:c join"}},
    {"it may lapse without a connection",
	{"joined", "down -> closed down", "after 46 -> tick", "holds -> no",
	    "lapsed -> lost", "holds -> yes", "retry -> open"}},
    {"a lease that is gone is told of before anything is done",
	{"joined", "add a1", "after 4 -> renew tick", "renewed 0 -> gone",
	    "name -> first", "is-up -> yes",
	    "rejoin -> pause settings:a settings:b settings:c join lost",
	    "name -> another", "is-up -> no", "joining -> yes", "rejoin",
	    "lease 60000", "pause -2 -> pause:no", "settings a", "settings b",
	    "settings c -> enter?"}},
    {"it leaves",
	{"joined", "leave -> leave", "tick -> tick", "answer-left -> left"}},
    {"no answer to that is waited for",
	{"joined", "leave -> leave", "retry -> left"}},
    {"it may be known once it has joined",
	{"begin 2 -> open", "joining -> yes", "may-be-known -> no", JOIN,
	    "may-be-known -> yes", "down -> closed down",
	    "may-be-known -> no"}},
};

/* --- the neighbours --------------------------------------------------------- */

void
mq_loop_init(struct mq_loop *l, struct ev_loop *loop, struct mq_server *server,
    const char *channel, const char *name, const struct mq_loop_events *events,
    void *arg)
{
	l->redis.server = server;
	house->events = events;
}

int
mq_loop_open(struct mq_loop *l, const char **why)
{
	record("open");
	return 0;
}

void
mq_loop_close(struct mq_loop *l)
{
	record("closed");
}

void
mq_loop_free(struct mq_loop *l)
{
}

void
mq_consumer_free(struct mq_consumer *k)
{
}

const char *
mq_consumer_away(const struct mq_consumer *k, int queue)
{
	return queue == house->away ? "away" : NULL;
}

bool
mq_consumer_is_heard(const struct mq_consumer *k)
{
	return false;
}

void
mq_consumer_ask_policy(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	record("policy");
}

void
mq_consumer_ask_pause(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	record("pause");
	house->pause = (struct call){fn, arg};
}

void
mq_consumer_settings(
    struct mq_consumer *k, int queue, mq_answer_fn *fn, void *arg)
{
	record("settings:%s", queue_names[queue]);
	house->settings[queue] = (struct call){fn, arg};
}

void
mq_consumer_join(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	record("join");
	house->join = (struct call){fn, arg};
}

int
mq_consumer_enter(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	record("enter:%d", k->session.slots);
	house->enter = (struct call){fn, arg};
	return 1;
}

void
mq_consumer_held(struct mq_consumer *k, int queue, mq_answer_fn *fn, void *arg)
{
	record("held:%s", queue_names[queue]);
	house->held[queue] = (struct call){fn, arg};
}

void
mq_consumer_take_over(struct mq_consumer *k, int queue, const char *from,
    mq_answer_fn *fn, void *arg)
{
	record("take-over");
}

void
mq_consumer_renew(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	record("renew");
	house->renew = (struct call){fn, arg};
}

void
mq_consumer_tell_slots(struct mq_consumer *k)
{
	record("slots:%d", k->session.slots);
}

void
mq_consumer_leave(struct mq_consumer *k, void (*left)(void *arg), void *arg)
{
	record("leave");
	house->left = left;
	house->left_arg = arg;
}

static void *
setup(void)
{
	struct house *h = house = mq_xcalloc(1, sizeof(*h));

	fixture_init(&h->f);
	h->away = -9;
	h->f.layout.key_queue = mq_layout_find("rmq")->key_queue;
	h->f.opt.tag = "tag";
	h->f.opt.idle_ms = -1;
	strlcpy(h->server.name, "server", sizeof(h->server.name));
	h->server.url.kind = MQ_URL_UNIX;
	h->session = session_new(h->f.loop, &h->f.opt, h->f.hand, h->f.facts,
	    &h->server, &h->children, &h->f.ids);
	strlcpy(h->first, session_consumer(h->session)->session.connection,
	    sizeof(h->first));
	return h;
}

static void
teardown(void *arg)
{
	struct house *h = arg;

	session_free(h->session);
	fixture_free(&h->f);
	free(h);
}

/* --- what happens ----------------------------------------------------------- */

static void
answer(struct call c, long long n)
{
	c.fn(c.arg, &(struct mq_answer){.n = n});
}

/* "QUEUE", or "QUEUE SLOTS". */
static void
answer_settings(const char *about)
{
	struct mq_setting_texts texts = {{NULL}};
	struct call c = house->settings[queue_of(about)];
	int i;

	for (i = 0; about[1] != '\0' && i < MQ_SETTINGS; i++)
		if (strcmp(mq_setting_list[i].name, "slots") == 0)
			texts.text[i] = mq_xstrdup(about + 2);
	c.fn(c.arg, &(struct mq_answer){.settings = &texts});
	mq_setting_texts_free(&texts);
}

/* "QUEUE N" */
static void
answer_held(const char *about)
{
	struct mq_held held = {.n = atoi(about + 2)};
	struct call c = house->held[queue_of(about)];
	int i;

	held.elements = mq_xcalloc((size_t)held.n + 1, sizeof(*held.elements));
	for (i = 0; i < held.n; i++)
		held.elements[i].data = mq_xstrdup("element");
	c.fn(c.arg, &(struct mq_answer){.held = &held});
	for (i = 0; i < held.n; i++)
		assert_null(held.elements[i].data);
	free(held.elements);
}

/* What that does is in the rows about joining. */
static void
join_all(struct house *h)
{
	struct session *s = h->session;
	struct fact f;
	int i;

	session_begin(s, false, 2);
	h->events->ready(s);
	answer(h->pause, -2);
	for (i = 0; i < 3; i++)
		answer_settings(queue_names[i]);
	answer(h->join, 60000);
	session_enter(s, 2);
	answer(h->enter, 0);
	answer_held("a 0");
	answer_held("b 0");
	answer_held("c 0");
	while (fact_take(h->f.facts, &f))
		fact_free(&f);
	record_clear();
}

static void
fire(const struct mq_timer *t)
{
	t->fire(t->arg);
}

/* After so many seconds.  Leases are renewed without chance. */
static void
tick(struct session *s, double after)
{
	s->lease.sent -= after;
	s->lease.early = 0.5;
	s->lease.spread = 0;
	fire(&s->tick);
}

static bool
act(struct session *s, const char *word, const char *about)
{
	WORD("begin", session_begin(s, false, atoi(about)));
	WORD("ready", house->events->ready(s));
	WORD("down", house->events->down(s, "gone"));
	WORD("untracked", house->events->untracked(s, "TRACKING", "no"));
	WORD("key", house->events->changed(s, about, strlen(about)));
	WORD("any-key", house->events->changed(s, NULL, 0));
	WORD("call", house->events->called(s, about, strlen(about)));
	WORD("retry", fire(&s->retry));
	WORD("tick", tick(s, 0));
	WORD("after", tick(s, atof(about)));
	WORD("long-ago", s->settings_at -= 11, tick(s, 0));
	WORD("cut", s->one_by_one = true);
	WORD("enter", session_enter(s, atoi(about)));
	WORD("slots", session_tell_slots(s, atoi(about)));
	WORD("slots-are", record("%d", session_consumer(s)->session.slots));
	WORD("leave", session_leave(s));
	WORD("lapsed", session_lapsed(s));
	WORD("rejoin", session_rejoin(s));
	WORD("ask-settings", session_ask_settings(s, queue_of(about)));
	WORD("ask-pause", session_ask_pause(s));
	WORD("is-up", answers(session_is_up(s)));
	WORD("joining", answers(session_is_joining(s)));
	WORD("may-be-known", answers(session_may_be_known(s)));
	WORD("holds", answers(session_holds_lease(s)));
	WORD("renews", answers(session_renews(s)));
	WORD("name",
	    record("%s",
		strcmp(session_consumer(s)->session.connection, house->first) ==
			0 ?
		    "first" :
		    "another"));
	return false;
}

static bool
arrange(struct house *h, const char *word, const char *about)
{
	WORD("joined", join_all(h));
	WORD("add", add(&h->f, about));
	WORD("away", h->away = queue_of(about));
	WORD("lease", answer(h->join, atoi(about)));
	WORD("renewed", answer(h->renew, atoi(about)));
	WORD("pause", answer(h->pause, atoi(about)));
	WORD("entered", answer(h->enter, 0));
	WORD("settings", answer_settings(about));
	WORD("held", answer_held(about));
	WORD("answer-left", h->left(h->left_arg));
	return false;
}

static void
record_change(const struct fact *f)
{
	if (f->queue == -1)
		record(f->yes			       ? "any-changed" :
			f->status == MQ_KEY_ALL_PAUSED ? "all-paused-changed" :
							 "?");
	else
		record("%s:%s",
		    f->status == MQ_KEY_SETTINGS ? "settings-changed" :
						   "changed",
		    queue_names[f->queue]);
}

static void
record_fact(const struct fact *f)
{
	static const char *const words[] = {[FACT_UP] = "up",
	    [FACT_DOWN] = "down",
	    [FACT_LEASE_LOST] = "lost",
	    [FACT_LEASE_GONE] = "gone",
	    [FACT_RULES] = "rules",
	    [FACT_ENTER] = "enter?",
	    [FACT_TICK] = "tick",
	    [FACT_LEFT] = "left",
	    [FACT_FAILED] = "failed"};

	switch (f->kind) {
	case FACT_ALL_PAUSED:
		record("pause:%s", f->yes ? "yes" : "no");
		break;
	case FACT_HOLDINGS:
		record("held:%s:%d", queue_names[f->queue], f->holdings->n);
		break;
	case FACT_CHANGED:
		record_change(f);
		break;
	case FACT_CALLED:
		record("called:%s", queue_names[f->queue]);
		break;
	case FACT_STOP_WANTED:
		record("stop:%s", queue_names[f->queue]);
		break;
	default:
		record("%s", words[f->kind]);
	}
}

static bool
take(void *arg, const char *word, const char *about)
{
	struct house *h = arg;
	bool known = act(h->session, word, about) || arrange(h, word, about);
	struct fact f;

	while (fact_take(h->f.facts, &f)) {
		record_fact(&f);
		fact_free(&f);
	}
	return known;
}

TEST_ROWS(session)
