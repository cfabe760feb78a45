#include "executor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "mq-consume/rules.h"

/* The most that a pipe holds. */
#define VERBS_AT_ONCE (1 << 20)
/* Seconds from TERM to KILL after a timeout. */
#define KILL_AFTER 5.0
/* Before this time, the pipes of a run are read only at its end. */
#define LISTEN_AFTER 0.01

/* --- listening -------------------------------------------------------------- */

/*
 * Reads verbs without waiting; all, or until there are too many requests.  False:
 * the pipe has ended.
 */
static bool
read_verbs(struct slot *s, bool all)
{
	char buf[4096];
	ssize_t n;
	int i;

	/* A script may write faster than we read; other scripts wait. */
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

/* There is room for requests again. */
static void
on_room(void *arg)
{
	struct slot *s = arg;

	if (s->pid != 0 && !ev_is_active(&s->patience))
		ev_io_start(s->executor->loop, &s->verbs_io);
}

/* For a run that is over before, the system calls are saved. */
static void
on_patience(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)events;
	fcntl(s->verbs_fd, F_SETFL, O_NONBLOCK);
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

/* --- judging ---------------------------------------------------------------- */

static void
judge_message(const struct slot *s, int which, struct mq_verdict *v)
{
	enum mq_strict strict = s->executor->opt->strict;

	if (s->ones != NULL)
		mq_verdict_one(&s->verbs, which, s->status,
		    s->timed_out || s->killed, strict, v);
	else
		mq_verdict(&s->verbs, s->status, s->timed_out, strict, v);
}

/* Whether a message goes back, as if it had not run. */
static bool
must_return(const struct slot *s, int which, const struct mq_verdict *v)
{
	if (!s->killed)
		return false;
	/* A final verb about this message stands. */
	if (s->ones != NULL && s->ones[which].final != MQ_FINAL_NONE)
		return false;
	return v->kind != MQ_VERDICT_DONE && v->kind != MQ_VERDICT_PUSH;
}

/* Reports the end of the messages that do not go back. */
static void
judge_hand(struct slot *s, const char *errors)
{
	struct executor *x = s->executor;
	struct message *m, *next;
	struct mq_verdict v;
	enum slot_success success = SLOT_NEITHER;
	int which = -1;

	TAILQ_FOREACH_SAFE(m, &s->hand, line, next) {
		judge_message(s, ++which, &v);
		if (!m->lost && must_return(s, which, &v)) {
			tell(x, FACT_BROKEN_OFF, .message = m, .verdict = &v,
			    .text = errors);
			continue;
		}
		if (!m->lost && slot_success_of(v.kind) > success)
			success = slot_success_of(v.kind);
		slot_release(s, m);
		tell(
		    x, FACT_ENDED, .message = m, .verdict = &v, .text = errors);
	}
	slot_judged(s, success);
}

static void
judge_run(struct slot *s)
{
	struct message *first = slot_message(s);
	const char *errors = slot_close_output(s);
	struct mq_verdict v;

	if (first == NULL)
		return;
	mq_verdict(
	    &s->verbs, s->status, s->timed_out, s->executor->opt->strict, &v);
	if (!s->killed)
		slot_ran(s, first, &v);
	judge_hand(s, errors);
}

static void
forget_ones(struct slot *s)
{
	int i;

	for (i = 0; s->ones != NULL && i < s->verbs.count; i++)
		free(s->ones[i].text);
	free(s->ones);
	s->ones = NULL;
}

/* The run has ended, and its last request has its answer. */
static void
on_answered(void *arg)
{
	struct slot *s = arg;
	struct executor *x = s->executor;

	x->busy--;
	slots_count(x, s->queue, -1);
	x->last_end = mq_clock_steady_s();
	/* The check of the lease may mark messages as lost. */
	tell(x, FACT_JUDGING);
	(void)slot_was_started(s);
	judge_run(s);
	slot_return_all(s);
	forget_ones(s);
	tell(x, FACT_WAKE);
}

/* Reads what the pipes hold; whether no process can write more.  A grandchild may
 * keep them open for ever: no end is waited for. */
static bool
read_rest(struct slot *s)
{
	/* Most short runs write nothing. */
	if (run_output_silent(s->output, s->verbs_fd))
		return true;
	fcntl(s->verbs_fd, F_SETFL, O_NONBLOCK);
	return !read_verbs(s, true) && run_output_ended(s->output);
}

static void
on_ended(void *arg, int status)
{
	struct slot *s = arg;
	struct executor *x = s->executor;
	double took = mq_clock_s(CLOCK_MONOTONIC) - s->started;
	bool alone = read_rest(s);

	s->ran_s = took;
	mq_verbs_end(&s->verbs);
	ev_io_stop(x->loop, &s->verbs_io);
	ev_timer_stop(x->loop, &s->timer);
	ev_timer_stop(x->loop, &s->patience);
	requests_close(&s->requests, alone);
	close(s->verbs_fd);
	s->pid = 0;
	s->status = status;
	tell(x, FACT_RAN, .queue = slot_message(s)->queue, .seconds = took);
	x->run_s = x->run_s == 0 ? took : x->run_s * 0.8 + took * 0.2;
	if (!requests_finish(&s->requests))
		on_answered(s);
}

/* --- starting --------------------------------------------------------------- */

static void
watch_run(struct slot *s)
{
	struct executor *x = s->executor;
	int64_t timeout_ms = rules_of(x->opt, s->queue)->timeout_ms;

	ev_io_init(&s->verbs_io, on_verbs, s->verbs_fd, EV_READ);
	ev_timer_init(&s->timer, on_timeout, (double)timeout_ms / 1000, 0);
	ev_timer_init(&s->patience, on_patience, LISTEN_AFTER, 0);
	s->verbs_io.data = s->timer.data = s->patience.data = s;
	mq_child_watch(x->children, &s->child, s->pid, on_ended, s);
	ev_timer_start(x->loop, &s->patience);
	if (timeout_ms > 0)
		ev_timer_start(x->loop, &s->timer);
}

void
run_begin(struct slot *s, const char *input, size_t n)
{
	struct executor *x = s->executor;

	/* It may crash this consumer: held messages go back that no other slot can take
	 * at once. */
	if (policy_is_alone(x->policy) &&
	    inbox_held(x->inbox) > (slots_idle(x) - 1) * x->batch)
		tell(x, FACT_GIVE_BACK, .yes = true);
	s->started_ms = 0;
	s->timed_out = false;
	s->killed = false;
	mq_verbs_begin(&s->verbs);
	s->verbs.on_dup = slot_ask_duplicate;
	s->verbs.arg = s;
	s->verbs.ones = s->ones;
	s->verbs.count = s->count;
	if (!slot_start(s, mq_worker_payload(input, n))) {
		forget_ones(s);
		return;
	}
	x->busy++;
	s->queue = slot_message(s)->queue;
	slots_count(x, s->queue, 1);
	watch_run(s);
}

void
run_make(struct slot *s)
{
	static const struct request_events events = {
	    .answered = on_answered, .room = on_room};

	requests_init(&s->requests, s->executor->duplicates, &events, s);
}
