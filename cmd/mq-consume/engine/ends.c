/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The end of the consumer: stop levels, limits, errors, and messages left behind. */
#include "parts.h"

/* Seconds that --drain and --limit wait for room on the server's disk. */
#define ROOM_S 60.0

void
ends_now(struct engine *e)
{
	e->ending = true;
	ev_break(e->loop, EVBREAK_ALL);
}

static void
give_up(struct engine *e)
{
	const char *name = e->consumer->session.connection;
	int left = hand_size(e->hand, -1);

	if (e->ending)
		return;
	if (left == 0)
		mq_say("%s: connection not removed from the server; mq-clean "
		       "removes it",
		    name);
	else
		mq_say("%d message%s could not be settled; %s unacked at %s "
		       "until it is cleaned up",
		    left, left == 1 ? "" : "s",
		    left == 1 ? "it stays" : "they stay", name);
	ends_now(e);
}

static void
leave(struct engine *e)
{
	e->ending = true;
	service_stop(e->service);
	if (session_is_up(e->session)) {
		inbox_pass(e->inbox);
		counters_send(e->outbox);
		jobs_resign(e->jobs);
	}
	session_leave(e->session);
}

void
ends_check(struct engine *e)
{
	bool killed = policy_has_killed(e->policy);

	if (!engine_has_nothing(e))
		return;
	/* A join under way may still register our name, which nobody else removes. */
	if (session_may_be_known(e->session) && !killed)
		return;
	if (policy_level(e->policy) >= STOP_SOON ||
	    policy_limit_reached(e->policy, 0)) {
		/* Stream workers end before the connection leaves. */
		if (executor_busy(e->executor) > 0)
			policy_stop(e->policy, STOP_SOON, 0, 0);
		else
			leave(e);
	} else if (e->opt->drain && session_is_up(e->session) &&
	    (inbox_drained(e->inbox) || !policy_may_start(e->policy) ||
		executor_rests(e->executor))) {
		jobs_drain(e->jobs);
	}
}

/* --- room ---------------------------------------------------------------------- */

/* The text changes with the free bytes, so only the first one is said. */
void
ends_lack(struct engine *e, const char *why)
{
	if (!session_complains(e->session))
		session_complain(e->session, why);
	e->lacks_room = true;
	if (e->lacks_since == 0)
		e->lacks_since = mq_clock_steady_s();
}

/* If --drain or --limit finds no room on the server's disk for a minute, the consumer ends.  Its
 * messages stay unacked, and go back when the lease is over. */
void
ends_check_room(struct engine *e)
{
	bool full;

	if (!e->lacks_room)
		e->lacks_since = 0;
	e->lacks_room = false;
	full = (e->opt->drain || e->opt->limit > 0) && e->lacks_since != 0 &&
	    mq_clock_steady_s() - e->lacks_since >= ROOM_S;
	if (full && policy_level(e->policy) < STOP_SOON)
		policy_stop(e->policy, STOP_SOON, MQ_EXIT_AGAIN, 0);
	else if (full && hand_count(e->hand, -1, MESSAGE_RUNNING) == 0)
		ends_now(e);
}

/* --- facts --------------------------------------------------------------------- */

static void
note_stop(struct engine *e, const struct fact *f)
{
	enum stop_level level = policy_level(e->policy);
	int running = hand_count(e->hand, -1, MESSAGE_RUNNING);

	if (f->yes && level == STOP_SOON && running > 0 &&
	    executor_busy(e->executor) > 0 && !e->opt->quiet)
		mq_say("stopping; waiting for %d running %s", running,
		    running == 1 ? "message" : "messages");
	if (level < STOP_SOON)
		return;
	service_stop(e->service);
	executor_stop(e->executor);
}

/* Commands go on only under the lease.  If the lease has lapsed meanwhile, they are killed while
 * still stopped, and the rest of this turn finds nothing to start. */
static void
suspend(struct engine *e)
{
	executor_kill(e->executor, SIGSTOP);
	policy_suspend(e->policy);
	holdings_check_lease(e);
	executor_kill(e->executor, SIGCONT);
}

/* Idle also means that the last claims found nothing and that dead connections are cleaned up: a
 * consumer started by cron(8) may end before its first tick. */
static void
note_idle(struct engine *e)
{
	if (engine_has_nothing(e) && inbox_drained(e->inbox) &&
	    session_is_up(e->session) && jobs_cleaned(e->jobs))
		policy_stop(e->policy, STOP_SOON, 0, 0);
}

void
ends_take(struct engine *e, const struct fact *f)
{
	switch (f->kind) {
	case FACT_STOP:
		note_stop(e, f);
		break;
	case FACT_UNREAD:
		if (policy_level(e->policy) < STOP_SOON)
			mq_say("standard output: nobody reads it any more; "
			       "stopping, and returning what fails");
		policy_stop(e->policy, STOP_SOON, MQ_EXIT_IO, 0);
		break;
	case FACT_MUST_END:
		if (!e->ending)
			policy_stop(e->policy, STOP_SOON, f->status, 0);
		break;
	case FACT_DRAINED:
		if (hand_size(e->hand, -1) == 0)
			policy_stop(e->policy, STOP_SOON, MQ_EXIT_OK, 0);
		break;
	case FACT_IDLE:
		note_idle(e);
		break;
	case FACT_SIGNAL:
		executor_kill(e->executor, f->status);
		/* After TERM, KILL finds no command left to wait for. */
		if (f->yes && executor_busy(e->executor) == 0)
			give_up(e);
		break;
	case FACT_SUSPEND:
		suspend(e);
		break;
	case FACT_REOPEN_LOGS:
		process_open_logs(&e->process);
		break;
	case FACT_GIVE_UP:
		give_up(e);
		break;
	case FACT_COUNTED:
		bar_count(e, f->n);
		break;
	default: /* FACT_WAKE, for a turn */
		break;
	}
}
