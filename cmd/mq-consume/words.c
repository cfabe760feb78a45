/*
 * What a worker that stays says.  Its verbs are taken apart as they come, and
 * each final one is about the message that the worker is on.  A verb about one
 * that the worker cannot have read breaks the protocol.
 */
#include <sys/ioctl.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/say.h"
#include "consume.h"

/* How much is read in one turn. */
#define READ_MAX  ((size_t)1 << 16)
#define READ_ONCE ((size_t)1 << 14)
/* No pipe holds more than this. */
#define READ_LAST ((size_t)1 << 20)
/* A worker is silent after so many seconds, or so many times what its messages
 * took until now, whichever is more. */
#define SILENT_S     10.0
#define SILENT_PACES 10

/* The time since the verb before; those that come at once took none. */
static void
count(struct slot *s, const struct message *m)
{
	count_run(s->c, m->queue, s->heard - s->started);
	s->started = s->heard;
}

/* The final verb is about the message that it is on. */
static void
judge(struct slot *s)
{
	struct message *m = slot_on(s);
	struct mq_verdict v;

	if (m == NULL || !feed_whole(&s->feed, m)) {
		mq_verbs_next(&s->verbs);
		worker_broke(s,
		    m == NULL ? "it answers more than it was asked" :
				"it answers before it has the message");
		return;
	}
	mq_verdict(&s->verbs, 0, false, false, &v);
	v.status = -1;
	mq_verbs_next(&s->verbs);
	slot_release(m);
	s->judged++;
	count(s, m);
	worker_carry_out(s, m, &v);
}

/* Up to a final verb whose message waits for dups. */
static void
take_apart(struct slot *s)
{
	size_t at = 0;

	while (at < s->said.len && !requests_awaited(&s->requests) &&
	    !requests_full(&s->requests) && s->broken == NULL) {
		at += mq_verbs_feed_line(
		    &s->verbs, s->said.data + at, s->said.len - at);
		if (s->verbs.final == MQ_FINAL_NONE)
			continue;
		if (!requests_await(&s->requests))
			judge(s);
	}
	if (at == 0)
		return;
	s->said.len -= at;
	memmove(s->said.data, s->said.data + at, s->said.len);
}

/* It has judged n messages, in all that time. */
static void
went_on(struct slot *s, long n, double took)
{
	double each = took / (double)n;

	s->pace_s = s->pace_s == 0 ? each : s->pace_s * 0.8 + each * 0.2;
	s->c->last_end = mq_clock_steady_s();
	engine_mark(s->c);
	run_output_forget(s->output);
	worker_next(s);
}

/* Hears what was read, and what follows from how many messages that was
 * about. */
static void
hear(struct slot *s)
{
	long before = s->judged;
	double began = s->started;

	s->heard = mq_clock_s(CLOCK_MONOTONIC);
	/* Whoever asks for the lease first may find that they are lost. */
	(void)lease_held(s->c);
	feed_look(&s->feed);
	/* One that has waited for its dups. */
	if (s->verbs.final != MQ_FINAL_NONE && !requests_awaited(&s->requests))
		judge(s);
	take_apart(s);
	if (requests_awaited(&s->requests))
		worker_waits(s);
	if (s->judged > before)
		went_on(s, s->judged - before, s->heard - began);
}

/* Reads what is there, or a good part of it.  False: there is nothing more to
 * come. */
static bool
read_some(struct slot *s, size_t max)
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
on_words(struct ev_loop *loop, ev_io *w, int events)
{
	struct slot *s = w->data;
	bool more = read_some(s, READ_MAX);

	(void)events;
	s->silence_told = false;
	hear(s);
	if (!more || s->said.len > 0)
		ev_io_stop(loop, w);
	if (!more)
		worker_is_mute(s);
}

void
words_watch(struct slot *s)
{
	ev_io_init(&s->verbs_io, on_words, s->verbs_fd, EV_READ);
	s->verbs_io.data = s;
	ev_io_start(s->c->loop, &s->verbs_io);
}

/* Goes on to hear it, if that was stopped. */
static void
hear_on(void *arg)
{
	struct slot *s = arg;

	if (s->pid == 0)
		return;
	if (!s->mute)
		ev_io_start(s->c->loop, &s->verbs_io);
	if (s->said.len > 0)
		ev_feed_event(s->c->loop, &s->verbs_io, EV_READ);
}

void
words_last(struct slot *s)
{
	ev_io_stop(s->c->loop, &s->verbs_io);
	(void)read_some(s, s->said.len + READ_LAST);
	close(s->verbs_fd);
	mq_buf_add(&s->said, "\n", 1);
}

void
words_over(struct slot *s)
{
	hear(s);
	if (s->pid != 0)
		hear_on(s);
	else if (!requests_awaited(&s->requests) &&
	    !requests_finish(&s->requests))
		worker_bury(s);
}

static void
on_answered(void *arg)
{
	words_over(arg);
}

const struct request_events words_requests = {
    .answered = on_answered,
    .room = hear_on,
};

/* While the pace is not known, a silence is told before --timeout ends it. */
static double
silence_allowed(const struct slot *s)
{
	double timeout = (double)s->c->opt->timeout_ms / 1000;

	if (s->pace_s * SILENT_PACES > SILENT_S)
		return s->pace_s * SILENT_PACES;
	if (s->pace_s == 0 && timeout > 0 && timeout / 2 < SILENT_S)
		return timeout / 2;
	return SILENT_S;
}

static int
count_read(const struct slot *s)
{
	const struct message *m;
	int n = 0;

	TAILQ_FOREACH(m, &s->hand, hand)
		n += feed_begun(&s->feed, m);
	return n;
}

static void
tell_silence(struct slot *s, double lasts)
{
	int n;

	feed_look(&s->feed);
	n = count_read(s);
	if (n > 0)
		mq_say("%s: worker %ld has read %d message%s and written no "
		       "verb for %.0f s; each message needs a verb on "
		       "descriptor 3, flushed at once",
		    process_script(&s->c->process), (long)s->pid, n,
		    n == 1 ? "" : "s", lasts);
	else
		mq_say("%s: worker %ld has read nothing for %.0f s; %d "
		       "message%s on its standard input",
		    process_script(&s->c->process), (long)s->pid, lasts,
		    s->count, s->count == 1 ? " waits" : "s wait");
}

void
words_tick(struct slot *s)
{
	double lasts, last = s->heard > s->started ? s->heard : s->started;
	int unread;

	if (s->silence_told || slot_on(s) == NULL ||
	    requests_pending(&s->requests) || worker_is_leaving(s))
		return;
	lasts = mq_clock_s(CLOCK_MONOTONIC) - last;
	if (lasts < silence_allowed(s))
		return;
	/* Verbs that nobody has read are no silence. */
	if (ioctl(s->verbs_fd, FIONREAD, &unread) == 0 && unread > 0)
		return;
	s->silence_told = true;
	if (!s->c->opt->quiet)
		tell_silence(s, lasts);
}
