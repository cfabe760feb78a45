/*
 * What the engine decides: which acks go out, what goes back, what is claimed
 * and started, and when to end.
 */
#include "engine-parts.h"

/* Whether nothing can be started, however much there is. */
static bool
is_held_back(const struct engine *e)
{
	return !policy_may_start(&e->policy) || executor_rests(&e->executor);
}

/* First the workers that stay are to end, as well as they can. */
static void
leave(struct engine *e)
{
	if (e->executor.table->stays && executor_busy(&e->executor) > 0) {
		policy_stop(&e->policy, STOP_SOON, 0, 0);
		return;
	}
	e->ending = true;
	if (session_is_up(&e->session))
		counters_send(&e->counters);
	session_leave(&e->session);
}

static void
check_end(struct engine *e)
{
	if (!engine_has_nothing(e))
		return;
	/* Nobody takes our name off the server but we, once we are there. */
	if (session_is_joining(&e->session) && !policy_killed(&e->policy))
		return;
	if (policy_level(&e->policy) >= STOP_SOON ||
	    policy_limit_reached(&e->policy, 0))
		leave(e);
	else if (e->opt->drain && session_is_up(&e->session) &&
	    (inbox_drained(&e->inbox) || is_held_back(e)))
		drain_look(&e->drain);
}

static void
give_back(struct engine *e)
{
	bool now = policy_level(&e->policy) == STOP_NOW;

	/* A claim under way brings younger ones, which must go back first;
	 * those of commands that are killed go back together, in order. */
	if (inbox_is_claiming(&e->inbox) ||
	    (now && executor_busy(&e->executor) > 0) ||
	    !session_is_up(&e->session) || !session_holds_lease(&e->session))
		return;
	executor_take_back_all(&e->executor, now);
	engine_give_back(e, -1);
}

/*
 * Acks wait for others while there is more to do.  While a message may be the
 * end of us, none waits, so that those that have ended are not charged with it.
 */
static void
flush_acks(struct engine *e)
{
	const struct executor_table *how = e->executor.table;
	bool runs_none = executor_running(&e->executor) == 0;
	bool careful = policy_is_careful(&e->policy);
	bool held = inbox_held(&e->inbox) > 0;

	if (!outbox_waits(&e->outbox))
		return;
	if (careful || (how->runs && !held && (!how->many || runs_none)) ||
	    (!held && runs_none && outbox_holds(&e->outbox)))
		outbox_flush(&e->outbox);
	if (careful)
		session_flush(&e->session);
}

void
engine_take_turn(struct engine *e)
{
	flush_acks(e);
	if (policy_level(&e->policy) >= STOP_SOON)
		give_back(e);
	/* The server has its work while ours is begun. */
	if (e->executor.table->flows) {
		inbox_claim(&e->inbox);
		session_flush(&e->session);
	}
	executor_start(&e->executor);
	inbox_claim(&e->inbox);
	check_end(e);
}
