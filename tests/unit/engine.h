/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * An engine with a real hand, real facts and real verdicts, whose other modules are here:
 * they record what it has them do, and move messages as theirs would.
 */
#ifndef TEST_ENGINE_H
#define TEST_ENGINE_H

#include "mq-consume/engine/parts.h"
#include "hand.h"

struct house {
	struct fixture f;
	struct engine e;
	struct mq_server server;
	char shown[128];       /* what is recorded beside, as words */
	char *said;	       /* to the user, */
	size_t said_len, read; /* of which so much was read */

	/* The session. */
	bool down, joining, lapsed, known, renewing, complains, one_by_one;
	/* The policy. */
	enum stop_level level;
	bool waits; /* nothing may start */
	bool careful[2], killed, signalled, sleeps_long;
	long limit; /* 0: none */
	/* The inbox. */
	char asks[8]; /* the next queues */
	bool claiming, put_off, drained, busy;
	int expects, expects_next;
	int64_t tick, now_ms;
	/* The outbox. */
	bool refused, full, brings;
	int follows;   /* queue of an ack that may bring a message; -1: none */
	char leads[8]; /* queues in which settlements lead to claims */
	/* The executor. */
	struct executor_way way;
	int room, slots, batch, spare;
	int full_queue; /* that has no room; -1: none */
	int workers;	/* that run without a message */
	bool wants_few, rests, owes, quick, no_run, cleaned;
	const char *unfit; /* why none can run; NULL: each can */
	struct message *taken[16];
	int taken_count;
	struct start_terms terms; /* the last ones */
	/* What the server was asked, in order. */
	struct {
		mq_answer_fn *fn;
		void *arg;
	} asked[16];
	int asked_count;
	int added; /* as many as were claimed */
};

static struct house *house;

/* Records what is of interest only where a row shows it. */
static void __attribute__((format(printf, 2, 3)))
aside(const char *word, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (strstr(house->shown, word) != NULL)
		record("%s", text);
}

static const char *
queue_or_all(int queue)
{
	return queue == -1 ? "all" : queue_names[queue];
}

/* A function of a module that records a call, or answers. */
#define RECORDS(fn, params, ...)                                               \
	void fn params                                                         \
	{                                                                      \
		record(__VA_ARGS__);                                           \
	}
#define ANSWERS(type, fn, params, answer)                                      \
	type fn params                                                         \
	{                                                                      \
		return answer;                                                 \
	}

/* --- the session ---------------------------------------------------------------- */

ANSWERS(bool, session_is_up, (const struct session *s), !house->down)
ANSWERS(bool, session_is_joining, (const struct session *s), house->joining)
ANSWERS(bool, session_may_be_known, (const struct session *s), house->known)

/* The first question of a turn. */
bool
session_holds_lease(const struct session *s)
{
	aside("turns", "|");
	return !house->lapsed;
}

void
session_lapsed(struct session *s)
{
	record("new-name");
	house->lapsed = false;
	house->down = true;
}

void
session_rejoin(struct session *s)
{
	record("rejoin");
	house->down = true;
}

ANSWERS(bool, session_renews, (const struct session *s), house->renewing)
ANSWERS(bool, session_one_by_one, (const struct session *s), house->one_by_one)
RECORDS(session_enter, (struct session * s, int slots), "enter:%d", slots)
RECORDS(session_leave, (struct session * s), "leave")

void
session_reset(struct session *s, const char *why)
{
	record("reset");
	house->down = true;
}

RECORDS(session_ask_settings, (struct session * s, int queue), "settings:%s",
    queue_names[queue])
RECORDS(session_ask_pause, (struct session * s), "pause-of-all")
RECORDS(session_tell_slots, (struct session * s, int slots), "slots:%d", slots)

void
session_complain(struct session *s, const char *error)
{
	if (error != NULL)
		record("complain:%s", error);
	else if (house->complains)
		record("content");
	house->complains = error != NULL;
}

ANSWERS(bool, session_complains, (const struct session *s), house->complains)

/* --- the policy ----------------------------------------------------------------- */

ANSWERS(bool, policy_may_start, (const struct policy *p),
    !house->waits && !policy_limit_reached(p, 0))

void
policy_start(struct policy *p)
{
	aside("policy", "started");
}

long
policy_room(const struct policy *p, int queue, long room)
{
	const struct hand *hand = house->f.hand;
	long left = house->limit - hand_started(hand) -
	    hand_count(hand, -1, MESSAGE_UNSTARTED);

	return house->limit > 0 && left < room ? left : room;
}

ANSWERS(bool, policy_limit_reached, (const struct policy *p, long more),
    house->limit > 0 && hand_started(house->f.hand) + more >= house->limit)

void
policy_be_careful(struct policy *p, bool alone)
{
	record(alone ? "alone" : "careful");
	house->careful[alone] = true;
}

ANSWERS(bool, policy_is_careful, (const struct policy *p, bool alone),
    house->careful[alone])
ANSWERS(enum stop_level, policy_level, (const struct policy *p), house->level)
ANSWERS(bool, policy_has_killed, (const struct policy *p), house->killed)
ANSWERS(
    bool, policy_has_just_signalled, (const struct policy *p), house->signalled)

void
policy_stop(struct policy *p, enum stop_level level, int status, int sig)
{
	static const char *const names[] = {"not", "fetching", "soon", "now"};

	if (level <= house->level)
		return;
	record("stop:%s:%d", names[level], status);
	house->level = level;
	tell(&house->f, FACT_STOP, .yes = sig != 0);
}

void
policy_suspend(struct policy *p)
{
	record("suspend");
	house->lapsed = house->sleeps_long;
}

void
policy_active(struct policy *p)
{
	aside("policy", "active");
}

void
policy_ran(struct policy *p, const struct message *m)
{
}

void
policy_settled(struct policy *p, const struct message *m)
{
	aside("policy", "ended:%s", name_of(m));
}

/* --- the inbox ------------------------------------------------------------------ */

ANSWERS(bool, inbox_ready, (const struct inbox *in),
    !house->claiming && !house->put_off)

int
inbox_asks(struct inbox *in, const struct claim_terms *terms)
{
	char queue = house->asks[0];

	if (queue == '\0' || house->claiming)
		return -1;
	memmove(house->asks, house->asks + 1, strlen(house->asks));
	return queue - 'a';
}

/* Behind the queue: how many; how many MiB at most; by which terms. */
bool
inbox_offer(
    struct inbox *in, int queue, int room, const struct claim_terms *terms)
{
	char copied[16] = "";

	if (terms->copied > 0)
		snprintf(
		    copied, sizeof(copied), ":%d", (int)(terms->copied >> 20));
	record("%s:%s:%d%s%s%s", room > 0 ? "claim" : "leave-it",
	    queue_names[queue], room, copied,
	    terms->one_by_one ? ":one-by-one" : "",
	    terms->takes_back ? ":takes-back" : "");
	house->claiming = room > 0;
	return house->claiming;
}

ANSWERS(bool, inbox_is_claiming, (const struct inbox *in), house->claiming)
ANSWERS(bool, inbox_drained, (const struct inbox *in), house->drained)

int
inbox_expects(const struct inbox *in, int *next)
{
	*next = house->expects_next;
	return house->expects;
}

void
inbox_down(struct inbox *in)
{
	record("inbox-down");
	house->claiming = false;
}

RECORDS(inbox_look, (struct inbox * in, bool all), all ? "look-all" : "look")
RECORDS(inbox_changed, (struct inbox * in, int queue), "changed:%s",
    queue_or_all(queue))
RECORDS(inbox_called, (struct inbox * in, int queue), "called:%s",
    queue_names[queue])
RECORDS(inbox_settling, (struct inbox * in, int queue, double since),
    "leads:%s", queue_names[queue])
ANSWERS(bool, inbox_lets_bring, (const struct inbox *in, int queue),
    !house->claiming && !house->busy)
RECORDS(inbox_brought, (struct inbox * in, int queue), "brought:%s",
    queue_names[queue])
RECORDS(inbox_pause_seen, (struct inbox * in, int queue, bool paused), "%s:%s",
    paused ? "paused" : "resumed", queue_or_all(queue))
RECORDS(inbox_look_around, (struct inbox * in, const int *room, bool sending),
    "look-around:%d:%d:%d%s", room[0], room[1], room[2],
    sending ? ":sending" : "")
RECORDS(inbox_pass, (struct inbox * in), "pass")
ANSWERS(int64_t, inbox_tick, (const struct inbox *in, int queue), house->tick)
ANSWERS(int64_t, inbox_server_ms, (const struct inbox *in), house->now_ms)

/* --- the outbox ----------------------------------------------------------------- */

RECORDS(outbox_up, (struct outbox * o), "outbox-up")

void
outbox_down(struct outbox *o)
{
	record("outbox-down");
}

void
outbox_settle(struct outbox *o, struct message *m)
{
	static const char *const names[] = {
	    "ack", "reject", "front", "again", "push"};

	hand_settle(house->f.hand, m);
	record("%s:%s", names[m->outcome], name_of(m));
	if (m->news != NULL)
		aside("news", "(%s)", m->news);
}

void
outbox_give_back(struct outbox *o, struct message *m)
{
	hand_settle(house->f.hand, m);
	record("back:%s", name_of(m));
	m->in_line = LINE_BACK;
}

void
outbox_flush(struct outbox *o, enum outbox_acks which_ones)
{
	static const char *const names[] = {
	    "enough", "claim", "holders", "next", "all"};

	aside("flush", "acks:%s", names[which_ones]);
}

ANSWERS(int, outbox_follows, (const struct outbox *o), house->follows)
ANSWERS(bool, outbox_brings, (const struct outbox *o), house->brings)

void
outbox_send_back(struct outbox *o)
{
	aside("send", "send-back");
}

RECORDS(outbox_send_again, (struct outbox * o), "send-again")

bool
outbox_makes_ready(struct outbox *o, int *queue, double *since)
{
	char first = house->leads[0];

	if (first == '\0')
		return false;
	memmove(house->leads, house->leads + 1, strlen(house->leads));
	*queue = first - 'a';
	*since = 0;
	return true;
}

static void
settle(struct message *m, bool confirmed)
{
	hand_settled(house->f.hand, m);
	tell(&house->f, FACT_SETTLED, .message = m, .yes = confirmed);
}

void
outbox_confirm(struct outbox *o, struct message *m)
{
	record("confirm:%s", name_of(m));
	settle(m, true);
}

RECORDS(outbox_lose, (struct outbox * o, struct message *m, const char *why),
    "lost:%s", name_of(m))

void
outbox_drop(struct outbox *o, struct message *m)
{
	assert_int_equal(m->state, MESSAGE_SETTLING);
	record("drop:%s", name_of(m));
}

ANSWERS(bool, outbox_refused, (const struct outbox *o), house->refused)

bool
outbox_gives_back(const struct outbox *o, int queue)
{
	const struct message *m = NULL;

	while ((m = hand_after(house->f.hand, queue, m)) != NULL)
		if (m->state == MESSAGE_SETTLING && m->in_line == LINE_BACK)
			return true;
	return false;
}

ANSWERS(size_t, outbox_copying, (const struct outbox *o), 0)

/* A disk with room for 9 MiB. */
ANSWERS(int, mq_server_room,
    (const struct mq_server *s, size_t bytes, char *error, size_t error_size),
    house->full &&bytes > (size_t)9 << 20)
RECORDS(counters_ran, (struct outbox * o, int queue, double seconds),
    "ran:%s:%.0f", queue_names[queue], seconds)
RECORDS(counters_crashed, (struct outbox * o, int queue), "crashed:%s",
    queue_names[queue])
RECORDS(counters_send, (struct outbox * o), "counters")

void
counters_tell_runs(struct outbox *o, struct mq_buf *text)
{
	record("tell-runs");
	mq_buf_free(text);
}

struct mq_counts
counters_totals(const struct outbox *o, long *returned)
{
	return (struct mq_counts){0};
}

/* --- the executor --------------------------------------------------------------- */

const struct executor_way *
executor_way(const struct executor *x)
{
	return &house->way;
}

ANSWERS(int, executor_capacity, (const struct executor *x), house->slots)

bool
executor_wants(struct executor *x, const struct start_terms *terms, int *queue)
{
	house->terms = *terms;
	*queue = -1;
	return terms->may && hand_next(house->f.hand, -1) != NULL &&
	    hand_count(house->f.hand, -1, MESSAGE_RUNNING) < house->slots;
}

const char *
executor_refuses(const struct executor *x, const struct message *m)
{
	return house->unfit;
}

bool
executor_take(struct executor *x, struct message *m)
{
	assert_int_equal(m->state, MESSAGE_RUNNING);
	house->taken[house->taken_count++] = m;
	return house->taken_count < house->batch;
}

ANSWERS(int, executor_spare, (const struct executor *x), house->spare)

/* Its run is over, and nothing more is to say of it. */
static void
end(struct message *m, enum mq_verdict_kind how)
{
	struct ending *ending = mq_xcalloc(1, sizeof(*ending));

	ending->verdict.kind = how;
	ending->errors = mq_xstrdup("");
	hand_end(house->f.hand, m);
	tell(&house->f, FACT_ENDED, .message = m, .ending = ending);
}

void
executor_begin(struct executor *x)
{
	struct mq_buf names = {0};
	int i;

	for (i = 0; i < house->taken_count; i++)
		mq_buf_printf(
		    &names, "%s%s", i > 0 ? "+" : "", name_of(house->taken[i]));
	if (names.len > 0)
		record("start:%s", mq_buf_str(&names));
	mq_buf_free(&names);
	for (i = 0; i < house->taken_count && house->quick; i++)
		end(house->taken[i], MQ_VERDICT_DONE);
	house->taken_count = 0;
}

void
executor_started(struct executor *x, const struct start_terms *terms)
{
	aside("starts", "all-started");
	house->terms = *terms;
}

long
executor_room(const struct executor *x, int queue, bool careful)
{
	int room = careful ? house->spare : house->room;

	if (queue == house->full_queue)
		return 0;
	return room - hand_count(house->f.hand, -1, MESSAGE_UNSTARTED);
}

ANSWERS(bool, executor_wants_few, (const struct executor *x, int queue),
    house->wants_few)
RECORDS(executor_tick, (struct executor * x), "executor-tick")
RECORDS(executor_resize, (struct executor * x), "resize")

static struct message *
newest_run(int queue)
{
	struct message *m = NULL, *found = NULL;

	while ((m = hand_after(house->f.hand, queue, m)) != NULL)
		if (m->state == MESSAGE_RUNNING)
			found = m;
	return found;
}

void
executor_take_back(struct executor *x, int queue, bool begun)
{
	struct message *m;

	if (!house->way.takes_back)
		return;
	record("take-back:%s%s", queue_or_all(queue), begun ? ":begun" : "");
	while ((m = newest_run(queue)) != NULL)
		hand_put_back(house->f.hand, m);
}

/* What is printed has no end. */
bool
executor_take_away(struct executor *x, struct message *m)
{
	record("take-away:%s", name_of(m));
	return house->way.runs;
}

bool
executor_stop_run(struct executor *x, struct message *m, enum mq_stop how)
{
	if (house->no_run)
		return false;
	record("end-run:%s", name_of(m));
	m->stop = how;
	return true;
}

void
executor_acked(struct executor *x, const struct message *m)
{
	aside("policy", "acked:%s", name_of(m));
}

RECORDS(executor_answered, (struct executor * x, int n, bool all),
    "answered:%d%s", n, all ? ":all" : "")
ANSWERS(bool, executor_owes, (const struct executor *x), house->owes)

int
executor_busy(const struct executor *x)
{
	return house->workers + hand_count(house->f.hand, -1, MESSAGE_RUNNING);
}

ANSWERS(bool, executor_rests, (const struct executor *x), house->rests)

void
executor_describe(const struct executor *x, struct mq_buf *out)
{
	if (hand_count(house->f.hand, -1, MESSAGE_RUNNING) > 0)
		mq_buf_printf(out, "runs");
}

RECORDS(executor_kill, (struct executor * x, int sig), "kill:%s",
    mq_signal_name(sig))
RECORDS(executor_stop, (struct executor * x), "executor-stop")

/* --- the others ----------------------------------------------------------------- */

RECORDS(duplicates_up, (struct duplicates * d, bool up),
    up ? "duplicates-up" : "duplicates-down")
RECORDS(jobs_tick, (struct jobs * r, bool counts, bool waits), "jobs%s",
    waits ? ":waits" : "")
ANSWERS(bool, jobs_cleaned, (struct jobs * r), house->cleaned)
RECORDS(jobs_resign, (struct jobs * r), "resign")
RECORDS(jobs_clean_soon, (struct jobs * r), "clean-soon")

void
jobs_drain_soon(struct jobs *r)
{
}

void
jobs_drain(struct jobs *r)
{
	record("is-drained?");
}

RECORDS(jobs_transfer, (struct jobs * r), "transfer")

struct kept *
kept_new(const struct options *opt, struct mq_consumer *k, const char *host)
{
	(void)opt;
	(void)k;
	(void)host;
	return NULL;
}

void
kept_tick(struct kept *k, bool up)
{
	(void)k;
	(void)up;
}

void
kept_free(struct kept *k)
{
	(void)k;
}

void
service_report(struct service *s, bool up, int running, struct mq_counts counts)
{
	aside("service", "report:%s:%d", up ? "up" : "down", running);
}

void
service_stop(struct service *s)
{
	aside("service", "stopping");
}

RECORDS(process_open_logs, (struct process * p), "open-logs")

void
process_remove_dir(const struct process *p, const char *id)
{
	aside("dirs", "remove-dir");
}

RECORDS(joblog_write,
    (struct joblog * log, const struct message *m, int status,
	const char *verdict, const char *text),
    "log:%s:%s", name_of(m), verdict)
RECORDS(bar_count, (struct engine * e, long long ready), "count:%lld", ready)

/* --- the server ----------------------------------------------------------------- */

void
mq_loop_flush(struct mq_redis *r)
{
	aside("send", "send");
}

static void
await_answer(mq_answer_fn *fn, void *arg)
{
	assert_between(house->asked_count, 0, COUNT(house->asked) - 1);
	house->asked[house->asked_count].fn = fn;
	house->asked[house->asked_count++].arg = arg;
}

/* To the oldest question; NULL: the connection is lost. */
static void
answer(const struct mq_answer *with)
{
	mq_answer_fn *fn = house->asked[0].fn;
	void *arg = house->asked[0].arg;

	assert_true(house->asked_count > 0);
	memmove(house->asked, house->asked + 1,
	    (size_t)--house->asked_count * sizeof(house->asked[0]));
	fn(arg, with);
}

void
mq_consumer_held(struct mq_consumer *k, int queue, mq_answer_fn *fn, void *arg)
{
	record("held?:%s", queue_names[queue]);
	await_answer(fn, arg);
}

void
mq_consumer_count_held(struct mq_consumer *k, enum mq_held_how how,
    const int *queues, int n, mq_answer_fn *fn, void *arg)
{
	int i;

	for (i = 0; i < n; i++)
		record("%s:%s", how == MQ_HELD_KEY ? "any?" : "count?",
		    queue_names[queues[i]]);
	await_answer(fn, arg);
}

void
mq_consumer_exists(struct mq_consumer *k, int queue, const char *element,
    size_t len, mq_answer_fn *fn, void *arg)
{
	record("exists?:%s", payload_of(element, len));
	await_answer(fn, arg);
}

void
mq_consumer_lapsed(struct mq_consumer *k, int queue, const char *element,
    size_t len, long attempts)
{
	aside("lapsed", "lapsed:%s", payload_of(element, len));
}

void
mq_consumer_look_for_stop(
    struct mq_consumer *k, int queue, mq_answer_fn *fn, void *arg)
{
	record("stop?:%s", queue_names[queue]);
	await_answer(fn, arg);
}

void
mq_consumer_tell_stop(struct mq_consumer *k, int queue, enum mq_stop what,
    const struct mq_run *run)
{
	static const char *const names[] = {[MQ_STOP_PURGED] = "purged",
	    [MQ_STOP_RETURNED] = "returned",
	    [MQ_STOP_REJECTED] = "rejected",
	    [MQ_STOP_OVER] = "over"};

	record("stopped:%s:%s:%ld", names[what], run->id, run->attempt);
}

/* --- what a row can say --------------------------------------------------------- */

#define FLAG(name, member)                                                     \
	{                                                                      \
		name, offsetof(struct house, member)                           \
	}

static const struct {
	const char *name;
	size_t at;
} flags[] = {FLAG("down", down), FLAG("joining", joining),
    FLAG("lapsed", lapsed), FLAG("known", known), FLAG("renewing", renewing),
    FLAG("complaining", complains), FLAG("one-by-one", one_by_one),
    FLAG("waiting", waits), FLAG("careful", careful[0]), FLAG("killed", killed),
    FLAG("signalled", signalled), FLAG("claiming", claiming),
    FLAG("put-off", put_off), FLAG("drained", drained),
    FLAG("refused", refused), FLAG("full", full), FLAG("bringing", brings),
    FLAG("busy", busy), FLAG("for-few", wants_few), FLAG("resting", rests),
    FLAG("owing", owes), FLAG("quick", quick), FLAG("without-run", no_run),
    FLAG("cleaned", cleaned), FLAG("slept", sleeps_long),
    FLAG("to-drain", f.opt.drain), FLAG("rq", f.opt.rq)};

static bool
set_flag(struct house *h, const char *name, bool on)
{
	size_t i;

	for (i = 0; i < COUNT(flags); i++)
		if (is(flags[i].name, name))
			*(bool *)((char *)h + flags[i].at) = on;
	return true;
}

static const struct {
	const char *name;
	size_t at;
} numbers[] = {FLAG("room", room), FLAG("slots", slots), FLAG("batch", batch),
    FLAG("spare", spare), FLAG("workers", workers), FLAG("expects", expects),
    FLAG("next", expects_next), FLAG("claims", added),
    FLAG("follows", follows)};

static bool
set_number(struct house *h, const char *name, const char *about)
{
	size_t i;

	for (i = 0; i < COUNT(numbers); i++)
		if (is(numbers[i].name, name)) {
			*(int *)((char *)h + numbers[i].at) = atoi(about);
			return true;
		}
	return false;
}

/* As the real ones are. */
static void
set_way(struct house *h, const char *name)
{
	h->way = (struct executor_way){.runs = true, .names = true};
	h->way.files = is(name, "fork");
	if (is(name, "batch") || is(name, "stream"))
		h->way.acks = ACKS_AT_REST;
	h->way.flows = is(name, "stream");
	if (is(name, "print"))
		h->way = (struct executor_way){
		    .flows = true, .acks = ACKS_FOR_OTHERS, .takes_back = true};
	if (is(name, "at-most-once"))
		h->way = (struct executor_way){
		    .flows = true, .acks = ACKS_FIRST, .takes_back = true};
}

static void
set_limit(struct house *h, int limit)
{
	h->limit = h->f.opt.limit = limit;
}

static const struct {
	const char *name;
	enum fact_kind kind;
} fact_kinds[] = {{"wake", FACT_WAKE}, {"up", FACT_UP}, {"down", FACT_DOWN},
    {"lease-lost", FACT_LEASE_LOST}, {"lease-gone", FACT_LEASE_GONE},
    {"rules", FACT_RULES}, {"enter", FACT_ENTER},
    {"all-paused", FACT_ALL_PAUSED}, {"changed", FACT_CHANGED},
    {"called", FACT_CALLED}, {"stop-wanted", FACT_STOP_WANTED},
    {"tick", FACT_TICK}, {"left", FACT_LEFT}, {"failed", FACT_FAILED},
    {"claimed", FACT_CLAIMED}, {"claim-refused", FACT_CLAIM_REFUSED},
    {"paused", FACT_PAUSED}, {"brought", FACT_BROUGHT},
    {"no-room", FACT_NO_ROOM}, {"pause-set", FACT_PAUSE_SET}, {"ran", FACT_RAN},
    {"give-back", FACT_GIVE_BACK}, {"unread", FACT_UNREAD},
    {"answered", FACT_ANSWERED}, {"stop", FACT_STOP}, {"give-up", FACT_GIVE_UP},
    {"reopen-logs", FACT_REOPEN_LOGS}, {"suspend", FACT_SUSPEND},
    {"idle", FACT_IDLE}, {"signal", FACT_SIGNAL}, {"is-drained", FACT_DRAINED},
    {"counted", FACT_COUNTED}, {"complaint", FACT_COMPLAINT},
    {"must-end", FACT_MUST_END}};

/* With blanks for underscores. */
static char *
make_text(const char *word)
{
	char *text = mq_xstrdup(word), *p = text;

	while ((p = strchr(p, '_')) != NULL)
		*p = ' ';
	return text;
}

/* A kind; then a queue, yes, a number, and a text. */
static void
tell_fact(struct house *h, const char *about)
{
	struct fact f = {.queue = -1};
	char word[64];
	size_t i;

	next_word(&about, word);
	for (i = 0; !is(fact_kinds[i].name, word); i++)
		assert_true(i + 1 < COUNT(fact_kinds));
	f.kind = fact_kinds[i].kind;
	while (next_word(&about, word))
		if (strlen(word) == 1 && *word >= 'a')
			f.queue = queue_of(word);
		else if (is(word, "yes"))
			f.yes = true;
		else if (strspn(word, "-0123456789") == strlen(word))
			f.seconds = (double)(f.n = f.status = atoi(word));
		else
			f.text = make_text(word);
	fact_tell(h->f.facts, &f);
}

static struct mq_held
make_held(struct mq_element list[static 8], const char *about)
{
	struct mq_held held = {.elements = list};
	char word[64];

	for (; next_word(&about, word); held.n++)
		list[held.n] =
		    (struct mq_element){mq_xstrdup(word), strlen(word)};
	return held;
}

/* Joining: of queue a, of which all was claimed that was added. */
static void
tell_held(struct house *h, const char *about)
{
	struct mq_element list[8];
	struct mq_held held = make_held(list, about);

	held.received = h->added;
	tell(&h->f, FACT_HOLDINGS, .yes = true,
	    .holdings = fact_holdings(&held));
}

static void
answer_held(struct house *h, const char *about)
{
	struct mq_element list[8];
	struct mq_held held = make_held(list, about);

	held.received = h->added;
	answer(&(struct mq_answer){.held = &held});
	while (held.n > 0)
		free(list[--held.n].data);
}

static void
answer_text(const char *about)
{
	char *text = mq_xstrdup(about);

	answer(&(struct mq_answer){.text = text});
	free(text);
}

static bool
hear(struct house *h, const char *word, const char *about)
{
	const struct mq_answer no = {.error = "no", .status = 1};

	WORD("tell", tell_fact(h, about));
	WORD("server", tell_held(h, about));
	WORD("answer-held", answer_held(h, about));
	WORD("answer-text", answer_text(about));
	WORD("answer", answer(&(struct mq_answer){.n = atoi(about)}));
	WORD("refuse", answer(&no));
	WORD("no-answer", answer(NULL));
	return false;
}

static void
add_all(struct house *h, const char *names)
{
	add(&h->f, names);
	h->added += (int)(strlen(names) + 1) / 3;
}

/* Its header is no JSON. */
static void
spoil(struct message *m)
{
	*(char *)memchr(m->element, '{', m->len) = 'x';
}

static bool
arrange(struct house *h, const char *word, const char *about)
{
	char value[2] = {*about, '\0'};

	WORD("show", strlcat(h->shown, about, sizeof(h->shown)));
	WORD("is", set_flag(h, about, true));
	WORD("not", set_flag(h, about, false));
	WORD("way", set_way(h, about));
	WORD("limit", set_limit(h, atoi(about)));
	WORD("level", h->level = (enum stop_level)atoi(about));
	WORD("no-room", h->full_queue = queue_of(about));
	WORD("asks", strlcpy(h->asks, about, sizeof(h->asks)));
	WORD("leads", strlcpy(h->leads, about, sizeof(h->leads)));
	WORD("attempts", h->f.opt.rules[0].effective.attempts = atoi(about));
	WORD("unfit", h->unfit = about[0] != '\0' ? "unfit" : NULL);
	WORD("joblog", h->f.opt.joblog = "log");
	WORD("exists-not", h->f.layout.exists = NULL);
	WORD("uncounted", h->f.layout.has = 0);
	WORD("tick-of", h->tick = atoi(about));
	WORD("server-ms", h->now_ms = atoi(about));
	WORD("add", add_all(h, about));
	WORD("bad-header", spoil(add_with(&h->f, about, MQ_HEADER_ID, "1")));
	WORD("attempt", add_with(&h->f, about + 2, MQ_HEADER_ATTEMPT, value));
	WORD("expires", add_with(&h->f, about + 2, MQ_HEADER_EXPIRES, value));
	WORD("until-tick",
	    add_with(&h->f, about + 2, MQ_HEADER_UNTIL_TICK, value));
	WORD("attached", add_with(&h->f, about, MQ_HEADER_ATTACH, "set"));
	return set_number(h, word, about);
}

/* What modules do with a message meanwhile. */
static bool
do_to(struct house *h, const char *word, struct message *m)
{
	struct hand *hand = h->f.hand;

	WORD("run", hand_start(hand, m));
	WORD("end", end(m, MQ_VERDICT_DONE));
	WORD("fail", end(m, MQ_VERDICT_ERR));
	WORD("stop-run", end(m, MQ_VERDICT_STOPPED));
	WORD("end-print", hand_end(hand, m),
	    tell(&h->f, FACT_ENDED, .message = m));
	WORD("break-off", hand_put_back(hand, m),
	    tell(&h->f, FACT_BROKEN_OFF, .message = m));
	WORD("too-long", hand_end(hand, m),
	    tell(&h->f, FACT_TOO_LONG, .message = m,
		.text = mq_xstrdup("too long")));
	WORD("settle", hand_settle(hand, m));
	WORD("settled", settle(m, true));
	WORD("over", settle(m, false));
	WORD("sent", m->sent = true);
	WORD("in-flight", m->in_flight = true);
	WORD("name", strlcpy(m->id, name_of(m), sizeof(m->id)));
	WORD("notified", m->notified = mq_xstrdup("c"));
	WORD("stop-wanted", m->stop = MQ_STOP_PURGE);
	WORD("push-to", m->outcome = MQ_OUTCOME_PUSH);
	WORD("lose", hand_lose(hand, m, false));
	WORD("gone", hand_lose(hand, m, true));
	WORD("is-lost", answers(m->lost));
	WORD("is-gone", answers(m->gone));
	WORD("has-name", answers(m->id[0] != '\0'));
	return false;
}

/* What was said since the last question. */
static void
record_said(struct house *h)
{
	char *text;

	fflush(h->f.say);
	text = mq_xstrdup(h->said + h->read);
	h->read = h->said_len;
	text[strcspn(text, "\n")] = '\0';
	if (*text != '\0')
		record("%s", text);
	free(text);
}

static bool
ask(struct house *h, const char *word, const char *about)
{
	const struct start_terms *t = &h->terms;

	WORD("turn", turn_all(&h->e));
	WORD("states", record_states(h->f.hand, which(about)));
	WORD("all", record_all(h->f.hand, -1));
	WORD("said", record_said(h));
	WORD("ending", answers(h->e.ending));
	WORD("last", answers(t->last));
	WORD("coming",
	    record("%s %s", queue_or_all(t->coming[0]),
		queue_or_all(t->coming[1])));
	WORD("failed", record("%d", h->e.failed));
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
	    arrange(h, word, about))
		return true;
	while (next_word(&about, name))
		known = do_to(h, word, find(&h->f, name));
	return known;
}

static void
ask_whether_it_exists(const struct mq_session *s, int queue,
    const char *element, size_t len, struct mq_command *c)
{
}

/* Of a consumer with a run for each message, up, with room for 10 messages. */
static void *
setup(void)
{
	struct house *h = house = mq_xcalloc(1, sizeof(*h));
	struct fixture *f = &h->f;

	fixture_init(f);
	fclose(f->say);
	f->say = open_memstream(&h->said, &h->said_len);
	mq_say_to(f->say);
	f->layout.exists = ask_whether_it_exists;
	f->server.session.connection = "me";
	strlcpy(h->server.name, "server", sizeof(h->server.name));
	h->room = 10;
	h->slots = 64;
	h->spare = 64;
	h->batch = 1;
	h->expects = h->expects_next = h->full_queue = -1;
	h->follows = -1;
	set_way(h, "fork");
	h->e = (struct engine){.loop = f->loop,
	    .opt = &f->opt,
	    .server = &h->server,
	    .facts = f->facts,
	    .hand = f->hand,
	    .consumer = &f->server};
	h->e.room = mq_xcalloc((size_t)f->opt.queue_count, sizeof(*h->e.room));
	return h;
}

static void
teardown(void *arg)
{
	struct house *h = arg;

	while (h->asked_count > 0)
		answer(NULL);
	free(h->e.room);
	fixture_free(&h->f);
	free(h->said);
	free(h);
}

#endif
