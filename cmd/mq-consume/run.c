/*
 * One process per message, or per batch: start it, listen to its verbs, judge
 * it.
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "consume.h"
#include "executor.h"

/* No pipe holds more than this. */
#define VERBS_AT_ONCE (1 << 20)
/* Between the TERM of a timeout, or of a stop, and the KILL. */
#define KILL_AFTER 5.0
/* The pipes of a run are read at its end; from then on, as they come. */
#define LISTEN_AFTER 0.01

/*
 * Reads what is there, without waiting; all of it, or until it is enough.
 * False: there is nothing more to come.
 */
static bool
read_verbs(struct slot *s, bool all)
{
	char buf[4096];
	ssize_t n;
	int i;

	/* Somebody may write faster than we read; there are others. */
	for (i = 0; i < VERBS_AT_ONCE; i += (int)sizeof(buf)) {
		if (!all && requests_full(&s->requests))
			return true;
		n = read(s->verbs_fd, buf, sizeof(buf));
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
	if (!read_verbs(s, false) || requests_full(&s->requests))
		ev_io_stop(loop, w);
}

static void
on_requests_room(void *arg)
{
	struct slot *s = arg;

	if (!ev_is_active(&s->patience))
		ev_io_start(s->c->loop, &s->verbs_io);
}

/* A grandchild may keep the pipes open for ever: only what is there counts. */
static void
hear_the_end(struct slot *s)
{
	struct consumer *c = s->c;
	double took = mq_clock_s(CLOCK_MONOTONIC) - s->started;

	(void)read_verbs(s, true);
	mq_verbs_end(&s->verbs);
	ev_io_stop(c->loop, &s->verbs_io);
	ev_timer_stop(c->loop, &s->timer);
	ev_timer_stop(c->loop, &s->patience);
	close(s->verbs_fd);
	requests_close(&s->requests);
	s->pid = 0;
	count_run(c, slot_on(s)->queue, took);
	c->run_s = c->run_s == 0 ? took : c->run_s * 0.8 + took * 0.2;
}

static void
verdict_of(const struct slot *s, int which, struct mq_verdict *v)
{
	bool strict = s->c->opt->strict;

	if (s->ones != NULL)
		mq_verdict_one(&s->verbs, which, s->status,
		    s->timed_out || s->ended, strict, v);
	else
		mq_verdict(&s->verbs, s->status, s->timed_out, strict, v);
}

/* Whether it goes back to where it was, as if it had not run. */
static bool
goes_back(const struct slot *s, int which, const struct mq_verdict *v)
{
	if (v->kind == MQ_VERDICT_STOP)
		return true;
	if (!s->ended)
		return false;
	/* What was said of it alone stands. */
	if (s->ones != NULL && s->ones[which].final != MQ_FINAL_NONE)
		return false;
	return v->kind != MQ_VERDICT_DONE && v->kind != MQ_VERDICT_PUSH;
}

/* Carries out what there is to be for those of hand that do not go back. */
static void
judge(struct slot *s, struct messages *hand, const char *errors)
{
	struct message *m, *next;
	struct mq_verdict v;
	bool good = false, bad = false;
	int which = -1;

	TAILQ_FOREACH_SAFE(m, hand, hand, next) {
		verdict_of(s, ++which, &v);
		if (!m->lost && goes_back(s, which, &v))
			continue;
		TAILQ_REMOVE(hand, m, hand);
		if (m->lost) {
			message_drop(m);
			continue;
		}
		good = good || slot_is_good(v.kind);
		bad = bad || slot_is_bad(v.kind);
		verdict_carry_out(m, &v, errors);
	}
	if (good || bad)
		slot_judged(s, good);
}

/* They are held again. */
static void
give_back(struct messages *hand)
{
	struct message *m;

	while ((m = TAILQ_LAST(hand, messages)) != NULL) {
		TAILQ_REMOVE(hand, m, hand);
		message_unstart(m);
	}
}

/* The command cannot run at all: all the messages go back. */
static void
stop_if_broken(struct slot *s)
{
	struct mq_verdict v;

	mq_verdict(&s->verbs, s->status, s->timed_out, s->c->opt->strict, &v);
	if (v.kind != MQ_VERDICT_STOP || s->ended)
		return;
	mq_say("%s: %s; stopping, %s returned", process_script(&s->c->process),
	    v.how, s->ones != NULL ? "the messages are" : "the message is");
	policy_stop(&s->c->policy, STOP_SOON, MQ_EXIT_CONFIG, 0);
}

/* The run has ended, and its last request has its answer. */
static void
finish_run(void *arg)
{
	struct slot *s = arg;
	struct consumer *c = s->c;
	struct messages hand = TAILQ_HEAD_INITIALIZER(hand);
	const char *errors;

	c->busy--;
	c->last_end = mq_clock_steady_s();
	engine_mark(c);
	errors = run_output_close(s->output);
	s->output = NULL;
	slot_empty(s, &hand);
	/* Whoever asks for the lease first may find that they are lost. */
	(void)lease_held(c);
	judge(s, &hand, errors);
	/* Those of a batch wait for each other, but then for none. */
	if (policy_is_careful(&c->policy))
		acks_send(c);
	if (!TAILQ_EMPTY(&hand))
		stop_if_broken(s);
	give_back(&hand);
	batch_forget(s);
}

static void
on_exit_of_script(void *arg, int status)
{
	struct slot *s = arg;

	hear_the_end(s);
	s->status = status;
	if (!requests_finish(&s->requests))
		finish_run(s);
}

const struct request_events run_requests = {
    .answered = finish_run,
    .room = on_requests_room,
};

/* A run that is over by now is not worth the system calls. */
static void
on_patience(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)events;
	ev_io_start(loop, &s->verbs_io);
	run_output_listen(s->output);
	mq_child_poll(&s->child);
}

static void
on_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)events;
	kill(-s->pid, s->timed_out ? SIGKILL : SIGTERM);
	if (s->timed_out)
		return;
	s->timed_out = true;
	ev_timer_set(w, KILL_AFTER, 0);
	ev_timer_start(loop, w);
}

static void
watch(struct slot *s)
{
	struct consumer *c = s->c;

	ev_io_init(&s->verbs_io, on_verbs, s->verbs_fd, EV_READ);
	ev_timer_init(
	    &s->timer, on_timeout, (double)c->opt->timeout_ms / 1000, 0);
	s->verbs_io.data = s;
	s->timer.data = s;
	ev_timer_init(&s->patience, on_patience, LISTEN_AFTER, 0);
	s->patience.data = s;
	mq_child_watch(&c->children, &s->child, s->pid, on_exit_of_script, s);
	ev_timer_start(c->loop, &s->patience);
	if (c->opt->timeout_ms > 0)
		ev_timer_start(c->loop, &s->timer);
}

bool
run_take(struct slot *s, struct message *m)
{
	struct consumer *c = s->c;

	if (!message_open(m))
		return false;
	/* If this one kills us, those that have ended must not be charged. */
	if (policy_is_careful(&c->policy))
		mq_async_flush(&c->main);
	message_state(m, STATE_RUNNING);
	slot_take(s, m);
	policy_started(&c->policy);
	return true;
}

void
run_begin(struct slot *s, const char *input, size_t n)
{
	struct consumer *c = s->c;

	if (policy_is_alone(&c->policy))
		slot_stand_alone(c);
	s->started_ms = 0;
	s->timed_out = false;
	s->ended = false;
	mq_verbs_begin(&s->verbs);
	s->verbs.on_dup = slot_dup;
	s->verbs.arg = s;
	s->verbs.ones = s->ones;
	s->verbs.count = s->count;
	if (!start_script(s, mq_worker_payload(input, n))) {
		batch_forget(s);
		return;
	}
	c->busy++;
	watch(s);
}

struct message *
run_next(const struct consumer *c)
{
	int i;

	for (i = 0; i < c->opt->queue_count; i++)
		if (!TAILQ_EMPTY(&c->queues[i].waiting) &&
		    !c->queues[i].paused && c->queues[i].pausing == 0)
			return TAILQ_FIRST(&c->queues[i].waiting);
	return NULL;
}

static bool
is_link_up(void *arg)
{
	const struct consumer *c = arg;

	return c->link == LINK_UP;
}

static void
init_duplicates(struct consumer *c)
{
	c->duplicates = (struct duplicates){.loop = c->loop,
	    .children = &c->children,
	    .verbose = c->opt->verbose,
	    .quiet = c->opt->quiet,
	    .context = {
		.origin = {c->layout, process_host(&c->process), &c->ids},
		.ns = c->server.url.ns,
		.async = &c->main,
		.is_up = is_link_up,
		.arg = c}};
	duplicates_init(&c->duplicates);
}

void
run_init(struct consumer *c)
{
	int i;

	if (!c->executor->runs)
		return;
	init_duplicates(c);
	c->slots = mq_xcalloc((size_t)c->opt->slots, sizeof(*c->slots));
	TAILQ_INIT(&c->free_slots);
	for (i = c->opt->slots - 1; i >= 0; i--) {
		c->slots[i].c = c;
		TAILQ_INIT(&c->slots[i].hand);
		requests_init(&c->slots[i].requests, &c->duplicates,
		    c->executor->requests, &c->slots[i]);
		slot_changed(&c->slots[i]);
	}
	batch_init(c);
	worker_init(c);
}

void
run_end(struct consumer *c)
{
	free(c->slots);
}
