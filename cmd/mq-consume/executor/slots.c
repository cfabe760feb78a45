#include "slots.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "queue/running.h"

/* Without --prefetch: as many messages as the slots finish in this time. */
#define AHEAD_S	  0.1
#define AHEAD_MAX 100
/* In messages; at least one batch. */
#define AHEAD_MESSAGES 1000
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
		TAILQ_INSERT_HEAD(&s->slots->free, s, free);
	else
		TAILQ_REMOVE(&s->slots->free, s, free);
}

struct message *
slot_message(const struct slot *s)
{
	return TAILQ_FIRST(&s->hand);
}

void
slot_take(struct slot *s, struct message *m)
{
	m->slot = s;
	TAILQ_INSERT_TAIL(&s->hand, m, line);
	s->count++;
	s->bytes += m->len;
	s->slots->running++;
	list_if_free(s);
}

void
slot_release(struct slot *s, struct message *m)
{
	TAILQ_REMOVE(&s->hand, m, line);
	s->count--;
	s->bytes -= m->len;
	s->slots->running--;
	m->slot = NULL;
	m->slot_number = (int)(s - s->slots->all) + 1;
	m->ran_s = s->ran_s;
	list_if_free(s);
}

void
slot_return_last(struct slot *s)
{
	struct message *m = TAILQ_LAST(&s->hand, messages);

	slot_release(s, m);
	policy_unstarted(s->slots->policy);
	s->slots->events->returned(s->slots->arg, m);
}

void
slot_return_all(struct slot *s)
{
	while (!TAILQ_EMPTY(&s->hand))
		slot_return_last(s);
}

static const struct message *
message_at(const struct slot *s, int which)
{
	const struct message *m = TAILQ_FIRST(&s->hand);

	for (; which > 0 && m != NULL; which--)
		m = TAILQ_NEXT(m, line);
	return m;
}

void
slot_ask_duplicate(void *arg, int which, const char *text)
{
	struct slot *s = arg;
	const struct message *m = message_at(s, which);
	const char *wrong = NULL;

	if (which == -1 && s->ones != NULL && s->count > 1)
		wrong = "which message? say its number: dup #N ...";
	else if (m == NULL)
		wrong = "there is no message of that number";
	if (m == NULL)
		m = slot_message(s);
	requests_ask(&s->requests, m, wrong, text);
}

/* --- room ------------------------------------------------------------------- */

struct slot *
slots_free_one(const struct slots *ss)
{
	return TAILQ_FIRST(&ss->free);
}

bool
slots_may_start(const struct slots *ss)
{
	return inbox_held(ss->inbox) > 0 && !ss->starved &&
	    policy_level(ss->policy) < STOP_SOON &&
	    process_may_run(ss->process) && ss->events->ready(ss->arg) &&
	    policy_may_start(ss->policy);
}

long
slots_idle(const struct slots *ss)
{
	return ss->opt->slots - ss->busy - ss->resting;
}

int
slots_ahead(const struct slots *ss)
{
	int batch = ss->batch, most;
	double runs;

	if (policy_is_alone(ss->policy))
		return 0;
	if (ss->opt->prefetch >= 0)
		return ss->opt->prefetch;
	if (ss->run_s == 0 || ss->opt->rate_shared.per_s > 0)
		return 0;
	runs = ss->opt->slots * AHEAD_S / ss->run_s;
	most = batch > AHEAD_MESSAGES ? 1 : AHEAD_MESSAGES / batch;
	if (most > AHEAD_MAX)
		most = AHEAD_MAX;
	return (runs < most ? (int)runs : most) * batch;
}

bool
slots_return_stale(struct slots *ss, bool idle)
{
	if (ss->opt->prefetch >= 0 || inbox_held(ss->inbox) == 0 || idle ||
	    mq_clock_steady_s() - ss->last_end <= STALE_S)
		return false;
	ss->run_s = STALE_S;
	ss->events->give_back(ss->arg, false);
	return true;
}

void
slots_stand_alone(struct slots *ss)
{
	if (inbox_held(ss->inbox) > (slots_idle(ss) - 1) * ss->batch)
		ss->events->give_back(ss->arg, true);
}

/* --- runs ------------------------------------------------------------------- */

void
slot_ended(struct slot *s, int status, bool alone)
{
	ev_io_stop(s->slots->loop, &s->verbs_io);
	ev_timer_stop(s->slots->loop, &s->timer);
	ev_timer_stop(s->slots->loop, &s->patience);
	requests_close(&s->requests, alone);
	close(s->verbs_fd);
	s->pid = 0;
	s->status = status;
}

static void
on_rested(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)loop;
	(void)events;
	s->slots->resting--;
	list_if_free(s);
	s->slots->events->wake(s->slots->arg);
}

enum slot_success
slot_success_of(enum mq_verdict_kind kind)
{
	if (kind == MQ_VERDICT_DONE || kind == MQ_VERDICT_PUSH)
		return SLOT_SUCCESS;
	return kind == MQ_VERDICT_ERR || kind == MQ_VERDICT_RETRY ?
	    SLOT_FAILURE :
	    SLOT_NEITHER;
}

void
slot_judged(struct slot *s, enum slot_success success)
{
	struct slots *ss = s->slots;

	if (success == SLOT_SUCCESS)
		s->failures = 0;
	if (success != SLOT_FAILURE || ss->opt->rest_max_ms == 0 ||
	    ev_is_active(&s->rest))
		return;
	s->failures++;
	ss->resting++;
	ev_timer_set(&s->rest, policy_rest_s(ss->policy, s->failures), 0);
	ev_timer_start(ss->loop, &s->rest);
	list_if_free(s);
}

/* --- for the tables of executors -------------------------------------------- */

int
slots_running(const void *slots)
{
	return ((const struct slots *)slots)->running;
}

int
slots_busy(const void *slots)
{
	return ((const struct slots *)slots)->busy;
}

bool
slots_all_rest(const void *slots)
{
	const struct slots *ss = slots;

	return ss->resting == ss->opt->slots;
}

void
slots_kill(void *slots, int sig)
{
	struct slots *ss = slots;
	struct slot *s;
	int i;

	for (i = 0; i < ss->opt->slots; i++) {
		s = &ss->all[i];
		requests_hurry(&s->requests);
		if (s->pid == 0)
			continue;
		s->killed = true;
		kill(-s->pid, sig);
	}
}

bool
slots_take_away(void *slots, struct message *m)
{
	(void)slots;
	if (m->slot->pid != 0) {
		m->slot->killed = true;
		kill(-m->slot->pid, SIGKILL);
	}
	return true;
}

/* --- long runs -------------------------------------------------------------- */

static bool
runs_long(const struct slot *s, double now)
{
	const struct message *m = slot_message(s);

	return m != NULL && !m->lost && now - s->started >= LONG_S;
}

/* The start in unix time, which other machines know. */
static int64_t
unix_start_ms(struct slot *s, double now)
{
	if (s->started_ms == 0)
		s->started_ms = mq_clock_unix_us() / 1000 -
		    (int64_t)((now - s->started) * 1000);
	return s->started_ms;
}

/* The beginning of a text, cut between two characters. */
static char *
copy_text(const char *text)
{
	size_t n = strnlen(text, TEXT_MAX + 1);

	if (n > TEXT_MAX)
		for (n = TEXT_MAX; n > 0 && (text[n] & 0xc0) == 0x80;)
			n--;
	return mq_xstrndup(text, n);
}

/* The strings but text are borrowed. */
static struct mq_run
describe_run(struct slot *s, double now)
{
	struct message *m = slot_message(s);

	return (struct mq_run){.queue = (char *)(uintptr_t)m->queue_name,
	    .id = m->id,
	    .script = (char *)(uintptr_t)process_command(s->slots->process),
	    .text = copy_text(mq_verbs_text(&s->verbs)),
	    .attempt = m->attempts + 1,
	    .pid = s->pid,
	    .started_ms = unix_start_ms(s, now)};
}

void
slots_describe(const void *slots, struct mq_buf *out)
{
	const struct slots *ss = slots;
	double now = mq_clock_s(CLOCK_MONOTONIC);
	struct mq_run *runs = NULL;
	int i, n = 0;

	for (i = 0; i < ss->opt->slots; i++) {
		if (!runs_long(&ss->all[i], now))
			continue;
		if (runs == NULL)
			runs =
			    mq_xcalloc((size_t)ss->opt->slots, sizeof(*runs));
		runs[n++] = describe_run(&ss->all[i], now);
	}
	if (n > 0)
		mq_runs_write(runs, n, out);
	while (n > 0)
		free(runs[--n].text);
	free(runs);
}

static void
on_flow(void *arg)
{
	const struct slots *ss = arg;

	ss->events->wake(ss->arg);
}

/* --- beginning and end ------------------------------------------------------ */

void
slots_init(struct slots *ss)
{
	struct slot *s;
	int i;

	ss->all = mq_xcalloc((size_t)ss->opt->slots, sizeof(*ss->all));
	TAILQ_INIT(&ss->free);
	process_on_flow(ss->process, on_flow, ss);
	for (i = ss->opt->slots - 1; i >= 0; i--) {
		s = &ss->all[i];
		s->slots = ss;
		TAILQ_INIT(&s->hand);
		s->worker.input.fd = s->worker.input.other = -1;
		ev_timer_init(&s->rest, on_rested, 0, 0);
		s->rest.data = s;
		list_if_free(s);
	}
}

void
slots_free(struct slots *ss)
{
	free(ss->all);
}
