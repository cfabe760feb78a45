/*
 * Events of the executor and policy.
 */
#include <signal.h>

#include "base/say.h"
#include "engine-parts.h"

/* --- executor --------------------------------------------------------------- */

static const char *
outcome_word(enum mq_outcome outcome)
{
	switch (outcome) {
	case MQ_OUTCOME_ACK:
		return "done";
	case MQ_OUTCOME_PUSH:
		return "pushed";
	case MQ_OUTCOME_AGAIN:
		return "retried";
	case MQ_OUTCOME_REJECT:
		return "rejected";
	case MQ_OUTCOME_FRONT:
		break;
	}
	return "returned";
}

static void
log_run(struct engine *e, const struct message *m, const struct mq_verdict *v,
    const char *errors, const char *verdict)
{
	char reason[MQ_ERROR_MAX + 1];
	struct job job = {.queue = m->queue_name,
	    .id = m->id,
	    .verdict = verdict,
	    .text = v->text,
	    .attempt = m->attempts + 1,
	    .slot = m->slot_number,
	    .seconds = m->ran_s,
	    .status = v->status};

	if (e->opt->joblog == NULL)
		return;
	if (v->kind != MQ_VERDICT_DONE) {
		mq_verdict_reason(v, errors, reason, sizeof(reason));
		job.text = reason;
	}
	joblog_write(&e->joblog, &job);
}

static void
on_ended(void *arg, struct message *m, const struct mq_verdict *v,
    const char *errors)
{
	struct engine *e = arg;
	enum mq_outcome outcome;

	if (m->lost) {
		log_run(e, m, v, errors, "lost");
		inbox_forget(&e->inbox, m);
		return;
	}
	e->verdicts.broken = policy_is_broken(&e->policy);
	outcome = verdict_outcome(
	    &e->verdicts, m, v, errors, inbox_tick(&e->inbox, m->queue));
	log_run(e, m, v, errors, outcome_word(outcome));
	if (outcome == MQ_OUTCOME_ACK || outcome == MQ_OUTCOME_PUSH)
		process_remove_dir(&e->process, m->id);
	engine_settle(e, m, outcome);
}

static void
on_broken_off(void *arg, struct message *m, const struct mq_verdict *v,
    const char *errors)
{
	log_run(arg, m, v, errors, outcome_word(MQ_OUTCOME_FRONT));
}

static void
on_done(void *arg, struct message *m)
{
	engine_settle(arg, m, MQ_OUTCOME_ACK);
}

static void
on_returned(void *arg, struct message *m)
{
	struct engine *e = arg;

	if (m->lost || m->gone)
		inbox_forget(&e->inbox, m);
	else
		inbox_return(&e->inbox, m);
}

static void
on_rejected(void *arg, struct message *m, const char *reason)
{
	struct engine *e = arg;

	engine_settle(e, m, verdict_reject(&e->verdicts, m, reason));
}

static void
on_judging(void *arg)
{
	struct engine *e = arg;

	(void)session_holds_lease(&e->session);
}

static void
on_ran(void *arg, int queue, double seconds)
{
	struct engine *e = arg;

	counters_ran(&e->counters, queue, seconds);
}

static void
on_give_back(void *arg, bool at_once)
{
	struct engine *e = arg;
	struct message *m;
	int i;

	for (i = 0; i < e->opt->queue_count; i++) {
		while (at_once && (m = inbox_take_newest(&e->inbox, i)) != NULL)
			engine_settle(e, m, MQ_OUTCOME_FRONT);
		engine_give_back(e, i);
	}
	session_flush(&e->session);
}

static bool
is_awaited(void *arg, const struct message *m)
{
	struct engine *e = arg;

	return result_wanted(&e->results, m);
}

static bool
expects_more(void *arg, int queue)
{
	struct engine *e = arg;

	return session_is_up(&e->session) && !session_complains(&e->session) &&
	    inbox_expects(&e->inbox, queue);
}

static bool
is_drained(void *arg)
{
	struct engine *e = arg;

	return inbox_drained(&e->inbox);
}

static bool
is_ready(void *arg)
{
	struct engine *e = arg;

	return !session_is_opening(&e->session);
}

const struct slots_events engine_slots_events = {
    .ended = on_ended,
    .broken_off = on_broken_off,
    .returned = on_returned,
    .rejected = on_rejected,
    .judging = on_judging,
    .ran = on_ran,
    .give_back = on_give_back,
    .awaited = is_awaited,
    .expects = expects_more,
    .drained = is_drained,
    .ready = is_ready,
    .wake = engine_mark,
};

static bool
is_settling(void *arg)
{
	struct engine *e = arg;

	return outbox_settling(&e->outbox) > 0;
}

static void
on_flush(void *arg)
{
	struct engine *e = arg;

	outbox_flush(&e->outbox);
}

const struct printer_events engine_printer_events = {
    .done = on_done,
    .returned = on_returned,
    .judging = on_judging,
    .settling = is_settling,
    .flush = on_flush,
    .wake = engine_mark,
};

/* --- policy ----------------------------------------------------------------- */

static void
on_asked(void *arg)
{
	const struct engine *e = arg;
	int running = executor_running(&e->executor);

	if (running > 0 && e->executor.table->runs && !e->opt->quiet)
		mq_say("stopping; waiting for %d running %s", running,
		    running == 1 ? "message" : "messages");
}

static void
on_stop(void *arg, enum stop_level level)
{
	struct engine *e = arg;

	if (level >= STOP_SOON)
		service_stop(e->service);
	if (level == STOP_SOON)
		executor_stop(&e->executor);
	engine_mark(e);
}

static bool
on_kill(void *arg, int sig)
{
	struct engine *e = arg;

	executor_kill(&e->executor, sig);
	return executor_busy(&e->executor) > 0;
}

static void
on_give_up(void *arg)
{
	struct engine *e = arg;
	int left = engine_in_hand(e);

	if (e->ending)
		return;
	if (left == 0)
		mq_say("%s: connection not removed from the server; mq-clean "
		       "removes it",
		    session_name(&e->session));
	else
		mq_say("%d message%s could not be settled; %s unacked at %s "
		       "until it is cleaned up",
		    left, left == 1 ? "" : "s",
		    left == 1 ? "it stays" : "they stay",
		    session_name(&e->session));
	engine_end(e);
}

/* A cron job may end before the first tick.  So idle also means that the last
 * claims found nothing and that dead connections have been cleaned up. */
static bool
is_idle(void *arg)
{
	struct engine *e = arg;

	return engine_has_nothing(e) && inbox_drained(&e->inbox) &&
	    session_is_up(&e->session) && cleaning_is_over(&e->cleaning);
}

static void
on_reopen_logs(void *arg)
{
	struct engine *e = arg;

	process_open_logs(&e->process);
	joblog_reopen(&e->joblog);
}

/* The commands go on only under the lease, which may have lapsed. */
static void
on_suspend(void *arg, bool stops)
{
	struct engine *e = arg;

	if (stops)
		executor_kill(&e->executor, SIGSTOP);
	else if (session_holds_lease(&e->session))
		executor_kill(&e->executor, SIGCONT);
}

const struct policy_events engine_policy_events = {
    .wake = engine_mark,
    .asked = on_asked,
    .stop = on_stop,
    .kill = on_kill,
    .give_up = on_give_up,
    .idle = is_idle,
    .reopen_logs = on_reopen_logs,
    .suspend = on_suspend,
};
