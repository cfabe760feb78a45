/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Runs: a process for each message or, with --batch, for several messages of one queue,
 * which are framed on its standard input.  A batch waits for more messages of its queue, from
 * the claim of its first message on. */
#include "parts.h"

#include "mq-consume/duplicates.h"
#include "mq-consume/policy.h"

/* Bytes read at a time: the most that a pipe holds. */
#define VERBS_AT_ONCE (1 << 20)
/* If a run is shorter than this, in seconds, its pipes are read only at its end. */
#define LISTEN_AFTER 0.01
/* Bytes of the largest batch buffer that is kept for the next batch. */
#define INPUT_KEPT ((size_t)1 << 20)
/* Without --prefetch, as many runs are claimed ahead as the slots finish in AHEAD_S seconds: at
 * most AHEAD_MAX, of AHEAD_MESSAGES messages in all, but at least 1. */
#define AHEAD_S	       0.1
#define AHEAD_MAX      100
#define AHEAD_MESSAGES 1000

/* --- room ------------------------------------------------------------------- */

/* How many messages to claim ahead of the idle slots. */
static int
slots_ahead(const struct executor *x, bool careful)
{
	int most = MAX(1, MIN(AHEAD_MAX, AHEAD_MESSAGES / x->batch));
	double runs;

	if (careful)
		return 0;
	if (x->opt->prefetch >= 0)
		return x->opt->prefetch;
	if (x->run_s == 0 || rules_share(x->opt))
		return 0;
	runs = x->limit * AHEAD_S / x->run_s;
	return (int)MIN(runs, most) * x->batch;
}

static void
run_tick(struct executor *x)
{
	x->starved = false;
	/* Messages that gather for a batch are not given back. */
	if (x->opt->batch_wait_ms <= 0)
		(void)slots_return_stale(x, slots_idle(x) > 0);
}

/* --- listening -------------------------------------------------------------- */

/* Reads verbs without waiting: all, or until there are too many requests.  Returns false at the
 * end of the pipe. */
static bool
read_verbs(struct slot *s, bool all)
{
	char buf[4096];
	ssize_t n;
	int i;

	/* A script may write faster than we read; other scripts wait. */
	for (i = 0; i < VERBS_AT_ONCE; i += (int)sizeof(buf)) {
		if (!all && requests_full(s->requests))
			return true;
		n = read(s->run.verbs, buf, sizeof(buf));
		if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
			return false;
		if (n == -1 && errno == EAGAIN)
			return true;
		if (n > 0)
			mq_verbs_feed(&s->verbs, buf, (size_t)n);
	}
	return true;
}

static void
on_verbs(struct ev_loop *loop, ev_io *w, int events)
{
	struct slot *s = w->data;

	(void)events;
	if (!read_verbs(s, false) || requests_full(s->requests))
		ev_io_stop(loop, w);
}

static void
on_timeout(void *slot)
{
	struct slot *s = slot;

	kill(-s->run.pid, s->timed_out ? SIGKILL : SIGTERM);
	if (!s->timed_out)
		slot_set_timer(s, KILL_AFTER);
	s->timed_out = true;
}

/* --- judging ---------------------------------------------------------------- */

static void
judge_message(const struct slot *s, const struct message *m, int which,
    struct mq_verdict *v)
{
	enum mq_strict strict = s->executor->opt->strict;
	bool ended = s->verbs.ones != NULL ?
	    s->verbs.ones[which].final != MQ_FINAL_NONE :
	    s->verbs.final != MQ_FINAL_NONE && s->status == 0;

	/* An operator stopped the run before it had decided about the message. */
	if (m->stop != MQ_STOP_NONE && !ended)
		mq_verdict_stopped(s->status, v);
	else if (s->verbs.ones != NULL)
		mq_verdict_one(&s->verbs, which, s->status,
		    s->timed_out || s->killed, strict, v);
	else
		mq_verdict(&s->verbs, s->status, s->timed_out, strict, v);
}

/* Whether no verb is about this message of a batch alone: all such messages have the same
 * verdict. */
static bool
is_like_others(const struct slot *s, const struct message *m, int which)
{
	const struct mq_verb_one *one = &s->verbs.ones[which];

	return m->stop == MQ_STOP_NONE && one->final == MQ_FINAL_NONE &&
	    one->text == NULL && one->unknown[0] == '\0';
}

/* Whether a message goes back, as if it had not run.  A message of a batch that has its own
 * final verb does not. */
static bool
goes_back(const struct slot *s, const struct message *m, int which,
    const struct mq_verdict *v)
{
	return s->killed && !m->lost && m->stop == MQ_STOP_NONE &&
	    (s->verbs.ones == NULL ||
		s->verbs.ones[which].final == MQ_FINAL_NONE) &&
	    v->kind != MQ_VERDICT_DONE && v->kind != MQ_VERDICT_PUSH;
}

/* Ends the messages that do not go back. */
static void
judge_messages(struct slot *s, const char *errors)
{
	struct mq_verdict own, like, *v;
	struct message *m, *next;
	enum slot_success success = SLOT_NEITHER;
	bool known = false;
	int which = 0;

	TAILQ_FOREACH_SAFE(m, &s->messages, line, next) {
		v = &own;
		if (s->verbs.ones != NULL && is_like_others(s, m, which))
			v = &like;
		if (v != &like || !known)
			judge_message(s, m, which, v);
		known = known || v == &like;
		if (goes_back(s, m, which++, v)) {
			slot_break_off(s, m, v, errors);
			continue;
		}
		if (!m->lost && slot_success_of(v->kind) > success)
			success = slot_success_of(v->kind);
		slot_end(s, m, v, errors);
	}
	slot_judged(s, success);
}

static void
judge_run(struct slot *s)
{
	struct executor *x = s->executor;
	const char *errors = slot_close_output(s);
	const struct message *m = TAILQ_FIRST(&s->messages);
	struct mq_verdict v;

	if (m == NULL)
		return;
	mq_verdict(&s->verbs, s->status, s->timed_out, x->opt->strict, &v);
	s->killed = s->killed ||
	    (slot_success_of(v.kind) == SLOT_FAILURE && executor_unread(x));
	if (!s->killed)
		slot_ran(s, m, &v);
	judge_messages(s, errors);
}

static void
end_run(struct slot *s)
{
	struct executor *x = s->executor;
	ssize_t n;
	int error, i;

	x->busy--;
	slots_count(x, TAILQ_FIRST(&s->messages)->queue, -1);
	x->last_end = mq_clock_steady_s();
	/* After fetching attachments, the process may have failed to become the command. */
	if (s->run.failure != -1) {
		n = read(s->run.failure, &error, sizeof(error));
		close(s->run.failure);
		if (n == (ssize_t)sizeof(error) && error != 0)
			slot_not_started(s, error);
	}
	judge_run(s);
	slot_return_all(s);
	run_result_free(s->run.result);
	s->run.result = NULL;
	for (i = 0; s->verbs.ones != NULL && i < s->verbs.count; i++)
		free(s->verbs.ones[i].text);
	free(s->verbs.ones);
	s->verbs.ones = NULL;
	tell(x, FACT_WAKE);
}

static void
run_answered(struct slot *s, bool all)
{
	if (all)
		end_run(s);
	else if (s->run.pid != 0 && !mq_timer_runs(&s->patience))
		ev_io_start(s->executor->loop, &s->verbs_io);
}

static void
on_ended(void *slot, int status)
{
	struct slot *s = slot;
	struct executor *x = s->executor;
	double took = mq_clock_s(CLOCK_MONOTONIC) - s->started;
	/* A grandchild may keep the pipes open for ever: their end is not awaited. */
	bool alone = !read_verbs(s, true) && run_output_ended(s->run.output);

	s->ran_s = took;
	mq_verbs_feed(&s->verbs, "\n", 1);
	ev_io_stop(x->loop, &s->verbs_io);
	mq_timer_stop(&s->timer);
	mq_timer_stop(&s->patience);
	if (alone && requests_empty(s->requests))
		mq_answers_keep(&s->answers);
	else
		mq_answers_close(&s->answers);
	close(s->run.verbs);
	s->run.pid = 0;
	s->status = status;
	tell(x, FACT_RAN, .queue = TAILQ_FIRST(&s->messages)->queue,
	    .seconds = took);
	x->run_s = x->run_s == 0 ? took : x->run_s * 0.8 + took * 0.2;
	s->waits = requests_await(s->requests, true);
	if (!s->waits)
		end_run(s);
}

/* --- beginning -------------------------------------------------------------- */

/* Whether another slot can begin a run.  If so, sets x->filled to that slot. */
static bool
wants_run(struct executor *x, const struct start_terms *terms)
{
	x->filled = TAILQ_FIRST(&x->free);
	return x->filled != NULL && slots_idle(x) > 0 &&
	    slots_may_start(x, terms);
}

/* Seconds, 0: no limit.  A batch has the shortest time of its messages. */
static double
run_timeout(const struct slot *s)
{
	const struct message *m;
	double least = 0, own;

	TAILQ_FOREACH(m, &s->messages, line) {
		own = message_timeout(s->executor->opt, m);
		if (least == 0 || (own > 0 && own < least))
			least = own;
	}
	return least;
}

static void
begin_run(struct executor *x, const char *input, size_t n)
{
	struct slot *s = x->filled;
	int queue = TAILQ_FIRST(&s->messages)->queue;

	if (!slot_start(s, mq_worker_payload(input, n)))
		return;
	s->verbs.count = s->count;
	if (x->opt->batch > 0)
		s->verbs.ones =
		    mq_xcalloc((size_t)s->count, sizeof(*s->verbs.ones));
	slots_count(x, queue, 1);
	mq_timer_start(&s->patience, LISTEN_AFTER, 0);
	slot_set_timer(s, run_timeout(s));
}

/* --- one message a run --------------------------------------------------------- */

static long
fork_room(const struct executor *x, int queue, bool careful)
{
	long all = slots_idle(x) - hand_count(x->hand, -1, MESSAGE_UNSTARTED) +
	    slots_ahead(x, careful);
	long own = slots_idle_for(x, queue) -
	    hand_count(x->hand, queue, MESSAGE_UNSTARTED);

	return x->slots_differ && own < all ? own : all;
}

static bool
fork_wants(struct executor *x, const struct start_terms *terms, int *queue)
{
	*queue = -1;
	return wants_run(x, terms);
}

static bool
fork_take(struct executor *x, struct message *m)
{
	slot_add(x->filled, m);
	return false;
}

static void
fork_begin(struct executor *x)
{
	const struct message *m = TAILQ_FIRST(&x->filled->messages);

	/* With -I, the payload is an argument, and the input empty. */
	if (m != NULL)
		begin_run(x, m->envelope.payload,
		    x->opt->replace == NULL ? m->envelope.payload_len : 0);
}

const struct executor_table executor_fork = {
    .way = {.acks = ACKS_AT_ONCE, .runs = true, .names = true, .files = true},
    .wants = fork_wants,
    .take = fork_take,
    .begin = fork_begin,
    .room = fork_room,
    .tick = run_tick,
    .on_verbs = on_verbs,
    .on_timeout = on_timeout,
    .on_ended = on_ended,
    .answered = run_answered,
};

/* --- one batch a run ----------------------------------------------------------- */

/* Each queue can gather a batch while a slot is free. */
static long
batch_room(const struct executor *x, int queue, bool careful)
{
	long free = slots_idle_for(x, queue);
	int unstarted =
	    hand_count(x->hand, free > 0 ? queue : -1, MESSAGE_UNSTARTED);
	/* Messages that gather wait anyway: none is claimed ahead of them. */
	bool gathers = x->opt->batch_wait_ms > 0 && x->opt->prefetch < 0;

	return free * x->batch - unstarted +
	    (gathers ? 0 : slots_ahead(x, careful));
}

/* Sets the timer to wake the engine at a steady time. */
static void
await_batch(struct executor *x, double due)
{
	if (mq_timer_runs(&x->batch_timer) && x->batch_due == due)
		return;
	x->batch_due = due;
	mq_timer_start(&x->batch_timer, due - mq_clock_steady_s(), 0);
}

/* The first queue whose batch can start.  -1: none yet, and the timer is set. */
static int
next_batch_queue(struct executor *x, const struct start_terms *terms)
{
	double wait_s = (double)x->opt->batch_wait_ms / 1000;
	double now = 0, first = 0, due;
	const struct message *m;
	int i;

	for (i = 0; i < x->opt->queue_count; i++) {
		if ((m = hand_next(x->hand, i)) == NULL)
			continue;
		if (terms->last ||
		    hand_count(x->hand, i, MESSAGE_UNSTARTED) >= x->batch)
			return i;
		/* More messages are about to come. */
		if (i == terms->coming[0] || i == terms->coming[1])
			continue;
		if (now == 0)
			now = mq_clock_steady_s();
		due = m->since + wait_s;
		if (due <= now)
			return i;
		if (first == 0 || due < first)
			first = due;
	}
	if (first != 0)
		await_batch(x, first);
	return -1;
}

static bool
batch_wants(struct executor *x, const struct start_terms *terms, int *queue)
{
	*queue = wants_run(x, terms) ? next_batch_queue(x, terms) : -1;
	mq_buf_clear(&x->input);
	return *queue != -1;
}

static bool
batch_take(struct executor *x, struct message *m)
{
	slot_add(x->filled, m);
	message_frame(m, x->opt->framing, &x->input);
	return x->filled->count < x->batch;
}

static void
batch_begin(struct executor *x)
{
	if (x->filled->count == 0)
		return;
	begin_run(x, x->input.data, x->input.len);
	if (x->input.cap > INPUT_KEPT)
		mq_buf_free(&x->input);
}

const struct executor_table executor_batch = {
    .way = {.acks = ACKS_AT_REST, .runs = true, .names = true},
    .wants = batch_wants,
    .take = batch_take,
    .begin = batch_begin,
    .room = batch_room,
    .tick = run_tick,
    .on_verbs = on_verbs,
    .on_timeout = on_timeout,
    .on_ended = on_ended,
    .answered = run_answered,
};
