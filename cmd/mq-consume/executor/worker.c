#include "executor.h"

#include <sys/ioctl.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "mq-consume/rules.h"

/* --- worker-time --------------------------------------------------------- */

/* Seconds from TERM to KILL; and from the end of a descriptor to that of the
 * worker. */
#define KILL_AFTER 5.0

bool
worker_is_leaving(const struct slot *s)
{
	const struct stream_worker *w = &s->worker;

	return w->terminated || w->verbs_closed || s->killed ||
	    w->protocol_error != NULL;
}

/* Whether the worker has no message left to judge. */
static bool
has_finished(const struct slot *s)
{
	const struct worker_input *input = &s->worker.input;
	const struct message *m = TAILQ_FIRST(&s->hand);

	return input->fd == -1 &&
	    (m == NULL || (input->cut && !worker_input_read(input, m)));
}

/* In seconds; 0: no limit. */
static double
time_limit(const struct slot *s)
{
	const struct executor *x = s->executor;
	const struct message *m = TAILQ_FIRST(&s->hand);
	double grace = (double)x->opt->grace_ms / 1000;

	/* The grace time of the consumer is for all workers. */
	if (has_finished(s) && policy_level(x->policy) >= STOP_SOON)
		return 0;
	if (has_finished(s))
		return s->worker.input.cut || grace < KILL_AFTER ? KILL_AFTER :
								   grace;
	return m == NULL ?
	    0 :
	    (double)rules_of(x->opt, m->queue)->timeout_ms / 1000;
}

static void
set_timer(struct slot *s, double after)
{
	ev_timer_stop(s->executor->loop, &s->timer);
	ev_timer_set(&s->timer, after, 0);
	if (after > 0)
		ev_timer_start(s->executor->loop, &s->timer);
}

void
worker_next(struct slot *s)
{
	s->started = mq_clock_s(CLOCK_MONOTONIC);
	s->started_ms = 0;
	if (s->run.pid != 0 && !worker_is_leaving(s))
		set_timer(s, time_limit(s));
}

void
worker_last(struct slot *s)
{
	if (s->worker.input.last)
		return;
	worker_input_last(&s->worker.input);
	if (has_finished(s))
		worker_next(s);
}

void
worker_return_unread(struct slot *s)
{
	const struct message *m;

	while ((m = TAILQ_LAST(&s->hand, messages)) != NULL &&
	    worker_input_take_back(&s->worker.input, m))
		slot_return_last(s);
}

/* Returns unread messages, and writes no more. */
static void
cut_input(struct slot *s)
{
	worker_return_unread(s);
	worker_input_last(&s->worker.input);
	tell(s->executor, FACT_WAKE);
}

/* Kills a worker that broke the protocol. */
static void
worker_fail_protocol(struct slot *s, const char *protocol_error)
{
	if (s->worker.protocol_error != NULL)
		return;
	s->worker.protocol_error = protocol_error;
	/* A dead worker is about to be ended. */
	if (s->run.pid == 0)
		return;
	cut_input(s);
	set_timer(s, 0);
	kill(-s->run.pid, SIGKILL);
}

/* Nobody reads the standard input any more.  The worker may still be busy with what it
 * has read. */
static void
worker_input_closed(void *slot)
{
	struct slot *s = slot;

	cut_input(s);
	if (has_finished(s))
		worker_next(s);
}

/* The worker has taken too long: for a message, or to end after the last. */
static void
terminate_worker(struct slot *s)
{
	s->worker.terminated = true;
	s->worker.timed_out = TAILQ_FIRST(&s->hand);
	cut_input(s);
	set_timer(s, KILL_AFTER);
	kill(-s->run.pid, SIGTERM);
}

/* The message stays in hand even if the worker has not read it. */
void
worker_stop(struct slot *s)
{
	s->killed = true;
	requests_hurry(&s->requests);
	/* Else KILL is near anyway. */
	if (s->worker.terminated)
		return;
	s->worker.terminated = true;
	worker_input_last(&s->worker.input);
	set_timer(s, (double)s->executor->opt->grace_ms / 1000);
	kill(-s->run.pid, SIGTERM);
}

static void
on_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)loop;
	(void)events;
	if (s->worker.verbs_closed)
		worker_fail_protocol(s, "worker closed its descriptor 3");
	else if (s->worker.terminated)
		kill(-s->run.pid, SIGKILL);
	else if (s->worker.input.cut && has_finished(s))
		worker_fail_protocol(s, "worker closed its standard input");
	else
		terminate_worker(s);
}

/* --- stream-verbs -------------------------------------------------------- */

/* Bytes read in one turn, and by one read. */
#define READ_MAX  ((size_t)1 << 16)
#define READ_ONCE ((size_t)1 << 14)
/* The most that a pipe holds. */
#define READ_LAST ((size_t)1 << 20)
/* A worker is silent after this time, or after the time for this many messages,
 * whichever is longer. */
#define SILENT_S	10.0
#define SILENT_MESSAGES 10

/* Reports the verdict on a message that has left the hand.  Only histories and results
 * have the errors. */
static void
stream_verbs_judged(
    struct slot *s, struct message *m, const struct mq_verdict *v)
{
	struct executor *x = s->executor;
	const char *errors = "";

	if (!m->lost) {
		slot_ran(s, m, v);
		slot_judged(s, slot_success_of(v->kind));
		if (v->kind != MQ_VERDICT_DONE || result_wanted(x->results, m))
			errors = run_output_so_far(s->run.output);
	}
	tell(x, FACT_ENDED, .message = m, .verdict = v, .text = errors);
}

/* The time since the verb before; verbs that come together took none. */
static void
count_run(struct slot *s, const struct message *m)
{
	struct executor *x = s->executor;

	s->ran_s = s->worker.heard - s->started;
	tell(x, FACT_RAN, .queue = m->queue, .seconds = s->ran_s);
	s->started = s->worker.heard;
}

/* Judges the first message in hand by the final verb. */
static void
judge_message(struct slot *s)
{
	struct message *m = TAILQ_FIRST(&s->hand);
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
	s->executor->last_end = mq_clock_steady_s();
	tell(s->executor, FACT_WAKE);
	run_output_forget(s->run.output);
	worker_next(s);
}

/* Parses what was read, up to a verb that has to wait. */
static void
stream_verbs_hear(struct slot *s)
{
	struct stream_worker *w = &s->worker;
	long before = w->judged;
	double began = s->started;

	w->heard = mq_clock_s(CLOCK_MONOTONIC);
	/* The check of the lease may mark messages as lost. */
	tell(s->executor, FACT_JUDGING);
	worker_input_poll(&w->input);
	/* A final verb may have waited for requests. */
	if (s->verbs.final != MQ_FINAL_NONE && !requests_awaited(&s->requests))
		judge_message(s);
	parse_verbs(s);
	/* That time stops while requests are answered. */
	if (requests_awaited(&s->requests) && s->run.pid != 0 &&
	    !worker_is_leaving(s))
		set_timer(s, 0);
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
		n = read(s->run.verbs,
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
	/* Descriptor 3 has ended. */
	if (more || worker_is_leaving(s))
		return;
	s->worker.verbs_closed = true;
	cut_input(s);
	set_timer(s, KILL_AFTER);
}

/* Goes on reading, after requests were answered. */
static void
stream_verbs_resume(struct slot *s)
{
	if (s->run.pid == 0)
		return;
	if (!s->worker.verbs_closed)
		ev_io_start(s->executor->loop, &s->verbs_io);
	if (s->worker.said.len > 0)
		ev_feed_event(s->executor->loop, &s->verbs_io, EV_READ);
}

/* For the first message, a silence is said before --timeout ends it. */
static double
silence_allowed(const struct slot *s)
{
	const struct message *m = TAILQ_FIRST(&s->hand);
	double timeout = m == NULL ?
	    0 :
	    (double)rules_of(s->executor->opt, m->queue)->timeout_ms / 1000;

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
		    process_script(s->executor->process), (long)s->run.pid, n,
		    n == 1 ? "" : "s", lasts);
	else
		mq_say("%s: worker %ld has read nothing for %.0f s; %d "
		       "message%s on its standard input",
		    process_script(s->executor->process), (long)s->run.pid,
		    lasts, s->count, s->count == 1 ? " waits" : "s wait");
}

void
stream_verbs_tick(struct slot *s)
{
	double lasts,
	    last = s->worker.heard > s->started ? s->worker.heard : s->started;
	int unread;

	if (s->worker.silence_said || TAILQ_FIRST(&s->hand) == NULL ||
	    requests_pending(&s->requests) || worker_is_leaving(s))
		return;
	lasts = mq_clock_s(CLOCK_MONOTONIC) - last;
	if (lasts < silence_allowed(s))
		return;
	/* Unread verbs are no silence. */
	if (ioctl(s->run.verbs, FIONREAD, &unread) == 0 && unread > 0)
		return;
	s->worker.silence_said = true;
	if (!s->executor->opt->quiet)
		say_silence(s, lasts);
}

/* --- worker -------------------------------------------------------------- */

/* Seconds from a bad end to the next worker. */
#define WAIT_MIN 0.1
#define WAIT_MAX 30.0

/* --- end -------------------------------------------------------------------- */

/* The verdict on the message that a dead worker was on; false: it goes back. */
static bool
last_verdict(
    const struct slot *s, const struct message *m, struct mq_verdict *v)
{
	if (m != NULL && !m->lost && m->stop != MQ_STOP_NONE) {
		mq_verdict_stopped(s->status, v);
		return true;
	}
	if (m == NULL || m->lost || s->killed ||
	    (s->worker.timed_out != NULL && s->worker.timed_out != m))
		return false;
	/* A worker that wrote no verb has no endless retries. */
	if (s->worker.judged > 0 &&
	    !worker_input_partly_read(&s->worker.input, m))
		return false;
	mq_verdict(&s->verbs, s->status, s->worker.timed_out != NULL,
	    s->worker.judged == 0 ? s->executor->opt->strict : MQ_NOT_STRICT,
	    v);
	if (s->worker.protocol_error != NULL) {
		v->kind = MQ_VERDICT_ERR;
		strlcpy(v->how, s->worker.protocol_error, sizeof(v->how));
	} else if (v->kind == MQ_VERDICT_DONE) {
		/* Exit status 0 says nothing about a message. */
		if (s->worker.judged > 0 ||
		    policy_level(s->executor->policy) >= STOP_SOON)
			return false;
		v->kind = MQ_VERDICT_RETRY;
		strlcpy(v->how, "worker ended without a verb", sizeof(v->how));
	}
	return true;
}

/* Sets v->how to how a worker ended, for people; false: it ended well. */
static bool
ended_badly(const struct slot *s, struct mq_verdict *v)
{
	const struct mq_verbs silence = {0};
	const char *how = s->worker.protocol_error;

	mq_verdict(&silence, s->status, false, MQ_NOT_STRICT, v);
	if (how == NULL && s->worker.timed_out != NULL)
		how = "timed out";
	if (how == NULL && s->worker.terminated)
		how = "worker did not end in time";
	if (how == NULL && s->status == 0 && s->worker.judged == 0)
		how = "worker ended without a verb";
	if (how != NULL)
		strlcpy(v->how, how, sizeof(v->how));
	return !s->killed && (how != NULL || s->status != 0);
}

static void
on_restart(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)loop;
	(void)events;
	tell(s->executor, FACT_WAKE);
}

/* A worker that judged messages is replaced soon. */
static void
replace_worker(struct slot *s)
{
	struct executor *x = s->executor;
	struct mq_verdict v;

	if (!ended_badly(s, &v)) {
		s->worker.wait_s = 0;
		return;
	}
	if (s->worker.judged > 0 || s->worker.wait_s == 0)
		s->worker.wait_s = WAIT_MIN;
	else
		s->worker.wait_s = s->worker.wait_s * 2 < WAIT_MAX ?
		    s->worker.wait_s * 2 :
		    WAIT_MAX;
	if (policy_level(x->policy) >= STOP_SOON)
		return;
	if (!x->opt->quiet)
		mq_say("%s: %s%s; restarting in %.1f s",
		    process_script(x->process),
		    strncmp(v.how, "worker ", 7) != 0 ? "worker: " : "", v.how,
		    s->worker.wait_s);
	ev_timer_set(&s->worker.restart, s->worker.wait_s, 0);
	ev_timer_start(x->loop, &s->worker.restart);
}

/* Judges the message that a dead worker was on, if it has a verdict. */
static void
judge_last(struct slot *s)
{
	struct message *m = TAILQ_FIRST(&s->hand);
	struct mq_verdict v;

	if (!last_verdict(s, m, &v))
		return;
	s->ran_s = mq_clock_s(CLOCK_MONOTONIC) - s->started;
	slot_release(s, m);
	stream_verbs_judged(s, m, &v);
}

/* Ends the slot of a dead worker, after its last verb. */
static void
end_worker(struct slot *s)
{
	struct executor *x = s->executor;

	x->busy--;
	x->last_end = mq_clock_steady_s();
	tell(x, FACT_JUDGING);
	judge_last(s);
	slot_return_all(s);
	(void)slot_close_output(s);
	worker_input_free(&s->worker.input);
	mq_buf_free(&s->worker.said);
	replace_worker(s);
	tell(x, FACT_WAKE);
}

static void
end_if_answered(struct slot *s)
{
	if (!requests_awaited(&s->requests) && !requests_finish(&s->requests))
		end_worker(s);
}

static void
on_ended(void *arg, int status)
{
	struct slot *s = arg;

	ev_timer_stop(s->executor->loop, &s->timer);
	/* The last verbs, and the last look at what was read. */
	ev_io_stop(s->executor->loop, &s->verbs_io);
	(void)read_verbs(s, s->worker.said.len + READ_LAST);
	close(s->run.verbs);
	mq_buf_add(&s->worker.said, "\n", 1);
	worker_input_cut(&s->worker.input);
	s->run.pid = 0;
	s->status = status;
	mq_answers_close(&s->answers);
	if (requests_awaited(&s->requests))
		return;
	stream_verbs_hear(s);
	end_if_answered(s);
}

/* all: those of the message that the worker is on. */
static void
on_answered(void *arg, bool all)
{
	struct slot *s = arg;

	if (all)
		stream_verbs_hear(s);
	stream_verbs_resume(s);
	if (all && s->run.pid == 0)
		end_if_answered(s);
}

/* --- beginning -------------------------------------------------------------- */

/* A message that it cannot have read may go back, and end elsewhere, before a
 * request for a duplicate of it is answered. */
static void
on_duplicate(void *arg, int which, const char *text)
{
	struct slot *s = arg;
	const struct message *m = TAILQ_FIRST(&s->hand);

	if (m == NULL || worker_input_partly_read(&s->worker.input, m))
		slot_ask_duplicate(s, which, text);
	else
		requests_ask(&s->requests, NULL,
		    "the worker has not read the message", text);
}

static void
reset_worker(struct slot *s)
{
	struct stream_worker *w = &s->worker;

	s->killed = false;
	w->verbs_closed = false;
	w->terminated = false;
	w->timed_out = NULL;
	w->protocol_error = NULL;
	w->silence_said = false;
	w->judged = 0;
	mq_verbs_begin(&s->verbs);
	s->verbs.on_dup = on_duplicate;
	s->verbs.arg = s;
}

bool
worker_start(struct slot *s)
{
	struct executor *x = s->executor;
	struct worker_input *input = &s->worker.input;

	reset_worker(s);
	if (!slot_start(
		s, worker_input_open(input, x->loop, worker_input_closed, s))) {
		worker_input_free(input);
		return false;
	}
	x->busy++;
	ev_timer_init(&s->timer, on_timeout, 0, 0);
	s->timer.data = s;
	mq_child_watch(x->children, &s->child, s->run.pid, on_ended, s);
	mq_child_poll(&s->child);
	fcntl(s->run.verbs, F_SETFL, O_NONBLOCK);
	ev_io_init(&s->verbs_io, on_verbs, s->run.verbs, EV_READ);
	s->verbs_io.data = s;
	ev_io_start(x->loop, &s->verbs_io);
	run_output_listen(s->run.output);
	return true;
}

void
worker_make(struct slot *s)
{
	requests_init(
	    &s->requests, s->executor->duplicates, &s->answers, on_answered, s);
	ev_timer_init(&s->worker.restart, on_restart, 0, 0);
	s->worker.restart.data = s;
}
