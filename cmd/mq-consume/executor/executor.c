/* What is common to the ways that messages take: slots, their hands and rests; how runs
 * are ended; what is said of long runs. */
#include "executor.h"

/* Messages claimed ahead are given back if no slot becomes free for this time. */
#define STALE_S 1.0
/* A bit less than a tick, so that a run is shown with the second one. */
#define LONG_S 0.9
/* Bytes of the last text of a command. */
#define TEXT_MAX 1024

/* --- hands ------------------------------------------------------------------ */

static void
list_if_free(struct slot *s)
{
	bool is_free = TAILQ_EMPTY(&s->hand) && !ev_is_active(&s->rest);

	if (is_free == s->is_free)
		return;
	s->is_free = is_free;
	if (is_free)
		TAILQ_INSERT_HEAD(&s->executor->free, s, free);
	else
		TAILQ_REMOVE(&s->executor->free, s, free);
}

bool
slot_take(struct slot *s, struct message *m, const char *why)
{
	policy_started(s->executor->policy);
	if (why != NULL) {
		tell(s->executor, FACT_UNFIT, .message = m, .unfit = UNFIT_RUN,
		    .text = why);
		return false;
	}
	m->slot = s;
	m->stop = MQ_STOP_NONE;
	TAILQ_INSERT_TAIL(&s->hand, m, line);
	s->count++;
	s->bytes += m->len;
	s->executor->running++;
	list_if_free(s);
	return true;
}

void
slot_release(struct slot *s, struct message *m)
{
	TAILQ_REMOVE(&s->hand, m, line);
	s->count--;
	s->bytes -= m->len;
	s->executor->running--;
	m->slot = NULL;
	m->slot_number = (int)(s - s->executor->all) + 1;
	m->ran_s = s->ran_s;
	list_if_free(s);
}

void
slot_return(struct slot *s, struct message *m)
{
	slot_release(s, m);
	policy_unstarted(s->executor->policy);
	tell(s->executor, FACT_RETURNED, .message = m);
}

void
slot_set_timer(struct slot *s, double after)
{
	if (after > 0)
		mq_timer_start(s->executor->loop, &s->timer, after);
	else
		ev_timer_stop(s->executor->loop, &s->timer);
}

void
slot_return_all(struct slot *s)
{
	while (!TAILQ_EMPTY(&s->hand))
		slot_return(s, TAILQ_LAST(&s->hand, messages));
}

/* --- room ------------------------------------------------------------------- */

bool
slots_may_start(const struct executor *x)
{
	return x->inbox->held > 0 && !x->starved &&
	    x->policy->stop < STOP_SOON && process_may_run(x->process) &&
	    x->session->state != SESSION_OPENING && policy_may_start(x->policy);
}

bool
slots_have_last(const struct executor *x)
{
	return x->policy->stop != STOP_NOT ||
	    policy_limit_reached(x->policy, x->inbox->held) ||
	    (x->opt->drain && inbox_drained(x->inbox));
}

bool
slots_return_stale(struct executor *x, bool idle)
{
	if (x->opt->prefetch >= 0 || x->inbox->held == 0 || idle ||
	    mq_clock_steady_s() - x->last_end <= STALE_S)
		return false;
	x->run_s = STALE_S;
	tell(x, FACT_GIVE_BACK);
	return true;
}

void
executor_on_time(struct ev_loop *loop, ev_timer *w, int events)
{
	const struct executor *x = w->data;

	(void)loop;
	(void)events;
	tell(x, FACT_WAKE);
}

/* --- runs ------------------------------------------------------------------- */

static void
on_rested(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)loop;
	(void)events;
	s->executor->resting--;
	list_if_free(s);
	tell(s->executor, FACT_WAKE);
}

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

	/* A pipe or socket without its other end, or a terminal that hung up. */
	if (x->opt->log_dir != NULL || poll(&out, 1, 0) != 1 ||
	    (out.revents & (POLLERR | POLLHUP)) == 0)
		return false;
	if (x->policy->stop < STOP_SOON)
		mq_say("standard output: nobody reads it any more; stopping, "
		       "and returning what fails");
	policy_stop(x->policy, STOP_SOON, MQ_EXIT_IO, 0);
	return true;
}

void
slot_ran(struct slot *s, const struct message *m, const struct mq_verdict *v)
{
	struct executor *x = s->executor;

	if (policy_ran(x->policy, m->id, v->kind == MQ_VERDICT_BROKEN))
		mq_say("%s: %s for %d messages in a row; resting, and counting "
		       "no attempts until a run ends otherwise",
		    x->process->command.path, v->how, POLICY_BROKEN);
}

void
slot_judged(struct slot *s, enum slot_success success)
{
	struct executor *x = s->executor;

	if (success == SLOT_SUCCESS)
		s->failures = 0;
	if (success != SLOT_FAILURE || ev_is_active(&s->rest) ||
	    (x->opt->rest_max_ms == 0 && !policy_is_broken(x->policy)))
		return;
	s->failures++;
	x->resting++;
	mq_timer_start(
	    x->loop, &s->rest, policy_rest_s(x->policy, s->failures));
	list_if_free(s);
}

/* --- from outside ------------------------------------------------------------ */

void
executor_kill(struct executor *x, int sig)
{
	bool pauses = sig == SIGSTOP || sig == SIGCONT;
	struct slot *s;
	int i;

	for (i = 0; i < x->made; i++) {
		s = &x->all[i];
		if (!pauses)
			requests_hurry(&s->requests);
		if (s->run.pid == 0)
			continue;
		s->killed = s->killed || !pauses;
		kill(-s->run.pid, sig);
	}
}

bool
executor_take_away(struct executor *x, struct message *m)
{
	struct slot *s = m->slot;

	if (s != NULL && s->run.pid != 0) {
		s->killed = true;
		kill(-s->run.pid, SIGKILL);
	}
	if (s == NULL && !x->opt->at_most_once) {
		TAILQ_REMOVE(&x->printer.printed, m, line);
		x->running--;
	}
	return s != NULL;
}

bool
executor_stop_run(struct executor *x, struct message *m, enum mq_stop how)
{
	struct slot *s = m->slot;
	bool *ending;

	if (s == NULL || s->run.pid == 0 ||
	    (x->opt->stream && m != TAILQ_FIRST(&s->hand)))
		return false;
	m->stop = how;
	s->killed = true;
	requests_hurry(&s->requests);
	ending = x->opt->stream ? &s->worker.terminated : &s->timed_out;
	/* Else KILL is near anyway. */
	if (*ending)
		return true;
	*ending = true;
	/* The message stays in hand even if a worker that stays has not read it: the
	 * next turn only ends its input. */
	tell(x, FACT_WAKE);
	mq_timer_start(x->loop, &s->timer, (double)x->opt->grace_ms / 1000);
	kill(-s->run.pid, SIGTERM);
	return true;
}

void
executor_describe(const struct executor *x, struct mq_buf *out)
{
	double now = mq_clock_s(CLOCK_MONOTONIC);
	struct mq_runs runs = {0};
	const char *text;
	size_t len;
	struct message *m;
	struct slot *s;
	int i;

	for (i = 0; i < x->made; i++) {
		s = &x->all[i];
		m = TAILQ_FIRST(&s->hand);
		if (m == NULL || m->lost || now - s->started < LONG_S)
			continue;
		/* Other machines know unix time. */
		if (s->started_ms == 0)
			s->started_ms = mq_clock_unix_us() / 1000 -
			    (int64_t)((now - s->started) * 1000);
		text = s->verbs.about > 0 ?
		    s->verbs.ones[s->verbs.about - 1].text :
		    s->verbs.text;
		/* Cut between two characters. */
		len = strnlen(text, TEXT_MAX);
		while (len > 0 && (text[len] & 0xc0) == 0x80)
			len--;
		runs.runs = mq_xreallocarray(
		    runs.runs, (size_t)runs.count + 1, sizeof(*runs.runs));
		runs.runs[runs.count++] =
		    (struct mq_run){.queue = mq_xstrdup(m->queue_name),
			.id = mq_xstrdup(m->id),
			.script = mq_xstrdup(x->process->command.line),
			.text = mq_xstrndup(text, len),
			.attempt = m->attempts + 1,
			.pid = s->run.pid,
			.started_ms = s->started_ms,
			.grace_ms = x->opt->grace_ms};
	}
	if (runs.count > 0)
		mq_runs_write(runs.runs, runs.count, out);
	mq_runs_free(&runs);
}

/* --- beginning and end ------------------------------------------------------ */

void
slots_count(struct executor *x, int queue, int n)
{
	x->runs[queue] += n;
	inbox_fill(x->inbox, queue,
	    x->uneven && x->runs[queue] >= rules_of(x->opt, queue)->slots);
}

void
executor_resize(struct executor *x)
{
	struct slot *s;
	int i;

	/* Messages are printed. */
	if (x->all == NULL)
		return;
	x->uneven = false;
	x->limit = rules_slots(x->opt, &x->uneven);
	x->uneven &= !x->opt->stream;
	process_allow(x->process, x->limit);
	/* The first ones are listed last, to be taken first. */
	for (i = x->limit - 1; i >= x->made; i--) {
		s = &x->all[i];
		s->executor = x;
		TAILQ_INIT(&s->hand);
		s->answers = (struct mq_answers){.loop = x->loop, .fd = -1};
		ev_timer_init(&s->rest, on_rested, 0, 0);
		s->rest.data = s;
		requests_init(&s->requests, x->duplicates, &s->answers,
		    x->table->answered, s);
		list_if_free(s);
	}
	x->made = MAX(x->made, x->limit);
	for (i = 0; i < x->opt->queue_count; i++)
		slots_count(x, i, 0);
}

void
executor_init(struct executor *x)
{
	int most = x->opt->given.slots;

	x->batch = x->opt->batch > 0 ? x->opt->batch : 1;
	TAILQ_INIT(&x->free);
	TAILQ_INIT(&x->printer.printed);
	if (x->opt->command == NULL) {
		print_init(x);
		return;
	}
	/* What is never made ready takes no memory. */
	x->all = mq_xcalloc(
	    (size_t)(most != -1 ? most : MQ_SLOTS_MAX), sizeof(*x->all));
	x->runs = mq_xcalloc((size_t)x->opt->queue_count, sizeof(*x->runs));
	executor_resize(x);
}

void
executor_free(struct executor *x)
{
	free(x->all);
	free(x->runs);
	mq_buf_free(&x->printer.out);
}
