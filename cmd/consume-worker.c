/*
 * What a worker that stays says, and its end.
 *
 * A verb about a message that the worker cannot have read breaks the protocol,
 * and so does the end of its descriptor 3 while it lives.  What was judged
 * until then stands.  When a worker ends, for this or any other reason, the
 * message that it was on follows from how it ended, and those behind that go
 * back as if nobody had had them.  Another one takes its place, after a while
 * if it ended badly.
 */
#include <sys/wait.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "consume.h"
#include "exit.h"
#include "say.h"

/* How much is read of its verbs in one turn. */
#define READ_MAX  ((size_t)1 << 16)
#define READ_ONCE ((size_t)1 << 14)
/* No pipe holds more than this. */
#define READ_LAST ((size_t)1 << 20)
/* Until the next one after one that ended badly. */
#define WAIT_MIN 0.1
#define WAIT_MAX 30.0
/* Between the TERM of a timeout and the KILL; and between the end of its
 * descriptor 3 and its own. */
#define KILL_AFTER 5.0

/* --- what it has said ------------------------------------------------------- */

/* Whether it gets no more, and is to end. */
bool
worker_is_leaving(const struct slot *s)
{
	return s->late != NULL || s->broken != NULL || s->mute || s->ended;
}

/* The time that it has for the message it is on begins now. */
void
worker_next(struct slot *s)
{
	struct consumer *c = s->c;

	s->started = mq_clock_s(CLOCK_MONOTONIC);
	s->started_ms = 0;
	if (c->opt->timeout_ms == 0 || worker_is_leaving(s))
		return;
	ev_timer_stop(c->loop, &s->timer);
	if (slot_on(s) == NULL)
		return;
	ev_timer_set(&s->timer, (double)c->opt->timeout_ms / 1000, 0);
	ev_timer_start(c->loop, &s->timer);
}

static void
kill_later(struct slot *s)
{
	ev_timer_stop(s->c->loop, &s->timer);
	ev_timer_set(&s->timer, KILL_AFTER, 0);
	ev_timer_start(s->c->loop, &s->timer);
}

static void
broke(struct slot *s, const char *how)
{
	if (s->broken != NULL || s->pid == 0)
		return;
	s->broken = how;
	feed_take_back(&s->feed, &s->hand);
	kill(-s->pid, SIGKILL);
}

/* Its errors are wanted for the histories of those that failed only. */
static const char *
errors_of(struct slot *s, const struct message *m, enum mq_verdict_kind kind)
{
	const char *errors = "";

	if (kind != MQ_VERDICT_DONE || result_wanted(m))
		errors = errors_so_far(s->errors);
	errors_forget(s->errors);
	return errors;
}

static void
carry_out(struct slot *s, struct message *m, const struct mq_verdict *v)
{
	if (m->lost) {
		message_drop(m);
		return;
	}
	if (pace_is_good(v->kind) || pace_is_bad(v->kind))
		pace_judged(s, pace_is_good(v->kind));
	verdict_carry_out(m, v, errors_of(s, m, v->kind));
}

/* The final verb is about the message that it is on. */
static void
judge(struct slot *s)
{
	struct message *m = slot_on(s);
	struct mq_verdict v;

	if (m == NULL || !feed_whole(&s->feed, m)) {
		broke(s,
		    m == NULL ? "it answers more than it was asked" :
				"it answers before it has the message");
		return;
	}
	mq_verdict(&s->verbs, 0, false, s->c->opt->strict, &v);
	v.status = -1;
	mq_verbs_next(&s->verbs);
	slot_release(m);
	s->judged++;
	carry_out(s, m, &v);
}

/* Takes apart what it has said, up to a final verb whose message waits for
 * dups. */
static void
hear(struct slot *s)
{
	size_t at = 0;

	while (
	    at < s->said.len && !s->over && !dup_busy(s) && s->broken == NULL) {
		at += mq_verbs_feed_line(
		    &s->verbs, s->said.data + at, s->said.len - at);
		if (s->verbs.final == MQ_FINAL_NONE)
			continue;
		s->over = s->dup_count > 0;
		if (!s->over)
			judge(s);
	}
	if (at == 0)
		return;
	s->said.len -= at;
	memmove(s->said.data, s->said.data + at, s->said.len);
}

/* Hears it, and what follows from how many messages that was about. */
static void
listen_to(struct slot *s)
{
	struct consumer *c = s->c;
	double now = mq_clock_s(CLOCK_MONOTONIC), each;
	long before = s->judged, n;

	/* Whoever asks for the lease first may find that they are lost. */
	(void)lease_held(c);
	hear(s);
	n = s->judged - before;
	if (n == 0)
		return;
	each = (now - s->started) / (double)n;
	s->pace_s = s->pace_s == 0 ? each : s->pace_s * 0.8 + each * 0.2;
	c->last_end = ev_now(c->loop);
	c->reaped = true;
	worker_next(s);
}

/* Reads what is there, or a good part of it.  False: there is nothing more to
 * come. */
static bool
read_verbs(struct slot *s, size_t max)
{
	ssize_t n;

	while (s->said.len < max) {
		n = read(s->verbs_fd, mq_buf_reserve(&s->said, READ_ONCE),
		    READ_ONCE);
		if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
			return false;
		if (n == -1 && errno == EAGAIN)
			return true;
		if (n > 0)
			s->said.len += (size_t)n;
	}
	return true;
}

static void
on_verbs(struct ev_loop *loop, ev_io *w, int events)
{
	struct slot *s = w->data;
	bool more = read_verbs(s, READ_MAX);

	(void)events;
	listen_to(s);
	if (!more || s->said.len > 0)
		ev_io_stop(loop, w);
	if (more || worker_is_leaving(s))
		return;
	/* It is about to end, or has lost its voice. */
	s->mute = true;
	feed_last(&s->feed);
	kill_later(s);
}

void
worker_listen(struct slot *s)
{
	if (s->pid == 0 || s->mute)
		return;
	ev_io_start(s->c->loop, &s->verbs_io);
	if (s->said.len > 0)
		ev_feed_event(s->c->loop, &s->verbs_io, EV_READ);
}

/* --- its end ---------------------------------------------------------------- */

/* What there is for the message that it was on; false: it goes back. */
static bool
last_verdict(
    const struct slot *s, const struct message *m, struct mq_verdict *v)
{
	if (!feed_begun(&s->feed, m) || s->ended ||
	    (s->late != NULL && s->late != m))
		return false;
	/* Silence is no word about a message: it may not even have read it.
	 * But one that never says anything gets no other chances for ever. */
	mq_verdict(&s->verbs, s->status, s->late != NULL,
	    s->c->opt->strict && s->judged == 0, v);
	if (s->broken != NULL)
		strlcpy(v->reason, s->broken, sizeof(v->reason));
	if (v->kind == MQ_VERDICT_DONE) {
		if (s->judged > 0)
			return false;
		v->kind = MQ_VERDICT_RETRY;
		strlcpy(v->reason, "the worker ended without a verb",
		    sizeof(v->reason));
	}
	return true;
}

/* How it ended, for people; NULL: well. */
static const char *
bad_end(const struct slot *s, char text[static 64])
{
	if (s->broken != NULL)
		return s->broken;
	if (s->late != NULL)
		return "timed out";
	if (WIFSIGNALED(s->status))
		snprintf(text, 64, "killed by SIG%s",
		    sigabbrev_np(WTERMSIG(s->status)));
	else if (s->status != 0)
		snprintf(text, 64, "exit status %d", WEXITSTATUS(s->status));
	else if (s->judged == 0)
		return "it has ended without a verb";
	else
		return NULL;
	return text;
}

static void
on_restart(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)loop;
	(void)events;
	run_held(s->c);
	claim_more(s->c);
	stop_check(s->c);
}

/* One that got something done was not that bad. */
static void
replace(struct slot *s)
{
	struct consumer *c = s->c;
	char text[64];
	const char *why = bad_end(s, text);

	if (why == NULL || s->ended) {
		s->wait_s = 0;
		return;
	}
	if (s->judged > 0 || s->wait_s == 0)
		s->wait_s = WAIT_MIN;
	else
		s->wait_s = s->wait_s * 2 < WAIT_MAX ? s->wait_s * 2 : WAIT_MAX;
	if (!c->opt->quiet && c->stop < STOP_SOON)
		mq_say("%s: worker: %s; another one in %.1f s", c->script, why,
		    s->wait_s);
	ev_timer_set(&s->restart, s->wait_s, 0);
	ev_timer_start(c->loop, &s->restart);
}

/* The younger ones first. */
static void
give_back(struct slot *s)
{
	struct message *m;

	while ((m = TAILQ_LAST(&s->hand, messages)) != NULL) {
		/* For the limit, too, it has not run. */
		s->c->started--;
		if (m->lost)
			message_drop(m);
		else
			settle(m, MQ_OUTCOME_FRONT, 0);
	}
}

/* Everything it has said has been heard. */
static void
bury(struct slot *s)
{
	struct consumer *c = s->c;
	struct message *m = slot_on(s);
	struct mq_verdict v;

	c->busy--;
	c->reaped = true;
	c->last_end = ev_now(c->loop);
	s->over = false;
	(void)lease_held(c);
	if (m != NULL && !m->lost && last_verdict(s, m, &v)) {
		if (v.kind == MQ_VERDICT_STOP) {
			mq_say("%s: %s; stopping, the message is returned",
			    c->script, v.reason);
			stop(c, STOP_SOON, MQ_EXIT_CONFIG, 0);
		} else {
			slot_release(m);
			carry_out(s, m, &v);
		}
	}
	give_back(s);
	(void)errors_close(s->errors);
	s->errors = NULL;
	feed_free(&s->feed);
	mq_buf_free(&s->said);
	replace(s);
}

void
worker_over(struct slot *s)
{
	bool judged = s->verbs.final != MQ_FINAL_NONE;

	s->over = false;
	if (judged && s->broken == NULL)
		judge(s);
	listen_to(s);
	if (s->pid != 0)
		worker_listen(s);
	else if (!s->over)
		s->over = !dup_over(s);
	if (s->pid == 0 && !s->over)
		bury(s);
}

static void
on_exit_of_worker(struct ev_loop *loop, ev_child *w, int events)
{
	struct slot *s = w->data;

	(void)events;
	ev_child_stop(loop, w);
	ev_io_stop(loop, &s->verbs_io);
	ev_timer_stop(loop, &s->timer);
	/* What nobody has written until now does not matter any more. */
	(void)read_verbs(s, s->said.len + READ_LAST);
	close(s->verbs_fd);
	mq_buf_add(&s->said, "\n", 1);
	s->pid = 0;
	s->status = w->rstatus;
	answers_close(&s->answers);
	if (!s->over)
		worker_over(s);
}

static void
on_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)loop;
	(void)events;
	if (s->mute) {
		broke(s, "it has closed its descriptor 3");
	} else if (s->late != NULL) {
		kill(-s->pid, SIGKILL);
	} else {
		s->late = slot_on(s);
		feed_take_back(&s->feed, &s->hand);
		feed_last(&s->feed);
		kill(-s->pid, SIGTERM);
		kill_later(s);
	}
}

void
worker_watch(struct slot *s)
{
	struct consumer *c = s->c;

	ev_child_init(&s->child, on_exit_of_worker, s->pid, 0);
	ev_io_init(&s->verbs_io, on_verbs, s->verbs_fd, EV_READ);
	ev_timer_init(&s->timer, on_timeout, 0, 0);
	s->child.data = s;
	s->verbs_io.data = s;
	s->timer.data = s;
	ev_child_start(c->loop, &s->child);
	ev_io_start(c->loop, &s->verbs_io);
	errors_listen(s->errors);
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
