/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * --stream: each worker reads framed messages on its standard input, one after the other, up to
 * a window of messages ahead of its verbs.
 *
 * A final verb is about the worker's first message; if the worker cannot have read that, it
 * breaks the protocol.  When a worker ends, its exit status decides the first message, and the
 * others go back, as if they had not been started.  Another worker follows; after a bad end,
 * later.
 */
#include "parts.h"

#include <sys/ioctl.h>

#include "mq-consume/duplicates.h"
#include "mq-consume/policy.h"

/* --- time -------------------------------------------------------------------- */

/* Whether the worker gets no more messages, and is to end soon. */
static bool
is_leaving(const struct slot *s)
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
	const struct message *m = TAILQ_FIRST(&s->messages);

	return input->fd == -1 &&
	    (m == NULL || (input->cut && m->end > input->read));
}

static void
begin_time(struct slot *s)
{
	const struct executor *x = s->executor;
	const struct message *m = TAILQ_FIRST(&s->messages);
	double limit = 0;

	s->started = mq_clock_s(CLOCK_MONOTONIC);
	s->started_ms = 0;
	if (s->run.pid == 0 || is_leaving(s))
		return;
	if (!has_finished(s) && m != NULL) {
		limit = message_timeout(x->opt, m);
	} else if (has_finished(s) && !x->stopping) {
		/* Once the consumer stops, its own grace time is for all workers. */
		limit = (double)x->opt->grace_ms / 1000;
		limit =
		    s->worker.input.cut ? KILL_AFTER : MAX(limit, KILL_AFTER);
	}
	slot_set_timer(s, limit);
}

/* --- input ------------------------------------------------------------------- */

/* Bytes that wait to be written to a worker, from which on no message is added. */
#define INPUT_BYTES ((size_t)1 << 18)

static size_t
unwritten_bytes(const struct worker_input *f)
{
	return f->out.len - f->start;
}

/* Bytes that are left in the pipe are unread. */
static void
look_at_input(struct worker_input *f)
{
	int left, fd = f->fd != -1 ? f->fd : f->other;

	if (fd != -1 && ioctl(fd, FIONREAD, &left) == 0)
		f->read = f->written - (size_t)left;
}

static void
close_input(struct slot *s)
{
	struct worker_input *f = &s->worker.input;

	if (f->other != -1)
		close(f->other);
	if (f->fd != -1) {
		ev_io_stop(s->executor->loop, &f->room);
		close(f->fd);
	}
	f->fd = f->other = -1;
	mq_buf_free(&f->out);
	f->start = 0;
}

static void
cut_input(struct slot *s)
{
	look_at_input(&s->worker.input);
	close_input(s);
	s->worker.input.cut = true;
}

static void flush_input(struct slot *, bool last);

/* Returns messages that the worker cannot have read, and writes no more.  Unless the pipe is cut,
 * bytes in it count as read. */
static void
end_input(struct slot *s)
{
	struct worker_input *f = &s->worker.input;
	struct message *m;

	while ((m = TAILQ_LAST(&s->messages, messages)) != NULL &&
	    m->start >= (f->cut ? f->read : f->written)) {
		if (!f->cut)
			f->out.len -= m->end - m->start;
		slot_return(s, m);
	}
	flush_input(s, true);
	tell(s->executor, FACT_WAKE);
}

/* The worker has closed its input, and may still be busy with messages that it has read. */
static void
lose_input(struct slot *s)
{
	cut_input(s);
	end_input(s);
	if (has_finished(s))
		begin_time(s);
}

static void
write_input(struct ev_loop *loop, ev_io *w, int events)
{
	struct slot *s = w->data;
	struct worker_input *f = &s->worker.input;
	char path[32];
	ssize_t n;
	int fd;

	(void)events;
	while (unwritten_bytes(f) > 0) {
		n = write(f->fd, f->out.data + f->start, unwritten_bytes(f));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN) {
			ev_io_start(loop, w);
			return;
		}
		if (n == -1) {
			lose_input(s);
			return;
		}
		f->start += (size_t)n;
		f->written += (size_t)n;
	}
	/* After a large message, the buffer is freed. */
	if (f->out.cap > 2 * INPUT_BYTES)
		mq_buf_free(&f->out);
	mq_buf_clear(&f->out);
	f->start = 0;
	ev_io_stop(loop, w);
	if (!f->last)
		return;
	/* The worker finds the end when no write end is open.  A read end of our own still
	 * tells how much is unread. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		f->read = f->written;
	close_input(s);
	f->other = fd;
}

/* Writes the waiting bytes, at once or later.  last: no more messages come; the worker finds the
 * end of its input, and is to end after its messages. */
static void
flush_input(struct slot *s, bool last)
{
	struct worker_input *f = &s->worker.input;
	bool was_last = f->last;

	f->last = was_last || last;
	if (f->fd != -1 && !ev_is_active(&f->room))
		write_input(s->executor->loop, &f->room, EV_WRITE);
	if (last && !was_last && has_finished(s))
		begin_time(s);
}

static void
fail_protocol(struct slot *s, const char *protocol_error)
{
	if (s->worker.protocol_error != NULL)
		return;
	s->worker.protocol_error = protocol_error;
	/* For a dead worker, end_worker() follows anyway. */
	if (s->run.pid == 0)
		return;
	end_input(s);
	slot_set_timer(s, 0);
	kill(-s->run.pid, SIGKILL);
}

static void
on_timeout(void *slot)
{
	struct slot *s = slot;
	struct stream_worker *w = &s->worker;

	if (w->verbs_closed) {
		fail_protocol(s, "worker closed its descriptor 3");
	} else if (w->terminated) {
		kill(-s->run.pid, SIGKILL);
	} else if (w->input.cut && has_finished(s)) {
		fail_protocol(s, "worker closed its standard input");
	} else {
		/* The worker takes too long for a message, or to end after the last one. */
		w->terminated = true;
		w->timed_out = TAILQ_FIRST(&s->messages);
		end_input(s);
		slot_set_timer(s, KILL_AFTER);
		kill(-s->run.pid, SIGTERM);
	}
}

/* --- verbs ------------------------------------------------------------------- */

/* Bytes read in one turn; by one read; and after the end of a worker, the most that a pipe
 * holds. */
#define READ_MAX  ((size_t)1 << 16)
#define READ_ONCE ((size_t)1 << 14)
#define READ_LAST ((size_t)1 << 20)
/* A worker is silent after this many seconds without a verb, or after its usual time for this
 * many messages, whichever is longer. */
#define SILENT_S	10.0
#define SILENT_MESSAGES 10

/* Ends a message by its verdict, and takes it out of the slot. */
static void
end_message(struct slot *s, struct message *m, const struct mq_verdict *v)
{
	const char *errors = "";

	if (!m->lost && slot_success_of(v->kind) == SLOT_FAILURE &&
	    executor_unread(s->executor)) {
		slot_break_off(s, m, v, errors);
		slot_return(s, m);
		return;
	}
	if (!m->lost) {
		slot_ran(s, m, v);
		slot_judged(s, slot_success_of(v->kind));
		if (v->kind != MQ_VERDICT_DONE)
			errors = run_output_so_far(s->run.output);
	}
	slot_end(s, m, v, errors);
}

static void
judge_message(struct slot *s)
{
	struct message *m = TAILQ_FIRST(&s->messages);
	struct mq_verdict v;

	if (m == NULL || m->end > s->worker.input.read) {
		mq_verbs_next(&s->verbs);
		fail_protocol(s,
		    m == NULL ?
			"worker wrote more verdicts than it has messages" :
			"worker wrote a verdict before reading the "
			"message");
		return;
	}
	mq_verdict(&s->verbs, 0, false, MQ_NOT_STRICT, &v);
	v.status = -1;
	mq_verbs_next(&s->verbs);
	/* Seconds since the last verbs; a second verb of the same read took none. */
	s->ran_s = s->worker.heard_at - s->started;
	tell(s->executor, FACT_RAN, .queue = m->queue, .seconds = s->ran_s);
	s->started = s->worker.heard_at;
	s->worker.judged++;
	end_message(s, m, &v);
}

/* Parses the verbs read so far, up to a final verb whose message has pending requests. */
static void
parse_verbs(struct slot *s)
{
	struct stream_worker *w = &s->worker;
	long before = w->judged;
	double began = s->started, each;
	size_t at = 0;

	w->heard_at = mq_clock_s(CLOCK_MONOTONIC);
	look_at_input(&w->input);
	/* A final verb may have waited for the answers to requests. */
	if (s->verbs.final != MQ_FINAL_NONE && !s->waits)
		judge_message(s);
	while (at < w->unparsed.len && !s->waits &&
	    !requests_full(s->requests) && w->protocol_error == NULL) {
		at += mq_verbs_feed_line(
		    &s->verbs, w->unparsed.data + at, w->unparsed.len - at);
		if (s->verbs.final == MQ_FINAL_NONE)
			continue;
		s->waits = requests_await(s->requests, false);
		if (!s->waits)
			judge_message(s);
	}
	if (at > 0) {
		w->unparsed.len -= at;
		memmove(
		    w->unparsed.data, w->unparsed.data + at, w->unparsed.len);
	}
	/* --timeout does not count while requests are answered. */
	if (s->waits && s->run.pid != 0 && !is_leaving(s))
		slot_set_timer(s, 0);
	if (w->judged == before)
		return;
	each = (w->heard_at - began) / (double)(w->judged - before);
	w->message_s =
	    w->message_s == 0 ? each : w->message_s * 0.8 + each * 0.2;
	s->executor->last_end = mq_clock_steady_s();
	tell(s->executor, FACT_WAKE);
	run_output_forget(s->run.output);
	begin_time(s);
}

/* Reads verbs without waiting, until max bytes are unparsed.  Returns false at the end of the
 * pipe. */
static bool
read_verbs(struct slot *s, size_t max)
{
	ssize_t n;

	while (s->worker.unparsed.len < max) {
		n = read(s->run.verbs,
		    mq_buf_reserve(&s->worker.unparsed, READ_ONCE), READ_ONCE);
		if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
			return false;
		if (n == -1 && errno == EAGAIN)
			return true;
		if (n > 0)
			s->worker.unparsed.len += (size_t)n;
	}
	return true;
}

static void
receive_verbs(struct slot *s)
{
	bool more = read_verbs(s, READ_MAX);

	s->worker.silence_said = false;
	parse_verbs(s);
	if (!more || s->worker.unparsed.len > 0)
		ev_io_stop(s->executor->loop, &s->verbs_io);
	if (more || is_leaving(s))
		return;
	s->worker.verbs_closed = true;
	end_input(s);
	slot_set_timer(s, KILL_AFTER);
}

static void
on_verbs(struct ev_loop *loop, ev_io *w, int events)
{
	(void)loop;
	(void)events;
	receive_verbs(w->data);
}

/* Once a second: notices a closed input, and says once that a worker has been silent for long. */
static void
tick_worker(struct slot *s)
{
	const struct options *opt = s->executor->opt;
	struct stream_worker *w = &s->worker;
	struct pollfd pipe = {.fd = w->input.fd};
	const struct message *m;
	const char *script = s->executor->command->path;
	double allowed = MAX(SILENT_S, w->message_s * SILENT_MESSAGES);
	double lasts, timeout;
	int unread, n = 0;

	/* While no output waits, no event tells that the worker has closed its input. */
	if (w->input.fd != -1 && poll(&pipe, 1, 0) == 1 &&
	    (pipe.revents & POLLERR) != 0)
		lose_input(s);
	m = TAILQ_FIRST(&s->messages);
	if (w->silence_said || m == NULL || !requests_empty(s->requests) ||
	    is_leaving(s))
		return;
	/* During its first message, the silence is said before --timeout ends it. */
	timeout = message_timeout(opt, m);
	if (w->message_s == 0 && timeout > 0)
		allowed = MIN(allowed, timeout / 2);
	lasts = mq_clock_s(CLOCK_MONOTONIC) - MAX(w->heard_at, s->started);
	if (lasts < allowed)
		return;
	/* The worker has written verbs that are still unread. */
	if (ioctl(s->run.verbs, FIONREAD, &unread) == 0 && unread > 0)
		return;
	w->silence_said = true;
	if (opt->quiet)
		return;
	look_at_input(&w->input);
	TAILQ_FOREACH(m, &s->messages, line)
		n += m->start < w->input.read;
	if (n > 0)
		mq_say("%s: worker %ld has read %d message%s and written no "
		       "verb for %.0f s; each message needs a verb on "
		       "descriptor 3, flushed at once",
		    script, (long)s->run.pid, n, n == 1 ? "" : "s", lasts);
	else
		mq_say("%s: worker %ld has read nothing for %.0f s; %d "
		       "message%s on its standard input",
		    script, (long)s->run.pid, lasts, s->count,
		    s->count == 1 ? " waits" : "s wait");
}

/* --- end -------------------------------------------------------------------- */

/* Seconds from a bad end to the next worker: doubling. */
#define WAIT_MIN 0.1
#define WAIT_MAX 30.0
#define NO_VERB	 "worker ended without a verb"

/* Sets the verdict on m, the first message of a dead worker.  False: the message goes back. */
static bool
last_verdict(
    const struct slot *s, const struct message *m, struct mq_verdict *v)
{
	const struct executor *x = s->executor;
	const struct stream_worker *w = &s->worker;

	if (m != NULL && !m->lost && m->stop != MQ_STOP_NONE) {
		mq_verdict_stopped(s->status, v);
		return true;
	}
	/* An unread message goes back; but not if the worker wrote no verb in its life, or it
	 * would go back for ever. */
	if (m == NULL || m->lost || s->killed ||
	    (w->timed_out != NULL && w->timed_out != m) ||
	    (w->judged > 0 && m->start >= w->input.read))
		return false;
	mq_verdict(&s->verbs, s->status, w->timed_out != NULL,
	    w->judged == 0 ? x->opt->strict : MQ_NOT_STRICT, v);
	if (w->protocol_error != NULL) {
		v->kind = MQ_VERDICT_ERR;
		strlcpy(v->how, w->protocol_error, sizeof(v->how));
	} else if (v->kind == MQ_VERDICT_DONE) {
		/* Exit status 0 alone says nothing about a message. */
		if (w->judged > 0 || x->stopping)
			return false;
		v->kind = MQ_VERDICT_RETRY;
		strlcpy(v->how, NO_VERB, sizeof(v->how));
	}
	return true;
}

/* If the worker judged messages, another one starts soon, even after a bad end. */
static void
replace_worker(struct slot *s)
{
	struct executor *x = s->executor;
	struct stream_worker *w = &s->worker;
	char how[64] = "";

	if (w->protocol_error != NULL)
		strlcpy(how, w->protocol_error, sizeof(how));
	else if (w->timed_out != NULL)
		strlcpy(how, "timed out", sizeof(how));
	else if (w->terminated)
		strlcpy(how, "worker did not end in time", sizeof(how));
	else if (s->status != 0)
		mq_verdict_end(s->status, how, sizeof(how));
	else if (w->judged == 0)
		strlcpy(how, NO_VERB, sizeof(how));
	if (s->killed || how[0] == '\0' || executor_unread(x)) {
		w->wait_s = 0;
		return;
	}
	w->wait_s = w->judged > 0 || w->wait_s == 0 ?
	    WAIT_MIN :
	    MIN(w->wait_s * 2, WAIT_MAX);
	if (x->stopping)
		return;
	if (!x->opt->quiet)
		mq_say("%s: %s%s; restarting in %.1f s", x->command->path,
		    strncmp(how, "worker ", 7) != 0 ? "worker: " : "", how,
		    w->wait_s);
	mq_timer_start(&s->restart, w->wait_s, 0);
}

/* Ends a dead worker after its last verb, once all requests are answered. */
static void
end_worker(struct slot *s)
{
	struct executor *x = s->executor;
	struct message *m;
	struct mq_verdict v;

	s->waits = s->waits || requests_await(s->requests, true);
	if (s->waits)
		return;
	x->busy--;
	x->last_end = mq_clock_steady_s();
	m = TAILQ_FIRST(&s->messages);
	if (last_verdict(s, m, &v)) {
		s->ran_s = mq_clock_s(CLOCK_MONOTONIC) - s->started;
		end_message(s, m, &v);
	}
	slot_return_all(s);
	(void)slot_close_output(s);
	mq_buf_free(&s->worker.unparsed);
	replace_worker(s);
	tell(x, FACT_WAKE);
}

static void
on_ended(void *arg, int status)
{
	struct slot *s = arg;

	mq_timer_stop(&s->timer);
	/* Verbs may still be in the pipe. */
	ev_io_stop(s->executor->loop, &s->verbs_io);
	(void)read_verbs(s, s->worker.unparsed.len + READ_LAST);
	close(s->run.verbs);
	mq_buf_add(&s->worker.unparsed, "\n", 1);
	cut_input(s);
	s->run.pid = 0;
	s->status = status;
	mq_answers_close(&s->answers);
	if (s->waits)
		return;
	parse_verbs(s);
	end_worker(s);
}

static void
stream_answered(struct slot *s, bool all)
{
	if (all)
		parse_verbs(s);
	if (s->run.pid == 0) {
		if (all)
			end_worker(s);
		return;
	}
	if (!s->worker.verbs_closed)
		ev_io_start(s->executor->loop, &s->verbs_io);
	if (s->worker.unparsed.len > 0)
		receive_verbs(s);
}

static bool
start_worker(struct slot *s)
{
	struct stream_worker *w = &s->worker;
	int fds[2] = {-1, -1};

	*w = (struct stream_worker){.input = {.fd = -1, .other = -1},
	    .message_s = w->message_s,
	    .wait_s = w->wait_s};
	if (pipe2(fds, O_CLOEXEC) == 0) {
		/* The worker's end must block. */
		fcntl(fds[1], F_SETFL, O_NONBLOCK);
		w->input.fd = fds[1];
		ev_io_init(&w->input.room, write_input, fds[1], EV_WRITE);
		w->input.room.data = s;
	}
	if (!slot_start(s, fds[0])) {
		close_input(s);
		return false;
	}
	slot_listen(s);
	return true;
}

/* --- messages ahead ------------------------------------------------------------ */

/* Without --window, a window has as many messages as a worker does in AHEAD_S seconds, but no
 * more from AHEAD_BYTES bytes on, which the worker may read at once.  All windows together have
 * at most WINDOWS_MAX messages, since an ack has to be found among all that run; or WINDOW_MAX
 * each. */
#define AHEAD_S	    0.1
#define AHEAD_BYTES ((size_t)1 << 20)
#define WINDOWS_MAX 1000
#define WINDOW_MAX  60

static int
window_of(const struct slot *s)
{
	const struct options *opt = s->executor->opt;
	int most = MAX(WINDOWS_MAX / s->executor->limit, WINDOW_MAX);

	if (opt->window > 0)
		return opt->window;
	if (s->worker.message_s == 0 || rules_share(opt) ||
	    opt->rest_max_ms > 0 || s->bytes >= AHEAD_BYTES)
		return 1;
	return (int)MAX(1, MIN(AHEAD_S / s->worker.message_s, most));
}

/* How many more messages a slot can take: for its worker, or for the one to be started. */
static int
slot_room(const struct slot *s)
{
	const struct worker_input *f = &s->worker.input;

	if (s - s->executor->all >= s->executor->limit ||
	    mq_timer_runs(&s->rest) || mq_timer_runs(&s->restart))
		return 0;
	/* A dead worker may wait for answers to its requests. */
	if (s->run.pid == 0 ? s->waits :
			      is_leaving(s) || f->fd == -1 || f->last ||
		    unwritten_bytes(f) >= INPUT_BYTES)
		return 0;
	return window_of(s) - s->count;
}

/* The slot with the fewest messages, preferably with a worker. */
static struct slot *
idlest_slot(const struct executor *x)
{
	struct slot *best = NULL, *s;

	for (s = x->all; s < x->all + x->made; s++) {
		if ((best == NULL || s->count < best->count ||
			(s->count == best->count && best->run.pid == 0 &&
			    s->run.pid != 0)) &&
		    slot_room(s) > 0)
			best = s;
		if (best != NULL && best->count == 0 && best->run.pid != 0)
			break;
	}
	return best;
}

/* Chooses the slot for the next message, and starts its worker if it has none. */
static bool
stream_wants(struct executor *x, const struct start_terms *terms, int *queue)
{
	*queue = -1;
	x->filled = slots_may_start(x, terms) ? idlest_slot(x) : NULL;
	return x->filled != NULL &&
	    (x->filled->run.pid != 0 || start_worker(x->filled));
}

static bool
stream_take(struct executor *x, struct message *m)
{
	struct slot *s = x->filled;
	struct worker_input *f = &s->worker.input;

	slot_add(s, m);
	if (f->start > INPUT_BYTES) {
		mq_buf_drop(&f->out, f->start);
		f->start = 0;
	}
	m->start = f->written + unwritten_bytes(f);
	message_frame(m, x->opt->framing, &f->out);
	m->end = f->written + unwritten_bytes(f);
	if (s->count == 1)
		begin_time(s);
	return false;
}

/* At the end of its input, a worker can write verbs that it has kept until then. */
static void
stream_started(struct executor *x, const struct start_terms *terms)
{
	bool last =
	    terms->last && hand_count(x->hand, -1, MESSAGE_UNSTARTED) == 0;
	struct slot *s;
	int i;

	for (i = 0; i < x->made; i++) {
		s = &x->all[i];
		if (s->run.pid != 0)
			flush_input(s,
			    last || s->killed ||
				(i >= x->limit && s->count == 0));
	}
}

/* Without --window, another window of messages is claimed ahead: the server works on the claim
 * while the workers are busy.  While no worker waits, a claim of less than half a window is not
 * worth a round. */
static long
stream_room(const struct executor *x, int queue, bool careful)
{
	const struct slot *s;
	long all = 0, free = 0;
	bool waits = false;
	int n;

	(void)queue;
	(void)careful;
	for (s = x->all; s < x->all + x->made; s++) {
		n = slot_room(s);
		all += window_of(s);
		free += MAX(n, 0);
		if (s->run.pid != 0 && x->opt->window == 0)
			free += window_of(s) - 1;
		waits = waits || (n > 0 && s->count == 0);
	}
	free -= hand_count(x->hand, -1, MESSAGE_UNSTARTED);
	return waits || free >= all / 2 ? free : 0;
}

static void
stream_stop(struct executor *x)
{
	int i;

	for (i = 0; i < x->made; i++)
		if (x->all[i].run.pid != 0)
			end_input(&x->all[i]);
}

static void
stream_tick(struct executor *x)
{
	struct slot *s;

	x->starved = false;
	for (s = x->all; s < x->all + x->made; s++)
		if (s->run.pid != 0)
			tick_worker(s);
	if (!slots_return_stale(x, idlest_slot(x) != NULL))
		return;
	/* The workers have become slow: measure anew, with one message at a time. */
	for (s = x->all; s < x->all + x->made; s++)
		s->worker.message_s = 0;
}

const struct executor_table executor_stream = {
    .way = {.flows = true, .acks = ACKS_AT_REST, .runs = true, .names = true},
    .wants = stream_wants,
    .take = stream_take,
    .started = stream_started,
    .stop = stream_stop,
    .room = stream_room,
    .tick = stream_tick,
    .on_verbs = on_verbs,
    .on_timeout = on_timeout,
    .on_ended = on_ended,
    .answered = stream_answered,
};
