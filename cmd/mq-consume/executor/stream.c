/*
 * --stream: workers that stay.  Each worker reads framed messages on its standard
 * input, a window of them ahead of its verbs.
 *
 * Each final verb is about the first message in hand; one about a message that the
 * worker cannot have read breaks the protocol.  When a worker ends, its exit status
 * decides the message that it was on, and the messages behind go back, as if they had
 * not been started.  Another worker takes its place; after a bad end, after a while.
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
		limit = (double)rules_of(x->opt, m->queue)->timeout_ms / 1000;
	} else if (has_finished(s) && !x->stopping) {
		/* Later, the grace time of the consumer is for all workers. */
		limit = (double)x->opt->grace_ms / 1000;
		limit =
		    s->worker.input.cut ? KILL_AFTER : MAX(limit, KILL_AFTER);
	}
	slot_set_timer(s, limit);
}

/* --- input ------------------------------------------------------------------- */

/* Bytes that wait for a worker that does not read; or one message. */
#define INPUT_BYTES ((size_t)1 << 18)

static size_t
unwritten_bytes(const struct worker_input *f)
{
	return f->out.len - f->start;
}

/* Finds out how much has been read: bytes that are left in the pipe are unread. */
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

/* Returns messages that the worker cannot have read, and writes no more.  Bytes in the
 * pipe can still be read, unless it is cut. */
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

/* The worker itself has closed it, and may still be busy with what it has read. */
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
	/* The worker finds the end when no write end is open.  A read end of our own
	 * still tells what is unread. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		f->read = f->written;
	close_input(s);
	f->other = fd;
}

/* Writes what waits, at once or later.  last: no more messages come; the worker finds the
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
	/* A dead worker is about to be ended. */
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
		/* Too long: for a message, or to end after the last. */
		w->terminated = true;
		w->timed_out = TAILQ_FIRST(&s->messages);
		end_input(s);
		slot_set_timer(s, KILL_AFTER);
		kill(-s->run.pid, SIGTERM);
	}
}

/* --- verbs ------------------------------------------------------------------- */

/* Bytes read in one turn, and by one read. */
#define READ_MAX  ((size_t)1 << 16)
#define READ_ONCE ((size_t)1 << 14)
/* The most that a pipe holds. */
#define READ_LAST ((size_t)1 << 20)
/* A worker is silent after this time, or after the time for this many messages,
 * whichever is longer. */
#define SILENT_S	10.0
#define SILENT_MESSAGES 10

/* Ends a message by its verdict, which leaves the slot. */
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
		/* What is done needs no errors. */
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
	/* The time since the verb before; verbs that come together took none. */
	s->ran_s = s->worker.heard - s->started;
	tell(s->executor, FACT_RAN, .queue = m->queue, .seconds = s->ran_s);
	s->started = s->worker.heard;
	s->worker.judged++;
	end_message(s, m, &v);
}

/* Parses what was read, up to a final verb whose message has pending requests. */
static void
hear_verbs(struct slot *s)
{
	struct stream_worker *w = &s->worker;
	long before = w->judged;
	double began = s->started, each;
	size_t at = 0;

	w->heard = mq_clock_s(CLOCK_MONOTONIC);
	look_at_input(&w->input);
	/* A final verb may have waited for requests. */
	if (s->verbs.final != MQ_FINAL_NONE && !s->waits)
		judge_message(s);
	while (at < w->said.len && !s->waits && !requests_full(s->requests) &&
	    w->protocol_error == NULL) {
		at += mq_verbs_feed_line(
		    &s->verbs, w->said.data + at, w->said.len - at);
		if (s->verbs.final == MQ_FINAL_NONE)
			continue;
		s->waits = requests_await(s->requests, false);
		if (!s->waits)
			judge_message(s);
	}
	if (at > 0) {
		w->said.len -= at;
		memmove(w->said.data, w->said.data + at, w->said.len);
	}
	/* That time stops while requests are answered. */
	if (s->waits && s->run.pid != 0 && !is_leaving(s))
		slot_set_timer(s, 0);
	if (w->judged == before)
		return;
	each = (w->heard - began) / (double)(w->judged - before);
	w->message_s =
	    w->message_s == 0 ? each : w->message_s * 0.8 + each * 0.2;
	s->executor->last_end = mq_clock_steady_s();
	tell(s->executor, FACT_WAKE);
	run_output_forget(s->run.output);
	begin_time(s);
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
take_verbs(struct slot *s)
{
	bool more = read_verbs(s, READ_MAX);

	s->worker.silence_said = false;
	hear_verbs(s);
	if (!more || s->worker.said.len > 0)
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
	take_verbs(w->data);
}

/* Once a second: notices that nobody reads, and says once that a worker is silent for
 * long. */
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

	/* Without output, no event tells that nobody reads. */
	if (w->input.fd != -1 && poll(&pipe, 1, 0) == 1 &&
	    (pipe.revents & POLLERR) != 0)
		lose_input(s);
	m = TAILQ_FIRST(&s->messages);
	if (w->silence_said || m == NULL || !requests_empty(s->requests) ||
	    is_leaving(s))
		return;
	/* For the first message, a silence is said before --timeout ends it. */
	timeout = (double)rules_of(opt, m->queue)->timeout_ms / 1000;
	if (w->message_s == 0 && timeout > 0)
		allowed = MIN(allowed, timeout / 2);
	lasts = mq_clock_s(CLOCK_MONOTONIC) - MAX(w->heard, s->started);
	if (lasts < allowed)
		return;
	/* Unread verbs are no silence. */
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

/* Seconds from a bad end to the next worker. */
#define WAIT_MIN 0.1
#define WAIT_MAX 30.0
#define NO_VERB	 "worker ended without a verb"

/* The verdict on the message that a dead worker was on; false: it goes back. */
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
	/* A worker that wrote no verb has no endless retries. */
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
		/* Exit status 0 says nothing about a message. */
		if (w->judged > 0 || x->stopping)
			return false;
		v->kind = MQ_VERDICT_RETRY;
		strlcpy(v->how, NO_VERB, sizeof(v->how));
	}
	return true;
}

/* A worker that judged messages is replaced soon. */
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

/* Ends the slot of a dead worker, after its last verb, when all is answered. */
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
	mq_buf_free(&s->worker.said);
	replace_worker(s);
	tell(x, FACT_WAKE);
}

static void
on_ended(void *arg, int status)
{
	struct slot *s = arg;

	mq_timer_stop(&s->timer);
	/* The last verbs, and the last look at what was read. */
	ev_io_stop(s->executor->loop, &s->verbs_io);
	(void)read_verbs(s, s->worker.said.len + READ_LAST);
	close(s->run.verbs);
	mq_buf_add(&s->worker.said, "\n", 1);
	cut_input(s);
	s->run.pid = 0;
	s->status = status;
	mq_answers_close(&s->answers);
	if (s->waits)
		return;
	hear_verbs(s);
	end_worker(s);
}

static void
stream_answered(struct slot *s, bool all)
{
	/* all: those of the message that the worker is on. */
	if (all)
		hear_verbs(s);
	if (s->run.pid == 0) {
		if (all)
			end_worker(s);
		return;
	}
	if (!s->worker.verbs_closed)
		ev_io_start(s->executor->loop, &s->verbs_io);
	if (s->worker.said.len > 0)
		take_verbs(s);
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
		/* Only our end: the worker's must block. */
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

/* Without --window: as many messages as a worker does in this time; and about so
 * many bytes, which the worker may read at once.  Workers share a number of
 * messages: acks have to be found among all that run. */
#define AHEAD_S	    0.1
#define AHEAD_BYTES ((size_t)1 << 20)
#define WINDOWS_MAX 1000
#define WINDOW_MAX  60 /* each, if there are many */

static int
window_of(const struct slot *s)
{
	const struct options *opt = s->executor->opt;
	int most = MAX(WINDOWS_MAX / s->executor->limit, WINDOW_MAX);

	if (opt->window > 0)
		return opt->window;
	if (s->worker.message_s == 0 || rules_share_rate(opt) ||
	    opt->rest_max_ms > 0 || s->bytes >= AHEAD_BYTES)
		return 1;
	return (int)MAX(1, MIN(AHEAD_S / s->worker.message_s, most));
}

/* How many more messages a slot can take: for its worker or, after that, the next. */
static int
slot_room(const struct slot *s)
{
	const struct worker_input *f = &s->worker.input;

	if (s - s->executor->all >= s->executor->limit ||
	    mq_timer_runs(&s->rest) || mq_timer_runs(&s->restart))
		return 0;
	/* A dead worker may wait for the answers to its dups. */
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

/* Starts the worker of the slot that is to take a message, if it has none. */
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

	slot_take(s, m);
	if (f->start > INPUT_BYTES) {
		f->out.len -= f->start;
		memmove(f->out.data, f->out.data + f->start, f->out.len);
		f->start = 0;
	}
	m->start = f->written + unwritten_bytes(f);
	message_frame(m, x->opt->framing, &f->out);
	m->end = f->written + unwritten_bytes(f);
	if (s->count == 1)
		begin_time(s);
	return false;
}

/* At the end of their input, workers can write verbs that they have kept until then. */
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

/* Without --window, another window of messages is claimed ahead: the server works
 * on them while the workers are busy.  While no worker waits, only claims of half a
 * window or more are worth it. */
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
	/* Measure anew, with one message at a time. */
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
