/*
 * Actions that several files of the engine need.
 */
#include "engine-parts.h"

void
engine_mark(void *engine)
{
	struct engine *e = engine;

	e->marked = true;
}

void
engine_note_activity(struct engine *e)
{
	drain_soon(&e->drain);
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

	while ((m = inbox_take_newest(&e->inbox, queue)) != NULL)
		engine_settle(e, m, MQ_OUTCOME_FRONT);
}

void
engine_end(struct engine *e)
{
	e->ending = true;
	ev_break(e->loop, EVBREAK_ALL);
}

bool
engine_has_nothing(const struct engine *e)
{
	return inbox_empty(&e->inbox) && !inbox_is_claiming(&e->inbox) &&
	    !executor_owes(&e->executor);
}
