/*
 * Runs: a process for each message or, with --batch, for several messages of one queue,
 * which are framed on its standard input.  Messages that are claimed for a batch wait for
 * more of their queue; the wait begins with the claim of the first.  A worker of a stream
 * is started here, too.
 */
#include "executor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "mq-consume/rules.h"

/* The most that a pipe holds. */
#define VERBS_AT_ONCE (1 << 20)
/* Seconds from TERM to KILL after a timeout. */
#define KILL_AFTER 5.0
/* Before this time, the pipes of a run are read only at its end. */
#define LISTEN_AFTER 0.01
/* Without --prefetch: as many messages as the slots finish in this time. */
#define AHEAD_S	  0.1
#define AHEAD_MAX 100
/* In messages; at least one batch. */
#define AHEAD_MESSAGES 1000

/* --- starting a command ------------------------------------------------------- */

/* Errors that may pass by themselves. */
static bool
is_temporary(int error)
{
	return error == EAGAIN || error == ENOMEM || error == EMFILE ||
	    error == ENFILE || error == ETXTBSY || error == ENOSPC ||
	    error == EDQUOT;
}

/* Returns the messages, as if no start had been tried. */
static void
report_failed_start(struct slot *s, int error)
{
	struct executor *x = s->executor;
	struct message *m = TAILQ_FIRST(&s->hand);
	const char *script = process_script(x->process);

	if (error == E2BIG && m != NULL && s->ones == NULL) {
		slot_release(s, m);
		tell(x, FACT_REJECTED, .message = m,
		    .text = x->opt->replace == NULL ?
			"its headers are too long for the environment" :
			"its payload and headers are too long for a command");
		return;
	}
	if (!is_temporary(error))
		mq_say("%s: %s; stopping, %s returned", script, strerror(error),
		    s->ones != NULL ? "the messages are" : "the message is");
	else if (!x->starving && !x->opt->quiet)
		mq_say("%s: %s; trying again", script, strerror(error));
	x->starved = x->starving = true;
	slot_return_all(s);
	if (!is_temporary(error))
		policy_stop(x->policy, STOP_SOON, MQ_EXIT_CONFIG, 0);
}

static struct run_info
describe_run(const struct slot *s)
{
	const struct options *opt = s->executor->opt;
	const struct message *m = TAILQ_FIRST(&s->hand);
	struct run_info info = {
	    .attempts_max = rules_of(opt, m != NULL ? m->queue : 0)->attempts};

	if (m != NULL) {
		info.log = m->queue;
		info.queue = m->queue_name;
		info.first = m->id;
	} else if (opt->queue_count == 1) {
		info.queue = opt->queues[0];
	}
	if (s->ones != NULL) {
		info.batch = s->count;
	} else if (m != NULL) {
		info.id = m->id;
		info.attempts = m->attempts;
		info.envelope = &m->envelope;
		info.stamped = message_is_stamped(m);
	}
	return info;
}

/* Starts the process of a run.  Returns 0, or an errno. */
static int
start_process(
    struct slot *s, const struct run_info *info, int input, char **dir)
{
	int answers = input != -1 ? mq_answers_open(&s->answers) : -1;

	return process_start(
	    s->executor->process, info, input, answers, &s->run, dir);
}

/* The same with the message's files. */
static int
start_with_files(
    struct slot *s, const struct run_info *info, int input, char **dir)
{
	struct run_info with = *info;
	struct attached a;
	int error = attachments_begin(
	    s->executor->attachments, TAILQ_FIRST(&s->hand), &a);

	if (error != 0) {
		if (input != -1)
			close(input);
		return error;
	}
	with.files = a.dir;
	with.before = attachments_fetch;
	with.before_arg = &a;
	error = start_process(s, &with, input, dir);
	attachments_begun(&a, error == 0);
	return error;
}

/* Returns 0, or an errno. */
static int
start_command(struct slot *s, int input)
{
	const struct run_info info = describe_run(s);
	bool files =
	    info.id != NULL && attachments_wanted(TAILQ_FIRST(&s->hand));
	char *dir = NULL;
	int error = files ? start_with_files(s, &info, input, &dir) :
			    start_process(s, &info, input, &dir);

	if (dir == NULL)
		return error;
	if (!s->executor->starving)
		mq_say("%s: %s", dir, strerror(error));
	free(dir);
	return is_temporary(error) ? error : ENOTDIR;
}

bool
slot_start(struct slot *s, int input)
{
	int error;

	s->started = s->born = mq_clock_s(CLOCK_MONOTONIC);
	error = start_command(s, input);
	if (error != 0)
		report_failed_start(s, error);
	else
		s->executor->starving = false;
	return error == 0;
}

/* The same of a command that was to start when its attachments were fetched; after
 * its end. */
static bool
slot_was_started(struct slot *s)
{
	int error = 0;

	if (s->run.failure == -1)
		return true;
	if (read(s->run.failure, &error, sizeof(error)) != sizeof(error))
		error = 0;
	close(s->run.failure);
	s->run.failure = -1;
	if (error != 0)
		report_failed_start(s, error);
	return error == 0;
}

const char *
slot_close_output(struct slot *s)
{
	char end[48], how[96];
	const char *errors;

	if (s->run.label[0] != '\0') {
		mq_verdict_end(s->status, end, sizeof(end));
		snprintf(how, sizeof(how), "%s%s after %.3f s",
		    s->timed_out ? "timed out, " : "", end,
		    mq_clock_s(CLOCK_MONOTONIC) - s->born);
		process_log_end(s->executor->process, &s->run, how);
	}
	errors = run_output_close(s->run.output);
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
	int batch = x->batch, most;
	double runs;

	if (policy_is_alone(x->policy))
		return 0;
	if (x->opt->prefetch >= 0)
		return x->opt->prefetch;
	if (x->run_s == 0 || rules_share_rate(x->opt))
		return 0;
	runs = x->limit * AHEAD_S / x->run_s;
	most = batch > AHEAD_MESSAGES ? 1 : AHEAD_MESSAGES / batch;
	if (most > AHEAD_MAX)
		most = AHEAD_MAX;
	return (runs < most ? (int)runs : most) * batch;
}

/* NULL: none. */
static struct slot *
slots_free_one(const struct executor *x)
{
	return slots_idle(x) > 0 ? TAILQ_FIRST(&x->free) : NULL;
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
	struct slot *s = w->data;

	(void)events;
	fcntl(s->run.verbs, F_SETFL, O_NONBLOCK);
	ev_io_start(loop, &s->verbs_io);
	run_output_listen(s->run.output);
	mq_child_poll(&s->child);
}

static void
on_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)events;
	kill(-s->run.pid, s->timed_out ? SIGKILL : SIGTERM);
	if (s->timed_out)
		return;
	s->timed_out = true;
	ev_timer_set(w, KILL_AFTER, 0);
	ev_timer_start(loop, w);
}

void
run_stop(struct slot *s)
{
	s->killed = true;
	requests_hurry(&s->requests);
	/* Else KILL is near anyway. */
	if (s->timed_out)
		return;
	s->timed_out = true;
	ev_timer_stop(s->executor->loop, &s->timer);
	ev_timer_set(&s->timer, (double)s->executor->opt->grace_ms / 1000, 0);
	ev_timer_start(s->executor->loop, &s->timer);
	kill(-s->run.pid, SIGTERM);
}

/* --- judging ---------------------------------------------------------------- */

/* Whether its run has not ended in its own way before an operator ended it. */
static bool
was_stopped(const struct slot *s, const struct message *m, int which)
{
	if (m->stop == MQ_STOP_NONE)
		return false;
	return s->ones != NULL ?
	    s->ones[which].final == MQ_FINAL_NONE :
	    s->verbs.final == MQ_FINAL_NONE || s->status != 0;
}

static void
judge_message(const struct slot *s, const struct message *m, int which,
    struct mq_verdict *v)
{
	enum mq_strict strict = s->executor->opt->strict;

	if (was_stopped(s, m, which))
		mq_verdict_stopped(s->status, v);
	else if (s->ones != NULL)
		mq_verdict_one(&s->verbs, which, s->status,
		    s->timed_out || s->killed, strict, v);
	else
		mq_verdict(&s->verbs, s->status, s->timed_out, strict, v);
}

/* Whether a message goes back, as if it had not run. */
static bool
must_return(const struct slot *s, const struct message *m, int which,
    const struct mq_verdict *v)
{
	if (!s->killed || m->stop != MQ_STOP_NONE)
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
		judge_message(s, m, ++which, &v);
		if (!m->lost && must_return(s, m, which, &v)) {
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
	struct message *first = TAILQ_FIRST(&s->hand);
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
end_run(struct slot *s)
{
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

static void
on_answered(void *arg, bool all)
{
	struct slot *s = arg;

	if (all)
		end_run(s);
	else if (s->run.pid != 0 && !ev_is_active(&s->patience))
		ev_io_start(s->executor->loop, &s->verbs_io);
}

/* Reads what the pipes hold; whether no process can write more.  A grandchild may
 * keep them open for ever: no end is waited for. */
static bool
read_rest(struct slot *s)
{
	/* Most short runs write nothing. */
	if (run_output_silent(s->run.output, s->run.verbs))
		return true;
	fcntl(s->run.verbs, F_SETFL, O_NONBLOCK);
	return !read_verbs(s, true) && run_output_ended(s->run.output);
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
	if (alone && !requests_pending(&s->requests))
		mq_answers_keep(&s->answers);
	else
		mq_answers_close(&s->answers);
	close(s->run.verbs);
	s->run.pid = 0;
	s->status = status;
	tell(x, FACT_RAN, .queue = TAILQ_FIRST(&s->hand)->queue,
	    .seconds = took);
	x->run_s = x->run_s == 0 ? took : x->run_s * 0.8 + took * 0.2;
	if (!requests_finish(&s->requests))
		end_run(s);
}

/* --- starting a run --------------------------------------------------------- */

static void
watch_run(struct slot *s)
{
	struct executor *x = s->executor;
	int64_t timeout_ms = rules_of(x->opt, s->queue)->timeout_ms;

	ev_io_init(&s->verbs_io, on_verbs, s->run.verbs, EV_READ);
	ev_timer_init(&s->timer, on_timeout, (double)timeout_ms / 1000, 0);
	ev_timer_init(&s->patience, on_patience, LISTEN_AFTER, 0);
	s->verbs_io.data = s->timer.data = s->patience.data = s;
	mq_child_watch(x->children, &s->child, s->run.pid, on_ended, s);
	ev_timer_start(x->loop, &s->patience);
	if (timeout_ms > 0)
		ev_timer_start(x->loop, &s->timer);
}

/* Starts a run of the messages in hand with n bytes as its input. */
static void
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
	s->queue = TAILQ_FIRST(&s->hand)->queue;
	slots_count(x, s->queue, 1);
	watch_run(s);
}

static void
run_make(struct slot *s)
{
	requests_init(
	    &s->requests, s->executor->duplicates, &s->answers, on_answered, s);
}

/* --- a message for each ------------------------------------------------------- */

static long
fork_room(const struct executor *x, int queue)
{
	long all = slots_idle(x) - inbox_held(x->inbox) + slots_ahead(x);
	long own = slots_idle_for(x, queue) - inbox_held_of(x->inbox, queue);

	return x->uneven && own < all ? own : all;
}

/* Starts the run of a message, or rejects the message. */
static void
start_message(struct executor *x, struct slot *s, struct message *m)
{
	const char *payload = m->envelope.payload, *why;
	size_t n = m->envelope.payload_len;

	if (x->opt->replace == NULL) {
		slot_take(s, m);
		run_begin(s, payload, n);
		return;
	}
	why = arguments_refuse(payload, n);
	if (why != NULL) {
		tell(x, FACT_REJECTED, .message = m, .text = why);
		return;
	}
	slot_take(s, m);
	/* The payload is an argument in place of the input. */
	run_begin(s, "", 0);
}

static void
fork_start(struct executor *x)
{
	struct message *m;
	struct slot *s;

	while (slots_may_start(x) && (s = slots_free_one(x)) != NULL &&
	    (m = inbox_next(x->inbox, -1)) != NULL) {
		policy_started(x->policy);
		start_message(x, s, m);
	}
}

const struct executor_table executor_fork = {
    .acks = ACKS_AT_ONCE,
    .init = slots_init,
    .make = run_make,
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
	int held =
	    free > 0 ? inbox_held_of(x->inbox, queue) : inbox_held(x->inbox);
	/* Messages that gather are held for long anyway. */
	bool gathers = x->opt->batch_wait_ms > 0 && x->opt->prefetch < 0;

	return free * x->batch - held + (gathers ? 0 : slots_ahead(x));
}

bool
executor_wants_few(const struct executor *x, int queue)
{
	/* The batch of a queue is not full, and a slot is free for it. */
	return x->opt->stream ||
	    (x->opt->batch > inbox_held_of(x->inbox, queue) &&
		slots_idle_for(x, queue) > 0);
}

/* Whether no messages come that could fill a batch. */
static bool
is_last_batch(const struct executor *x)
{
	return policy_level(x->policy) != STOP_NOT ||
	    policy_limit_reached(x->policy, inbox_held(x->inbox)) ||
	    (x->opt->drain && inbox_drained(x->inbox));
}

/* Seconds until the batch of a queue can start; below 0: no messages, or others
 * come at once. */
static double
batch_wait_s(const struct executor *x, int queue)
{
	const struct message *first = inbox_oldest_of(x->inbox, queue);
	double wait;

	if (first == NULL)
		return -1;
	if (inbox_held_of(x->inbox, queue) >= x->batch || is_last_batch(x))
		return 0;
	if (session_is_up(x->session) && !session_complains(x->session) &&
	    inbox_expects(x->inbox, queue))
		return -1;
	wait = first->since + (double)x->opt->batch_wait_ms / 1000 -
	    mq_clock_steady_s();
	return wait > 0 ? wait : 0;
}

/* The first queue whose batch can start; -1: none, and the timer is set. */
static int
next_batch_queue(struct executor *x)
{
	double first = -1, wait;
	int i;

	for (i = 0; i < x->opt->queue_count; i++) {
		wait = batch_wait_s(x, i);
		if (wait == 0)
			return i;
		if (wait > 0 && (first < 0 || wait < first))
			first = wait;
	}
	ev_timer_stop(x->loop, &x->batch_timer);
	if (first > 0) {
		ev_timer_set(&x->batch_timer, first, 0);
		ev_timer_start(x->loop, &x->batch_timer);
	}
	return -1;
}

/* Adds a message to the run, or rejects it. */
static void
add_to_run(struct slot *s, struct message *m, struct mq_buf *input)
{
	struct executor *x = s->executor;
	const char *why = message_unframable(m, x->opt->framing);

	policy_started(x->policy);
	if (why != NULL) {
		tell(x, FACT_REJECTED, .message = m, .text = why);
		return;
	}
	slot_take(s, m);
	message_frame(m, x->opt->framing, input);
}

static void
start_batch(struct slot *s, int queue)
{
	struct executor *x = s->executor;
	struct mq_buf input = {0};
	struct message *m;

	while (s->count < x->batch && (m = inbox_next(x->inbox, queue)) != NULL)
		add_to_run(s, m, &input);
	if (s->count > 0) {
		s->ones = mq_xcalloc((size_t)s->count, sizeof(*s->ones));
		run_begin(s, input.data, input.len);
	}
	mq_buf_free(&input);
}

static void
batch_start(struct executor *x)
{
	struct slot *s;
	int queue;

	while (slots_may_start(x) && (s = slots_free_one(x)) != NULL &&
	    (queue = next_batch_queue(x)) != -1)
		start_batch(s, queue);
}

static void
on_batch_time(struct ev_loop *loop, ev_timer *w, int events)
{
	struct executor *x = w->data;

	(void)loop;
	(void)events;
	tell(x, FACT_WAKE);
}

static void
batch_init(struct executor *x)
{
	slots_init(x);
	ev_timer_init(&x->batch_timer, on_batch_time, 0, 0);
	x->batch_timer.data = x;
}

const struct executor_table executor_batch = {
    .acks = ACKS_AT_REST,
    .init = batch_init,
    .make = run_make,
    .room = batch_room,
    .start = batch_start,
    .tick = run_tick,
};
