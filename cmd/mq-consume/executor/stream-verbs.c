#include "mq-consume/rules.h"
#include "parts.h"

#include <sys/ioctl.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/say.h"

/* Bytes read in one turn, and by one read. */
#define READ_MAX  ((size_t)1 << 16)
#define READ_ONCE ((size_t)1 << 14)
/* The most that a pipe holds. */
#define READ_LAST ((size_t)1 << 20)
/* A worker is silent after this time, or after the time for this many messages,
 * whichever is longer. */
#define SILENT_S	10.0
#define SILENT_MESSAGES 10

/* Only histories and results have the errors. */
void
stream_verbs_judged(
    struct slot *s, struct message *m, const struct mq_verdict *v)
{
	struct slots *ss = s->slots;
	const char *errors = "";

	if (!m->lost) {
		slot_ran(s, m, v);
		slot_judged(s, slot_success_of(v->kind));
		if (v->kind != MQ_VERDICT_DONE ||
		    ss->events->awaited(ss->arg, m))
			errors = run_output_so_far(s->output);
	}
	ss->events->ended(ss->arg, m, v, errors);
}

/* The time since the verb before; verbs that come together took none. */
static void
count_run(struct slot *s, const struct message *m)
{
	struct slots *ss = s->slots;

	s->ran_s = s->worker.heard - s->started;
	ss->events->ran(ss->arg, m->queue, s->ran_s);
	s->started = s->worker.heard;
}

/* Judges the first message in hand by the final verb. */
static void
judge_message(struct slot *s)
{
	struct message *m = slot_message(s);
	struct mq_verdict v;

	if (m == NULL || !worker_input_read(&s->worker.input, m)) {
		mq_verbs_next(&s->verbs);
		worker_fail_protocol(s,
		    m == NULL ?
			"worker wrote more verdicts than it has messages" :
			"worker wrote a verdict before reading the "
			"message");
		return;
	}
	mq_verdict(&s->verbs, 0, false, MQ_NOT_STRICT, &v);
	v.status = -1;
	mq_verbs_next(&s->verbs);
	count_run(s, m);
	slot_release(s, m);
	s->worker.judged++;
	stream_verbs_judged(s, m, &v);
}

/* Parses verbs up to a final one whose message has pending requests. */
static void
parse_verbs(struct slot *s)
{
	struct stream_worker *w = &s->worker;
	size_t at = 0;

	while (at < w->said.len && !requests_awaited(&s->requests) &&
	    !requests_full(&s->requests) && w->protocol_error == NULL) {
		at += mq_verbs_feed_line(
		    &s->verbs, w->said.data + at, w->said.len - at);
		if (s->verbs.final == MQ_FINAL_NONE)
			continue;
		if (!requests_await(&s->requests))
			judge_message(s);
	}
	if (at == 0)
		return;
	w->said.len -= at;
	memmove(w->said.data, w->said.data + at, w->said.len);
}

/* Notes that the worker has judged n messages in this time. */
static void
note_duration(struct slot *s, long n, double took)
{
	double each = took / (double)n;
	double *mean = &s->worker.message_s;

	*mean = *mean == 0 ? each : *mean * 0.8 + each * 0.2;
	s->slots->last_end = mq_clock_steady_s();
	s->slots->events->wake(s->slots->arg);
	run_output_forget(s->output);
	worker_next(s);
}

void
stream_verbs_hear(struct slot *s)
{
	struct stream_worker *w = &s->worker;
	long before = w->judged;
	double began = s->started;

	w->heard = mq_clock_s(CLOCK_MONOTONIC);
	/* The check of the lease may mark messages as lost. */
	s->slots->events->judging(s->slots->arg);
	worker_input_poll(&w->input);
	/* A final verb may have waited for requests. */
	if (s->verbs.final != MQ_FINAL_NONE && !requests_awaited(&s->requests))
		judge_message(s);
	parse_verbs(s);
	if (requests_awaited(&s->requests))
		worker_pause_time(s);
	if (w->judged > before)
		note_duration(s, w->judged - before, w->heard - began);
}

/* Reads verbs without waiting, until max bytes are unparsed.  False: the pipe has
 * ended. */
static bool
read_verbs(struct slot *s, size_t max)
{
	ssize_t n;

	while (s->worker.said.len < max) {
		n = read(s->verbs_fd,
		    mq_buf_reserve(&s->worker.said, READ_ONCE), READ_ONCE);
		if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
			return false;
		if (n == -1 && errno == EAGAIN)
			return true;
		if (n > 0)
			s->worker.said.len += (size_t)n;
	}
	return true;
}

static void
on_verbs(struct ev_loop *loop, ev_io *w, int events)
{
	struct slot *s = w->data;
	bool more = read_verbs(s, READ_MAX);

	(void)events;
	s->worker.silence_said = false;
	stream_verbs_hear(s);
	if (!more || s->worker.said.len > 0)
		ev_io_stop(loop, w);
	if (!more)
		worker_verbs_closed(s);
}

void
stream_verbs_watch(struct slot *s)
{
	fcntl(s->verbs_fd, F_SETFL, O_NONBLOCK);
	ev_io_init(&s->verbs_io, on_verbs, s->verbs_fd, EV_READ);
	s->verbs_io.data = s;
	ev_io_start(s->slots->loop, &s->verbs_io);
}

void
stream_verbs_resume(struct slot *s)
{
	if (s->pid == 0)
		return;
	if (!s->worker.verbs_closed)
		ev_io_start(s->slots->loop, &s->verbs_io);
	if (s->worker.said.len > 0)
		ev_feed_event(s->slots->loop, &s->verbs_io, EV_READ);
}

void
stream_verbs_last(struct slot *s)
{
	ev_io_stop(s->slots->loop, &s->verbs_io);
	(void)read_verbs(s, s->worker.said.len + READ_LAST);
	close(s->verbs_fd);
	mq_buf_add(&s->worker.said, "\n", 1);
}

/* For the first message, a silence is said before --timeout ends it. */
static double
silence_allowed(const struct slot *s)
{
	const struct message *m = slot_message(s);
	double timeout = m == NULL ?
	    0 :
	    (double)rules_of(s->slots->opt, m->queue)->timeout_ms / 1000;

	if (s->worker.message_s * SILENT_MESSAGES > SILENT_S)
		return s->worker.message_s * SILENT_MESSAGES;
	if (s->worker.message_s == 0 && timeout > 0 && timeout / 2 < SILENT_S)
		return timeout / 2;
	return SILENT_S;
}

static int
count_read(const struct slot *s)
{
	const struct message *m;
	int n = 0;

	TAILQ_FOREACH(m, &s->hand, line)
		n += worker_input_partly_read(&s->worker.input, m);
	return n;
}

static void
say_silence(struct slot *s, double lasts)
{
	int n;

	worker_input_poll(&s->worker.input);
	n = count_read(s);
	if (n > 0)
		mq_say("%s: worker %ld has read %d message%s and written no "
		       "verb for %.0f s; each message needs a verb on "
		       "descriptor 3, flushed at once",
		    process_script(s->slots->process), (long)s->pid, n,
		    n == 1 ? "" : "s", lasts);
	else
		mq_say("%s: worker %ld has read nothing for %.0f s; %d "
		       "message%s on its standard input",
		    process_script(s->slots->process), (long)s->pid, lasts,
		    s->count, s->count == 1 ? " waits" : "s wait");
}

void
stream_verbs_tick(struct slot *s)
{
	double lasts,
	    last = s->worker.heard > s->started ? s->worker.heard : s->started;
	int unread;

	if (s->worker.silence_said || slot_message(s) == NULL ||
	    requests_pending(&s->requests) || worker_is_leaving(s))
		return;
	lasts = mq_clock_s(CLOCK_MONOTONIC) - last;
	if (lasts < silence_allowed(s))
		return;
	/* Unread verbs are no silence. */
	if (ioctl(s->verbs_fd, FIONREAD, &unread) == 0 && unread > 0)
		return;
	s->worker.silence_said = true;
	if (!s->slots->opt->quiet)
		say_silence(s, lasts);
}
