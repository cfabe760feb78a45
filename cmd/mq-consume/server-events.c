/*
 * Events of the session.
 */
#include <signal.h>

#include "base/clock.h"
#include "base/exit.h"
#include "engine-parts.h"

/* How long --drain and --limit wait for room on a disk. */
#define ROOM_S 60.0

static void
report_service(struct engine *e, bool up)
{
	const struct mq_counts sum = engine_totals(e);

	service_report(e->service, up, executor_running(&e->executor), &sum);
}

static void
on_up(void *arg)
{
	struct engine *e = arg;

	outbox_send_again(&e->outbox);
	running_report_lost(&e->running);
	duplicates_resume(&e->duplicates);
	inbox_look(&e->inbox, true);
	report_service(e, true);
}

static void
on_down(void *arg)
{
	struct engine *e = arg;

	inbox_down(&e->inbox);
	engine_mark(e);
}

/* The outcome of the message does not count any more. */
static void
lose_message(struct engine *e, struct message *m)
{
	mq_consumer_lapsed(session_server(&e->session), m->queue, m->element,
	    m->len, m->attempts);
	if (m->state != MESSAGE_HELD)
		outbox_lose(
		    &e->outbox, m, "lease lost: others may get the message");
	m->lost = true;
	if (m->state == MESSAGE_RUNNING && executor_take_away(&e->executor, m))
		return;
	if (m->state == MESSAGE_SETTLING && m->in_flight)
		return;
	if (m->state == MESSAGE_SETTLING)
		outbox_forget(&e->outbox, m);
	inbox_forget(&e->inbox, m);
}

static void
on_lost(void *arg)
{
	struct engine *e = arg;
	struct message *m, *next;

	for (m = inbox_first(&e->inbox); m != NULL; m = next) {
		next = TAILQ_NEXT(m, link);
		if (!m->lost)
			lose_message(e, m);
	}
	executor_kill(&e->executor, SIGKILL);
	inbox_renamed(&e->inbox);
	cleaning_soon(&e->cleaning);
}

static void
on_held(void *arg, int queue, struct mq_held *held)
{
	struct engine *e = arg;

	comparison_held(&e->comparison, queue, held);
}

static void
on_settings(void *arg, int queue, struct mq_setting_texts *texts)
{
	struct engine *e = arg;

	if (!rules_take(e->opt, queue, texts))
		return;
	executor_resize(&e->executor);
	if (e->executor.table->runs)
		session_tell_slots(
		    &e->session, rules_slots(e->opt) * e->slots.batch);
	inbox_look(&e->inbox, true);
}

static void
on_changed(void *arg, const char *key, size_t n)
{
	struct engine *e = arg;
	int own = key == NULL ? -1 : inbox_queue_of(&e->inbox, key, n), i;

	for (i = 0; i < e->opt->queue_count && key == NULL; i++)
		session_ask_settings(&e->session, i);
	if (own != -1 && mq_settings_are_in(key, n))
		session_ask_settings(&e->session, own);
	inbox_changed(&e->inbox, key, n);
}

static void
on_called(void *arg, const char *key, size_t n)
{
	struct engine *e = arg;

	inbox_called(&e->inbox, key, n);
}

static bool
has_message(void *arg, int queue)
{
	struct engine *e = arg;

	return queue == -1 ? !inbox_empty(&e->inbox) :
			     inbox_first_of(&e->inbox, queue) != NULL;
}

/* Whether --drain is not over although there is nothing to do. */
static bool
waits_for_others(const struct engine *e)
{
	return e->opt->drain && engine_has_nothing(e) &&
	    inbox_drained(&e->inbox);
}

/* A consumer that is to end waits a minute for room on the server's disk.  What finds
 * none stays unacked, and goes back when the lease is over. */
static void
check_room(struct engine *e)
{
	if (!e->lacks_room)
		e->lacks_since = 0;
	e->lacks_room = false;
	if (e->lacks_since == 0 ||
	    mq_clock_steady_s() - e->lacks_since < ROOM_S ||
	    (!e->opt->drain && e->opt->limit == 0))
		return;
	if (policy_level(&e->policy) < STOP_SOON)
		policy_stop(&e->policy, STOP_SOON, MQ_EXIT_AGAIN, 0);
	else if (executor_running(&e->executor) == 0)
		engine_end(e);
}

static void
on_tick(void *arg, bool up)
{
	struct engine *e = arg;
	struct mq_buf runs = {0};

	mq_children_reap_others(&e->children);
	report_service(e, up);
	if (!up || e->ending)
		return;
	comparison_tick(&e->comparison, e->opt->queue_count,
	    session_is_renewing(&e->session));
	check_room(e);
	outbox_send_again(&e->outbox);
	executor_tick(&e->executor);
	inbox_look_around(&e->inbox, session_is_renewing(&e->session));
	executor_describe(&e->executor, &runs);
	running_report_send(&e->running, &runs);
	counters_send(&e->counters);
	cleaning_tick(&e->cleaning);
	transfers_tick(&e->transfers);
	survey_tick(&e->survey, bar_wanted(&e->bar), waits_for_others(e));
}

static void
on_failed(void *arg, int status)
{
	struct engine *e = arg;

	service_stop(e->service);
	policy_fail(&e->policy, status);
	executor_kill(&e->executor, SIGKILL);
	engine_end(e);
}

const struct session_events engine_session_events = {
    .up = on_up,
    .down = on_down,
    .lost = on_lost,
    .settings = on_settings,
    .held = on_held,
    .changed = on_changed,
    .called = on_called,
    .has = has_message,
    .tick = on_tick,
    .left = engine_end,
    .failed = on_failed,
};
