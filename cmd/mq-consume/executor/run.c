/* Runs: a process for each message or, with --batch, for several messages of one queue,
 * which are framed on its standard input.  Messages that are claimed for a batch wait for
 * more of their queue; the wait begins with the claim of the first.  A worker of a stream
 * is started here, too. */
#include "executor.h"

#include "mq-consume/attachments/attachments.h"

/* The most that a pipe holds. */
#define VERBS_AT_ONCE (1 << 20)
/* Before this time, the pipes of a run are read only at its end. */
#define LISTEN_AFTER 0.01
/* Without --prefetch: as many messages as the slots finish in this time. */
#define AHEAD_S	  0.1
#define AHEAD_MAX 100
/* In messages; at least one batch. */
#define AHEAD_MESSAGES 1000

/* --- starting a command ------------------------------------------------------- */

static bool
is_temporary(int error)
{
	return error == EAGAIN || error == ENOMEM || error == EMFILE ||
	    error == ENFILE || error == ETXTBSY || error == ENOSPC ||
	    error == EDQUOT;
}

/* Returns the messages, as if no start had been tried.  A consumer that is to end by itself
 * does so if it lacks descriptors for its first run. */
static void
report_failed_start(struct slot *s, int error)
{
	struct executor *x = s->executor;
	struct message *m = TAILQ_FIRST(&s->hand);
	const char *script = x->process->command.path;
	bool batch = x->opt->batch > 0, first;

	if (error == E2BIG && m != NULL && !batch) {
		slot_release(s, m);
		tell(x, FACT_UNFIT, .message = m, .unfit = UNFIT_RUN,
		    .text = x->opt->replace == NULL ?
			"its headers are too long for the environment" :
			"its payload and headers are too long for a command");
		return;
	}
	slot_return_all(s);
	first = (error == EMFILE || error == ENFILE) &&
	    options_have_end(x->opt) && x->policy->started == 0;
	if (!is_temporary(error))
		mq_say("%s: %s; stopping, %s returned", script, strerror(error),
		    batch ? "the messages are" : "the message is");
	else if (first || (!x->starving && !x->opt->quiet))
		mq_say("%s: %s%s", script, strerror(error),
		    first ? "" : "; trying again");
	x->starved = x->starving = true;
	if (first || !is_temporary(error))
		policy_stop(x->policy, STOP_SOON,
		    first ? MQ_EXIT_AGAIN : MQ_EXIT_CONFIG, 0);
}

/* Asks for a duplicate of message `which` of the run; as of message/verdict.h. */
static void
ask_duplicate(void *arg, int which, const char *text)
{
	struct slot *s = arg;
	const struct message *first = TAILQ_FIRST(&s->hand), *m = first;
	const char *wrong = NULL;
	int i;

	for (i = 0; i < which && m != NULL; i++)
		m = TAILQ_NEXT(m, line);
	if (which == -1 && s->verbs.ones != NULL && s->count > 1)
		wrong = "message number missing: dup #N ...";
	else if (m == NULL)
		wrong = "no message has that number";
	if (m == NULL)
		m = first;
	/* May go back, and end elsewhere, before the request is answered. */
	if (s->executor->opt->stream && first != NULL &&
	    first->start >= s->worker.input.read) {
		wrong = "the worker has not read the message";
		m = NULL;
	}
	requests_ask(&s->requests, m, wrong, text);
}

bool
slot_start(struct slot *s, int input, slot_io *on_verbs, slot_timer *on_timeout,
    mq_child_ended *ended)
{
	struct executor *x = s->executor;
	const struct options *opt = x->opt;
	struct message *m = TAILQ_FIRST(&s->hand);
	struct run_info info = {
	    .message = m, .batch = opt->batch > 0 ? s->count : 0};
	struct attached files = {
	    .server = x->session->server, .layout = opt->layout};
	char *dir = NULL;
	int error = 0, answers;

	s->killed = false;
	mq_verbs_begin(&s->verbs);
	s->verbs.on_dup = ask_duplicate;
	s->verbs.arg = s;
	s->started = s->born = mq_clock_s(CLOCK_MONOTONIC);
	if (m != NULL && opt->batch <= 0)
		error = attachments_begin(m, &files);
	if (error == 0) {
		info.files = files.dir;
		info.before = files.dir != NULL ? attachments_fetch : NULL;
		info.before_arg = &files;
		answers = input != -1 ? mq_answers_open(&s->answers) : -1;
		error = process_start(
		    x->process, &info, input, answers, &s->run, &dir);
		attachments_begun(&files, error == 0);
	} else if (input != -1) {
		close(input);
	}
	if (dir != NULL) {
		if (!x->starving)
			mq_say("%s: %s", dir, strerror(error));
		free(dir);
		error = is_temporary(error) ? error : ENOTDIR;
	}
	if (error != 0) {
		report_failed_start(s, error);
		return false;
	}
	x->starving = false;
	x->busy++;
	ev_io_init(&s->verbs_io, on_verbs, s->run.verbs, EV_READ);
	ev_timer_init(&s->timer, on_timeout, 0, 0);
	s->verbs_io.data = s->timer.data = s;
	mq_child_watch(x->children, &s->child, s->run.pid, ended, s);
	return true;
}

void
slot_listen(struct slot *s)
{
	ev_io_start(s->executor->loop, &s->verbs_io);
	run_output_listen(s->run.output);
}

const char *
slot_close_output(struct slot *s)
{
	char end[48], how[96] = "";
	const char *errors;

	if (s->executor->opt->log_dir != NULL) {
		mq_verdict_end(s->status, end, sizeof(end));
		snprintf(how, sizeof(how), "%s%s after %.3f s",
		    s->timed_out ? "timed out, " : "", end,
		    mq_clock_s(CLOCK_MONOTONIC) - s->born);
	}
	errors = run_output_close(s->run.output, how);
	s->run.output = NULL;
	return errors;
}

/* --- room ------------------------------------------------------------------- */

/* Slots that could start now; may be below 0. */
static long
slots_idle(const struct executor *x)
{
	return x->limit - x->busy - x->resting;
}

/* The same of a queue: that it may use. */
static long
slots_idle_for(const struct executor *x, int queue)
{
	long all = slots_idle(x);
	long own = rules_of(x->opt, queue)->slots - x->runs[queue];

	return x->uneven && own < all ? own : all;
}

/* How many messages are worth having ahead of the idle slots. */
static int
slots_ahead(const struct executor *x)
{
	int most = MAX(1, MIN(AHEAD_MAX, AHEAD_MESSAGES / x->batch));
	double runs;

	if (policy_is_careful(x->policy, true))
		return 0;
	if (x->opt->prefetch >= 0)
		return x->opt->prefetch;
	if (x->run_s == 0 || rules_share_rate(x->opt))
		return 0;
	runs = x->limit * AHEAD_S / x->run_s;
	return (int)MIN(runs, most) * x->batch;
}

static void
run_tick(struct executor *x)
{
	x->starved = false;
	/* Messages that gather are not given back. */
	if (x->opt->batch_wait_ms <= 0)
		(void)slots_return_stale(x, slots_idle(x) > 0);
}

/* --- listening -------------------------------------------------------------- */

/* Reads verbs without waiting; all, or until there are too many requests.  False:
 * the pipe has ended. */
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
	if (!read_verbs(s, false) || requests_full(&s->requests))
		ev_io_stop(loop, w);
}

/* For a run that is over before, the system calls are saved. */
static void
on_patience(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	slot_listen(w->data);
}

static void
on_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)events;
	(void)loop;
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

	/* An operator ended its run before that ended in its own way. */
	if (m->stop != MQ_STOP_NONE && !ended)
		mq_verdict_stopped(s->status, v);
	else if (s->verbs.ones != NULL)
		mq_verdict_one(&s->verbs, which, s->status,
		    s->timed_out || s->killed, strict, v);
	else
		mq_verdict(&s->verbs, s->status, s->timed_out, strict, v);
}

/* Reports the end of the messages that do not go back. */
static void
judge_run(struct slot *s)
{
	struct executor *x = s->executor;
	const char *errors = slot_close_output(s);
	struct message *m = TAILQ_FIRST(&s->hand), *next;
	struct mq_verdict v;
	enum slot_success success = SLOT_NEITHER;
	bool back; /* as if it had not run */
	int which = -1;

	if (m == NULL)
		return;
	mq_verdict(&s->verbs, s->status, s->timed_out, x->opt->strict, &v);
	s->killed = s->killed ||
	    (slot_success_of(v.kind) == SLOT_FAILURE && executor_unread(x));
	if (!s->killed)
		slot_ran(s, m, &v);
	TAILQ_FOREACH_SAFE(m, &s->hand, line, next) {
		judge_message(s, m, ++which, &v);
		/* A final verb about a message of a batch stands. */
		back = s->killed && !m->lost && m->stop == MQ_STOP_NONE &&
		    (s->verbs.ones == NULL ||
			s->verbs.ones[which].final == MQ_FINAL_NONE) &&
		    v.kind != MQ_VERDICT_DONE && v.kind != MQ_VERDICT_PUSH;
		if (back) {
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
end_run(struct slot *s)
{
	struct executor *x = s->executor;
	ssize_t n;
	int error, i;

	x->busy--;
	slots_count(x, TAILQ_FIRST(&s->hand)->queue, -1);
	x->last_end = mq_clock_steady_s();
	/* The check of the lease may mark messages as lost. */
	(void)session_holds_lease(x->session);
	/* A command that was to start when its attachments were fetched. */
	if (s->run.failure != -1) {
		n = read(s->run.failure, &error, sizeof(error));
		close(s->run.failure);
		if (n == (ssize_t)sizeof(error) && error != 0)
			report_failed_start(s, error);
	}
	judge_run(s);
	slot_return_all(s);
	for (i = 0; s->verbs.ones != NULL && i < s->verbs.count; i++)
		free(s->verbs.ones[i].text);
	free(s->verbs.ones);
	s->verbs.ones = NULL;
	tell(x, FACT_WAKE);
}

static void
on_answered(void *arg, bool all)
{
	struct slot *s = arg;

	if (all)
		end_run(s);
	else if (s->run.pid != 0 && !ev_is_active(&s->patience))
		ev_io_start(s->executor->loop, &s->verbs_io);
}

static void
on_ended(void *arg, int status)
{
	struct slot *s = arg;
	struct executor *x = s->executor;
	double took = mq_clock_s(CLOCK_MONOTONIC) - s->started;
	/* A grandchild may keep the pipes open for ever: no end is waited for. */
	bool alone = !read_verbs(s, true) && run_output_ended(s->run.output);
	s->ran_s = took;
	mq_verbs_feed(&s->verbs, "\n", 1);
	ev_io_stop(x->loop, &s->verbs_io);
	ev_timer_stop(x->loop, &s->timer);
	ev_timer_stop(x->loop, &s->patience);
	if (alone && s->requests.count == 0)
		mq_answers_keep(&s->answers);
	else
		mq_answers_close(&s->answers);
	close(s->run.verbs);
	s->run.pid = 0;
	s->status = status;
	counters_ran(x->outbox, TAILQ_FIRST(&s->hand)->queue, took);
	x->run_s = x->run_s == 0 ? took : x->run_s * 0.8 + took * 0.2;
	if (!requests_await(&s->requests, true))
		end_run(s);
}

static void
run_begin(struct slot *s, const char *input, size_t n)
{
	struct executor *x = s->executor;
	int queue = TAILQ_FIRST(&s->hand)->queue;

	/* It may crash this consumer: held messages go back that no other slot can take
	 * at once. */
	if (policy_is_careful(x->policy, true) &&
	    x->inbox->held > (slots_idle(x) - 1) * x->batch)
		tell(x, FACT_GIVE_BACK, .yes = true);
	s->started_ms = 0;
	s->timed_out = false;
	if (!slot_start(
		s, mq_worker_payload(input, n), on_verbs, on_timeout, on_ended))
		return;
	s->verbs.count = s->count;
	if (x->opt->batch > 0)
		s->verbs.ones =
		    mq_xcalloc((size_t)s->count, sizeof(*s->verbs.ones));
	slots_count(x, queue, 1);
	ev_timer_init(&s->patience, on_patience, LISTEN_AFTER, 0);
	s->patience.data = s;
	ev_timer_start(x->loop, &s->patience);
	slot_set_timer(s, (double)rules_of(x->opt, queue)->timeout_ms / 1000);
}

/* --- a message for each ------------------------------------------------------- */

static long
fork_room(const struct executor *x, int queue)
{
	long all = slots_idle(x) - x->inbox->held + slots_ahead(x);
	long own = slots_idle_for(x, queue) - x->inbox->queues[queue].held;

	return x->uneven && own < all ? own : all;
}

static void
fork_start(struct executor *x)
{
	const char *payload, *why;
	struct message *m;
	struct slot *s;
	size_t n;

	while (slots_may_start(x) && slots_idle(x) > 0 &&
	    (s = TAILQ_FIRST(&x->free)) != NULL &&
	    (m = inbox_next(x->inbox, -1)) != NULL) {
		payload = m->envelope.payload;
		n = m->envelope.payload_len;
		why = NULL;
		if (x->opt->replace != NULL)
			why = arguments_refuse(payload, n);
		/* With -I, the payload is an argument, and the input empty. */
		if (slot_take(s, m, why))
			run_begin(s, payload, x->opt->replace == NULL ? n : 0);
	}
}

const struct executor_table executor_fork = {
    .acks = ACKS_AT_ONCE,
    .answered = on_answered,
    .room = fork_room,
    .start = fork_start,
    .tick = run_tick,
};

/* --- a batch for each --------------------------------------------------------- */

/* Each queue can gather a batch while a slot is free. */
static long
batch_room(const struct executor *x, int queue)
{
	long free = slots_idle_for(x, queue);
	int held = free > 0 ? x->inbox->queues[queue].held : x->inbox->held;
	/* Messages that gather are held for long anyway. */
	bool gathers = x->opt->batch_wait_ms > 0 && x->opt->prefetch < 0;

	return free * x->batch - held + (gathers ? 0 : slots_ahead(x));
}

bool
executor_wants_few(const struct executor *x, int queue)
{
	/* The batch of a queue is not full, and a slot is free for it. */
	return x->opt->stream ||
	    (x->opt->batch > x->inbox->queues[queue].held &&
		slots_idle_for(x, queue) > 0);
}

/* The first queue whose batch can start; -1: none, and the timer is set. */
static int
next_batch_queue(struct executor *x)
{
	const struct message *m;
	double first = -1, wait;
	int i;

	for (i = 0; i < x->opt->queue_count; i++) {
		if ((m = inbox_oldest_of(x->inbox, i)) == NULL)
			continue;
		if (x->inbox->queues[i].held >= x->batch || slots_have_last(x))
			return i;
		/* Others come at once. */
		if (session_is_up(x->session) &&
		    x->session->complaint[0] == '\0' &&
		    inbox_expects(x->inbox, i))
			continue;
		wait = m->since + (double)x->opt->batch_wait_ms / 1000 -
		    mq_clock_steady_s();
		if (wait <= 0)
			return i;
		if (first < 0 || wait < first)
			first = wait;
	}
	ev_timer_stop(x->loop, &x->batch_timer);
	if (first > 0) {
		ev_timer_init(&x->batch_timer, executor_on_time, first, 0);
		x->batch_timer.data = x;
		ev_timer_start(x->loop, &x->batch_timer);
	}
	return -1;
}

static void
batch_start(struct executor *x)
{
	struct mq_buf input;
	struct message *m;
	struct slot *s;
	int queue;

	while (slots_may_start(x) && slots_idle(x) > 0 &&
	    (s = TAILQ_FIRST(&x->free)) != NULL &&
	    (queue = next_batch_queue(x)) != -1) {
		input = (struct mq_buf){0};
		while (s->count < x->batch &&
		    (m = inbox_next(x->inbox, queue)) != NULL)
			if (slot_take(
				s, m, message_unframable(m, x->opt->framing)))
				message_frame(m, x->opt->framing, &input);
		if (s->count > 0)
			run_begin(s, input.data, input.len);
		mq_buf_free(&input);
	}
}

const struct executor_table executor_batch = {
    .acks = ACKS_AT_REST,
    .answered = on_answered,
    .room = batch_room,
    .start = batch_start,
    .tick = run_tick,
};
