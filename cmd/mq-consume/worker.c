/*
 * The life of a worker that stays: how long it may take, and its end.
 *
 * When it ends, what it has judged stands.  The message that it was on follows
 * from how it ended, and those behind that are held again, as if nobody had
 * had them.  Another worker takes its place, after a while if it ended badly.
 */
#include <sys/wait.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "consume.h"

/* Until the next one after one that ended badly. */
#define WAIT_MIN 0.1
#define WAIT_MAX 30.0
/* Between the TERM of a timeout and the KILL; and between the end of one of its
 * descriptors and its own. */
#define KILL_AFTER 5.0

/* --- its time --------------------------------------------------------------- */

bool
worker_is_leaving(const struct slot *s)
{
	return s->urged || s->mute || s->ended || s->broken != NULL;
}

/* Whether there is nothing more that it could say. */
static bool
has_finished(const struct slot *s)
{
	const struct message *m = slot_on(s);

	return s->feed.fd == -1 &&
	    (m == NULL || (s->feed.deaf && !feed_whole(&s->feed, m)));
}

/* Seconds; 0: as long as it likes. */
static double
time_for_it(const struct slot *s)
{
	const struct consumer *c = s->c;
	double grace = (double)c->opt->grace_ms / 1000;

	/* Who stops has a grace time for all. */
	if (has_finished(s) && policy_level(&c->policy) >= STOP_SOON)
		return 0;
	if (has_finished(s))
		return s->feed.deaf || grace < KILL_AFTER ? KILL_AFTER : grace;
	return slot_on(s) == NULL ? 0 : (double)c->opt->timeout_ms / 1000;
}

static void
set_timer(struct slot *s, double after)
{
	ev_timer_stop(s->c->loop, &s->timer);
	ev_timer_set(&s->timer, after, 0);
	if (after > 0)
		ev_timer_start(s->c->loop, &s->timer);
}

void
worker_next(struct slot *s)
{
	s->started = mq_clock_s(CLOCK_MONOTONIC);
	s->started_ms = 0;
	if (s->pid != 0 && !worker_is_leaving(s))
		set_timer(s, time_for_it(s));
}

void
worker_waits(struct slot *s)
{
	if (s->pid != 0 && !worker_is_leaving(s))
		set_timer(s, 0);
}

void
worker_last(struct slot *s)
{
	if (s->feed.last)
		return;
	feed_last(&s->feed);
	if (has_finished(s))
		worker_next(s);
}

/* It gets nothing more, and what it cannot have read is not its any more. */
static void
cut_off(struct slot *s)
{
	feed_take_back(&s->feed, &s->hand);
	feed_last(&s->feed);
	engine_mark(s->c);
}

void
worker_broke(struct slot *s, const char *how)
{
	if (s->broken != NULL)
		return;
	s->broken = how;
	/* When it is dead already, worker_bury() sees to all it had. */
	if (s->pid == 0)
		return;
	cut_off(s);
	set_timer(s, 0);
	kill(-s->pid, SIGKILL);
}

/* It is about to end, or has lost its voice. */
void
worker_is_mute(struct slot *s)
{
	if (worker_is_leaving(s))
		return;
	s->mute = true;
	cut_off(s);
	set_timer(s, KILL_AFTER);
}

/* It may have read enough, and still be at it. */
void
worker_is_deaf(struct slot *s)
{
	cut_off(s);
	if (has_finished(s))
		worker_next(s);
}

/* It has taken too long: for a message, or to end after the last. */
static void
urge(struct slot *s)
{
	s->urged = true;
	s->late = slot_on(s);
	cut_off(s);
	set_timer(s, KILL_AFTER);
	kill(-s->pid, SIGTERM);
}

static void
on_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)loop;
	(void)events;
	if (s->mute)
		worker_broke(s, "it has closed its descriptor 3");
	else if (s->urged)
		kill(-s->pid, SIGKILL);
	else if (s->feed.deaf && has_finished(s))
		worker_broke(s, "it has closed its standard input");
	else
		urge(s);
}

/* --- its end ---------------------------------------------------------------- */

/* Its errors are wanted for the histories of those that failed only. */
void
worker_carry_out(struct slot *s, struct message *m, const struct mq_verdict *v)
{
	const char *errors = "";

	if (m->lost) {
		message_drop(m);
		return;
	}
	if (slot_is_good(v->kind) || slot_is_bad(v->kind))
		slot_judged(s, slot_is_good(v->kind));
	if (v->kind != MQ_VERDICT_DONE || result_wanted(m))
		errors = run_output_so_far(s->output);
	verdict_carry_out(m, v, errors);
}

/* What there is for the message that it was on; false: it goes back. */
static bool
last_verdict(
    const struct slot *s, const struct message *m, struct mq_verdict *v)
{
	if (m == NULL || m->lost || s->ended ||
	    (s->late != NULL && s->late != m))
		return false;
	/* One that never says anything gets no other chances for ever. */
	if (s->judged > 0 && !feed_begun(&s->feed, m))
		return false;
	mq_verdict(&s->verbs, s->status, s->late != NULL,
	    s->c->opt->strict && s->judged == 0, v);
	if (s->broken != NULL) {
		v->kind = MQ_VERDICT_ERR;
		strlcpy(v->how, s->broken, sizeof(v->how));
	} else if (v->kind == MQ_VERDICT_DONE) {
		/* Silence is no word about a message. */
		if (s->judged > 0 || policy_level(&s->c->policy) >= STOP_SOON)
			return false;
		v->kind = MQ_VERDICT_RETRY;
		strlcpy(
		    v->how, "the worker ended without a verb", sizeof(v->how));
	}
	return true;
}

/* How it ended, for people; false: well. */
static bool
ended_badly(const struct slot *s, struct mq_verdict *v)
{
	const struct mq_verbs silence = {0};
	const char *how = s->broken;

	mq_verdict(&silence, s->status, false, false, v);
	if (how == NULL && s->late != NULL)
		how = "timed out";
	if (how == NULL && s->urged)
		how = "it did not end when it was to";
	if (how == NULL && s->status == 0 && s->judged == 0)
		how = "it has ended without a verb";
	if (how != NULL)
		strlcpy(v->how, how, sizeof(v->how));
	return !s->ended && (how != NULL || s->status != 0);
}

static void
on_restart(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)loop;
	(void)events;
	engine_mark(s->c);
}

/* One that got something done was not that bad. */
static void
replace(struct slot *s)
{
	struct consumer *c = s->c;
	struct mq_verdict v;

	if (!ended_badly(s, &v)) {
		s->wait_s = 0;
		return;
	}
	if (s->judged > 0 || s->wait_s == 0)
		s->wait_s = WAIT_MIN;
	else
		s->wait_s = s->wait_s * 2 < WAIT_MAX ? s->wait_s * 2 : WAIT_MAX;
	if (policy_level(&c->policy) >= STOP_SOON)
		return;
	if (!c->opt->quiet)
		mq_say("%s: worker: %s; another one in %.1f s",
		    process_script(&c->process), v.how, s->wait_s);
	ev_timer_set(&s->restart, s->wait_s, 0);
	ev_timer_start(c->loop, &s->restart);
}

/* The command cannot run at all. */
static void
stop_all(struct consumer *c, const char *why)
{
	mq_say("%s: %s; stopping, the message is returned",
	    process_script(&c->process), why);
	policy_stop(&c->policy, STOP_SOON, MQ_EXIT_CONFIG, 0);
}

/* Carries out what there is for the message that it was on.  False: the
 * command cannot run. */
static bool
judge_last(struct slot *s, struct mq_verdict *v)
{
	struct message *m = slot_on(s);

	if (!last_verdict(s, m, v))
		return true;
	if (v->kind == MQ_VERDICT_STOP)
		return false;
	slot_release(m);
	worker_carry_out(s, m, v);
	return true;
}

void
worker_bury(struct slot *s)
{
	struct consumer *c = s->c;
	struct message *m;
	struct mq_verdict v;
	bool works;

	c->busy--;
	engine_mark(c);
	c->last_end = mq_clock_steady_s();
	(void)lease_held(c);
	works = judge_last(s, &v);
	while ((m = TAILQ_LAST(&s->hand, messages)) != NULL)
		message_unstart(m);
	(void)run_output_close(s->output);
	s->output = NULL;
	feed_free(&s->feed);
	mq_buf_free(&s->said);
	if (works)
		replace(s);
	else
		stop_all(c, v.how);
}

static void
on_exit_of_worker(void *arg, int status)
{
	struct slot *s = arg;

	ev_timer_stop(s->c->loop, &s->timer);
	/* What nobody has written, or read, until now does not matter. */
	words_last(s);
	feed_cut(&s->feed);
	s->pid = 0;
	s->status = status;
	requests_close(&s->requests);
	if (!requests_awaited(&s->requests))
		words_over(s);
}

void
worker_watch(struct slot *s)
{
	struct consumer *c = s->c;

	ev_timer_init(&s->timer, on_timeout, 0, 0);
	s->timer.data = s;
	mq_child_watch(&c->children, &s->child, s->pid, on_exit_of_worker, s);
	mq_child_poll(&s->child);
	words_watch(s);
	run_output_listen(s->output);
}

void
worker_init(struct consumer *c)
{
	int i;

	for (i = 0; i < c->opt->slots; i++) {
		ev_timer_init(&c->slots[i].restart, on_restart, 0, 0);
		c->slots[i].restart.data = &c->slots[i];
	}
}
