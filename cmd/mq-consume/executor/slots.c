#include "executor.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "mq-consume/rules.h"

/* Without --prefetch: as many messages as the slots finish in this time. */
#define AHEAD_S	  0.1
#define AHEAD_MAX 100
/* In messages; at least one batch. */
#define AHEAD_MESSAGES 1000
/* Messages claimed ahead are given back if no slot becomes free for this time. */
#define STALE_S 1.0

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
	tell(s->slots, FACT_RETURNED, .message = m);
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
		wrong = "message number missing: dup #N ...";
	else if (m == NULL)
		wrong = "no message has that number";
	if (m == NULL)
		m = slot_message(s);
	requests_ask(&s->requests, m, wrong, text);
}

/* --- room ------------------------------------------------------------------- */

struct slot *
slots_free_one(const struct slots *ss)
{
	return slots_idle(ss) > 0 ? TAILQ_FIRST(&ss->free) : NULL;
}

bool
slots_may_start(const struct slots *ss)
{
	return inbox_held(ss->inbox) > 0 && !ss->starved &&
	    policy_level(ss->policy) < STOP_SOON &&
	    process_may_run(ss->process) && !session_is_opening(ss->session) &&
	    policy_may_start(ss->policy);
}

long
slots_idle(const struct slots *ss)
{
	return ss->limit - ss->busy - ss->resting;
}

long
slots_idle_for(const struct slots *ss, int queue)
{
	long all = slots_idle(ss);
	long own = rules_of(ss->opt, queue)->slots - ss->runs[queue];

	return ss->uneven && own < all ? own : all;
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
	if (ss->run_s == 0 || rules_share_rate(ss->opt))
		return 0;
	runs = ss->limit * AHEAD_S / ss->run_s;
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
	tell(ss, FACT_GIVE_BACK);
	return true;
}

void
slots_stand_alone(struct slots *ss)
{
	if (inbox_held(ss->inbox) > (slots_idle(ss) - 1) * ss->batch)
		tell(ss, FACT_GIVE_BACK, .yes = true);
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
	tell(s->slots, FACT_WAKE);
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

void
slot_ran(struct slot *s, const struct message *m, const struct mq_verdict *v)
{
	struct slots *ss = s->slots;

	if (policy_ran(ss->policy, m->id, v->kind == MQ_VERDICT_BROKEN))
		mq_say("%s: %s for %d messages in a row; resting, and counting "
		       "no attempts until a run ends otherwise",
		    process_script(ss->process), v->how, POLICY_BROKEN);
}

void
slot_judged(struct slot *s, enum slot_success success)
{
	struct slots *ss = s->slots;

	if (success == SLOT_SUCCESS)
		s->failures = 0;
	if (success != SLOT_FAILURE || ev_is_active(&s->rest) ||
	    (ss->opt->rest_max_ms == 0 && !policy_is_broken(ss->policy)))
		return;
	s->failures++;
	ss->resting++;
	ev_timer_set(&s->rest, policy_rest_s(ss->policy, s->failures), 0);
	ev_timer_start(ss->loop, &s->rest);
	list_if_free(s);
}

/* --- for the tables of executors -------------------------------------------- */

void
slots_kill(struct slots *ss, int sig)
{
	bool pauses = sig == SIGSTOP || sig == SIGCONT;
	struct slot *s;
	int i;

	for (i = 0; i < ss->made; i++) {
		s = &ss->all[i];
		if (!pauses)
			requests_hurry(&s->requests);
		if (s->pid == 0)
			continue;
		s->killed = s->killed || !pauses;
		kill(-s->pid, sig);
	}
}

void
slots_take_away(struct message *m)
{
	if (m->slot->pid != 0) {
		m->slot->killed = true;
		kill(-m->slot->pid, SIGKILL);
	}
}

/* --- beginning and end ------------------------------------------------------ */

static void
on_flow(void *arg)
{
	const struct slots *ss = arg;

	tell(ss, FACT_WAKE);
}

/* The first ones are listed last, to be taken first. */
static void
make_slots(struct slots *ss, int n)
{
	struct slot *s;
	int i;

	for (i = n - 1; i >= ss->made; i--) {
		s = &ss->all[i];
		s->slots = ss;
		TAILQ_INIT(&s->hand);
		s->worker.input.fd = s->worker.input.other = -1;
		ev_timer_init(&s->rest, on_rested, 0, 0);
		s->rest.data = s;
		ss->make(s);
		list_if_free(s);
	}
	if (n > ss->made)
		ss->made = n;
}

static void
count_full(struct slots *ss, int queue)
{
	inbox_fill(ss->inbox, queue,
	    ss->uneven && ss->runs[queue] >= rules_of(ss->opt, queue)->slots);
}

void
slots_count(struct slots *ss, int queue, int n)
{
	ss->runs[queue] += n;
	count_full(ss, queue);
}

void
slots_resize(struct slots *ss)
{
	int i;

	ss->limit = rules_slots(ss->opt);
	ss->uneven = !ss->opt->stream && rules_differ(ss->opt);
	process_allow(ss->process, ss->limit);
	make_slots(ss, ss->limit);
	for (i = 0; i < ss->opt->queue_count; i++)
		count_full(ss, i);
}

void
slots_init(struct slots *ss, void (*make)(struct slot *))
{
	int most = ss->opt->given.slots;

	/* What is never made ready takes no memory. */
	ss->all = mq_xcalloc(
	    (size_t)(most != -1 ? most : MQ_SLOTS_MAX), sizeof(*ss->all));
	ss->runs = mq_xcalloc((size_t)ss->opt->queue_count, sizeof(*ss->runs));
	ss->make = make;
	TAILQ_INIT(&ss->free);
	process_on_flow(ss->process, on_flow, ss);
	slots_resize(ss);
}

void
slots_free(struct slots *ss)
{
	free(ss->all);
	free(ss->runs);
}
