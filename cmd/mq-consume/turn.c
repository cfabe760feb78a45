/*
 * A turn of the engine: sends acks, gives messages back, claims, starts, ends; and
 * the actions that events need, too.
 */
#include "engine-parts.h"

void
engine_note_activity(struct engine *e)
{
	errands_drain_soon(&e->errands);
	policy_active(&e->policy);
}

void
engine_settle(struct engine *e, struct message *m, enum mq_outcome outcome)
{
	outbox_settle(&e->outbox, m, outcome);
	engine_note_activity(e);
}

void
engine_give_back(struct engine *e, int queue)
{
	struct message *m;

	while ((m = inbox_take_newest(&e->inbox, queue)) != NULL) {
		outbox_give_back(&e->outbox, m);
		engine_note_activity(e);
	}
}

void
engine_end(struct engine *e)
{
	e->ending = true;
	ev_break(e->loop, EVBREAK_ALL);
}

int
engine_in_hand(const struct engine *e)
{
	return inbox_held(&e->inbox) + executor_running(&e->executor) +
	    outbox_settling(&e->outbox);
}

bool
engine_has_nothing(const struct engine *e)
{
	return inbox_empty(&e->inbox) && !inbox_is_claiming(&e->inbox) &&
	    !executor_owes(&e->executor);
}

/* --- a turn ----------------------------------------------------------------- */

/* Stream workers end before the connection leaves. */
static void
leave_server(struct engine *e)
{
	if (executor_busy(&e->executor) > 0) {
		policy_stop(&e->policy, STOP_SOON, 0, 0);
		return;
	}
	e->ending = true;
	service_stop(e->service);
	if (session_is_up(&e->session)) {
		inbox_pass(&e->inbox);
		counters_send(&e->counters);
		errands_resign(&e->errands);
	}
	session_leave(&e->session);
}

static void
check_end(struct engine *e)
{
	if (!engine_has_nothing(e))
		return;
	/* A join under way may still register our name, which only we remove. */
	if (session_is_joining(&e->session) && !policy_killed(&e->policy))
		return;
	if (policy_level(&e->policy) >= STOP_SOON ||
	    policy_limit_reached(&e->policy, 0))
		leave_server(e);
	else if (e->opt->drain && session_is_up(&e->session) &&
	    (inbox_drained(&e->inbox) || !policy_may_start(&e->policy) ||
		executor_rests(&e->executor)))
		errands_drain(&e->errands);
}

static void
give_back_unstarted(struct engine *e)
{
	bool now = policy_level(&e->policy) == STOP_NOW;
	int i;

	/* A claim under way brings newer messages, which must go back first.
	 * The messages of killed commands go back together, in order, but do
	 * not wait for a command that does not end. */
	if (inbox_is_claiming(&e->inbox) ||
	    (now && executor_busy(&e->executor) > 0 &&
		policy_just_signalled(&e->policy)) ||
	    !session_is_up(&e->session) || !session_holds_lease(&e->session))
		return;
	executor_take_back_all(&e->executor, now);
	for (i = 0; i < e->opt->queue_count; i++)
		engine_give_back(e, i);
}

/*
 * Acks wait for others while there is more to do.  If a message may crash this
 * consumer, no ack waits, so that no finished message is counted as crashed.
 */
static void
flush_acks(struct engine *e)
{
	enum executor_acks acks = e->executor.table->acks;
	bool runs_none = executor_running(&e->executor) == 0;
	bool careful = policy_is_careful(&e->policy);
	bool at_rest = inbox_held(&e->inbox) == 0 &&
	    (acks == ACKS_AT_ONCE || runs_none) &&
	    (acks != ACKS_FOR_OTHERS || outbox_holds(&e->outbox));

	if (outbox_waits(&e->outbox) && (careful || at_rest))
		outbox_flush(&e->outbox);
	else
		outbox_flush_enough(&e->outbox);
	/* The same is true of other settlements. */
	if (careful)
		session_flush(&e->session);
}

/* Acks that wait go with a claim: the server wakes up once for both. */
static void
claim_messages(struct engine *e)
{
	bool claiming = inbox_is_claiming(&e->inbox);

	inbox_claim(&e->inbox);
	if (!claiming && inbox_is_claiming(&e->inbox) &&
	    outbox_waits(&e->outbox))
		outbox_flush(&e->outbox);
}

/* A killed consumer repeats what the server has not heard of.  So with a run for each
 * message, acks leave before the next ones start, and none starts while nothing can be
 * settled. */
static void
start_messages(struct engine *e)
{
	bool up = session_is_up(&e->session);

	if (e->executor.table->acks == ACKS_AT_ONCE) {
		session_flush(&e->session);
		if (up ? outbox_refused(&e->outbox) :
			 outbox_settling(&e->outbox) > 0)
			return;
	}
	e->executor.table->start(&e->executor);
}

void
engine_take_turn(struct engine *e)
{
	flush_acks(e);
	if (policy_level(&e->policy) != STOP_NOT && session_is_up(&e->session))
		inbox_pass(&e->inbox);
	if (policy_level(&e->policy) >= STOP_SOON)
		give_back_unstarted(e);
	outbox_send_back(&e->outbox);
	/* The server works on the claim while we start messages. */
	if (e->executor.table->flows) {
		inbox_claim(&e->inbox);
		session_flush(&e->session);
	}
	start_messages(e);
	claim_messages(e);
	check_end(e);
	/* In this turn of the loop: the next one begins with a wait. */
	session_flush(&e->session);
}
