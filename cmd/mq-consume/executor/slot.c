/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Slots: their messages and rests, and the start and end of a command in any way of running. */
#include "parts.h"

#include "mq-consume/attachments/attachments.h"
#include "mq-consume/duplicates.h"

/* If no slot becomes free for this many seconds, messages claimed ahead are given back. */
#define STALE_S 1.0

/* --- messages ----------------------------------------------------------------- */

static void
list_if_free(struct slot *s)
{
	bool is_free = s->count == 0 && !mq_timer_runs(&s->rest);

	if (is_free == s->is_free)
		return;
	s->is_free = is_free;
	if (is_free)
		TAILQ_INSERT_HEAD(&s->executor->free, s, free);
	else
		TAILQ_REMOVE(&s->executor->free, s, free);
}

void
slot_add(struct slot *s, struct message *m)
{
	m->slot = s;
	m->stop = MQ_STOP_NONE;
	TAILQ_INSERT_TAIL(&s->messages, m, line);
	s->count++;
	s->bytes += m->len;
	list_if_free(s);
}

static void
release_message(struct slot *s, struct message *m)
{
	TAILQ_REMOVE(&s->messages, m, line);
	s->count--;
	s->bytes -= m->len;
	m->slot = NULL;
	m->slot_number = (int)(s - s->executor->all) + 1;
	m->ran_s = s->ran_s;
	list_if_free(s);
}

/* Whether the end of a message that is done is told, logged or kept. */
static bool
is_heard_of(const struct options *opt, const struct message *m)
{
	const struct mq_settings *rules = rules_of(opt, m->queue);

	return opt->verbose || m->awaited || rules->keep_ms > 0 ||
	    rules->notify != NULL || opt->joblog != NULL;
}

/* A message that is simply done, as most are, needs no memory: NULL. */
static struct ending *
make_ending(const struct executor *x, const struct message *m,
    const struct mq_verdict *v, const char *errors)
{
	struct ending *e;

	if (v->kind == MQ_VERDICT_DONE && v->text[0] == '\0' &&
	    v->how[0] == '\0' && !is_heard_of(x->opt, m))
		return NULL;
	e = mq_xcalloc(1, sizeof(*e));
	e->verdict = *v;
	e->errors = mq_xstrdup(v->kind != MQ_VERDICT_DONE ? errors : "");
	e->broken = broken_runs_are_many(&x->broken_runs);
	return e;
}

void
slot_end(struct slot *s, struct message *m, const struct mq_verdict *v,
    const char *errors)
{
	struct executor *x = s->executor;
	struct ending *ending = make_ending(x, m, v, errors);

	release_message(s, m);
	hand_end(x->hand, m);
	if (ending != NULL) {
		ending->result = s->run.result;
		s->run.result = NULL;
	}
	tell(x, FACT_ENDED, .message = m, .ending = ending);
}

void
slot_break_off(struct slot *s, struct message *m, const struct mq_verdict *v,
    const char *errors)
{
	struct executor *x = s->executor;

	tell(x, FACT_BROKEN_OFF, .message = m,
	    .ending = make_ending(x, m, v, errors));
}

void
slot_return(struct slot *s, struct message *m)
{
	release_message(s, m);
	hand_put_back(s->executor->hand, m);
}

/* The newest message goes first, so that each finds its place in front of the others. */
void
slot_return_all(struct slot *s)
{
	while (!TAILQ_EMPTY(&s->messages))
		slot_return(s, TAILQ_LAST(&s->messages, messages));
}

/* --- room ------------------------------------------------------------------- */

bool
slots_may_start(const struct executor *x, const struct start_terms *terms)
{
	return terms->may && !x->starved && process_may_run(x->process) &&
	    hand_next(x->hand, -1) != NULL;
}

long
slots_idle(const struct executor *x)
{
	return x->limit - x->busy - x->resting;
}

long
slots_idle_for(const struct executor *x, int queue)
{
	long all = slots_idle(x);
	long own = rules_of(x->opt, queue)->slots - x->runs[queue];

	return x->slots_differ && own < all ? own : all;
}

void
slots_count(struct executor *x, int queue, int n)
{
	x->runs[queue] += n;
	hand_bar(x->hand, queue, BAR_FULL,
	    x->slots_differ &&
		x->runs[queue] >= rules_of(x->opt, queue)->slots);
}

bool
slots_return_stale(struct executor *x, bool idle)
{
	if (x->opt->prefetch >= 0 || idle ||
	    hand_count(x->hand, -1, MESSAGE_UNSTARTED) == 0 ||
	    mq_clock_steady_s() - x->last_end <= STALE_S)
		return false;
	x->run_s = STALE_S;
	tell(x, FACT_GIVE_BACK);
	return true;
}

void
executor_wake(void *executor)
{
	const struct executor *x = executor;

	tell(x, FACT_WAKE);
}

/* --- starting a command ------------------------------------------------------- */

static bool
is_temporary(int error)
{
	return error == EAGAIN || error == ENOMEM || error == EMFILE ||
	    error == ENFILE || error == ETXTBSY || error == ENOSPC ||
	    error == EDQUOT;
}

/* If a consumer with an end lacks descriptors for its first run, it ends: waiting would not
 * help. */
void
slot_not_started(struct slot *s, int error)
{
	struct executor *x = s->executor;
	struct message *m = TAILQ_FIRST(&s->messages);
	const char *script = x->command->path;
	bool batch = x->opt->batch > 0, first;

	if (error == E2BIG && m != NULL && !batch) {
		release_message(s, m);
		hand_end(x->hand, m);
		tell(x, FACT_TOO_LONG, .message = m,
		    .text = mq_xstrdup(x->opt->replace == NULL ?
			    "its headers are too long for the environment" :
			    "its payload and headers are too long for a "
			    "command"));
		return;
	}
	slot_return_all(s);
	first = (error == EMFILE || error == ENFILE) &&
	    options_have_end(x->opt) && hand_started(x->hand) == 0;
	if (!is_temporary(error))
		mq_say("%s: %s; stopping, %s returned", script, strerror(error),
		    batch ? "the messages are" : "the message is");
	else if (first || (!x->cannot_fork && !x->opt->quiet))
		mq_say("%s: %s%s", script, strerror(error),
		    first ? "" : "; trying again");
	x->starved = x->cannot_fork = true;
	if (!first && is_temporary(error))
		return;
	x->stopping = true;
	tell(
	    x, FACT_MUST_END, .status = first ? MQ_EXIT_AGAIN : MQ_EXIT_CONFIG);
}

/* Asks for a duplicate of message `which` of the run: see on_dup in message/verdict.h. */
static void
ask_duplicate(void *arg, int which, const char *text)
{
	struct slot *s = arg;
	const struct message *first = TAILQ_FIRST(&s->messages), *m = first;
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
	/* An unread message may go back, and end elsewhere, before the request is answered. */
	if (s->executor->opt->stream && first != NULL &&
	    first->start >= s->worker.input.read) {
		wrong = "the worker has not read the message";
		m = NULL;
	}
	requests_ask(s->requests, m, wrong, text);
}

/* Returns 0, or an errno. */
static int
start_command(struct slot *s, int input)
{
	struct executor *x = s->executor;
	const struct options *opt = x->opt;
	struct message *m = TAILQ_FIRST(&s->messages);
	struct run_info info = {
	    .message = m, .batch = opt->batch > 0 ? s->count : 0};
	struct attached files = {.server = x->server, .layout = opt->layout};
	char *dir = NULL;
	int error = 0, answers;

	if (m != NULL && x->way.files)
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
	if (dir == NULL)
		return error;
	if (!x->cannot_fork)
		mq_say("%s: %s", dir, strerror(error));
	free(dir);
	return is_temporary(error) ? error : ENOTDIR;
}

bool
slot_start(struct slot *s, int input)
{
	struct executor *x = s->executor;
	int error;

	s->killed = s->timed_out = false;
	mq_verbs_begin(&s->verbs);
	s->verbs.on_dup = ask_duplicate;
	s->verbs.arg = s;
	s->started = s->born = mq_clock_s(CLOCK_MONOTONIC);
	s->started_ms = 0;
	error = start_command(s, input);
	if (error != 0) {
		slot_not_started(s, error);
		return false;
	}
	x->cannot_fork = false;
	x->busy++;
	ev_io_init(&s->verbs_io, x->table->on_verbs, s->run.verbs, EV_READ);
	s->verbs_io.data = s;
	mq_child_watch(
	    x->children, &s->child, s->run.pid, x->table->on_ended, s);
	return true;
}

void
slot_listen(struct slot *s)
{
	ev_io_start(s->executor->loop, &s->verbs_io);
	run_output_listen(s->run.output);
}

void
slot_set_timer(struct slot *s, double after)
{
	if (after > 0)
		mq_timer_start(&s->timer, after, 0);
	else
		mq_timer_stop(&s->timer);
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
	errors = run_output_close(s->run.output, s->status, how);
	s->run.output = NULL;
	return errors;
}

/* --- judging ------------------------------------------------------------------ */

enum slot_success
slot_success_of(enum mq_verdict_kind kind)
{
	if (kind == MQ_VERDICT_DONE || kind == MQ_VERDICT_PUSH)
		return SLOT_SUCCESS;
	return kind == MQ_VERDICT_ERR || kind == MQ_VERDICT_RETRY ||
		kind == MQ_VERDICT_BROKEN ?
	    SLOT_FAILURE :
	    SLOT_NEITHER;
}

bool
executor_unread(struct executor *x)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	/* Standard output is a pipe or socket without its other end, or a terminal that hung
	 * up. */
	if (x->opt->log_dir != NULL || poll(&out, 1, 0) != 1 ||
	    (out.revents & (POLLERR | POLLHUP)) == 0)
		return false;
	x->stopping = true;
	tell(x, FACT_UNREAD, .status = MQ_EXIT_IO);
	return true;
}

void
slot_ran(struct slot *s, const struct message *m, const struct mq_verdict *v)
{
	struct executor *x = s->executor;

	if (broken_runs_add(
		&x->broken_runs, m->id, v->kind == MQ_VERDICT_BROKEN))
		mq_say("%s: %s for %d messages in a row; resting, and counting "
		       "no attempts until a run ends otherwise",
		    x->command->path, v->how, BROKEN_RUNS);
}

void
slot_judged(struct slot *s, enum slot_success success)
{
	struct executor *x = s->executor;

	if (success == SLOT_SUCCESS)
		s->failures = 0;
	if (success != SLOT_FAILURE || mq_timer_runs(&s->rest) ||
	    (x->opt->rest_max_ms == 0 &&
		!broken_runs_are_many(&x->broken_runs)))
		return;
	s->failures++;
	x->resting++;
	mq_timer_start(&s->rest, rest_s(x->opt, s->failures), 0);
	list_if_free(s);
}

/* --- beginning ---------------------------------------------------------------- */

static void
on_rested(void *slot)
{
	struct slot *s = slot;

	s->executor->resting--;
	list_if_free(s);
	tell(s->executor, FACT_WAKE);
}

/* Most runs are over before their patience: that saves the system calls. */
static void
on_patience(void *slot)
{
	slot_listen(slot);
}

void
slot_init(struct slot *s, struct executor *x, int number)
{
	s->executor = x;
	TAILQ_INIT(&s->messages);
	s->answers = (struct mq_answers){.loop = x->loop, .fd = -1};
	s->requests = requests_new(x->duplicates, &s->answers, number);
	mq_timer_init(&s->rest, x->loop, on_rested, s);
	mq_timer_init(&s->timer, x->loop, x->table->on_timeout, s);
	mq_timer_init(&s->patience, x->loop, on_patience, s);
	mq_timer_init(&s->restart, x->loop, executor_wake, x);
	list_if_free(s);
}
