/*
 * Ending one run that an operator wants stopped; see queue/stats.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "engine-parts.h"

static struct message *
find_run(struct engine *e, int queue, const struct mq_run *run)
{
	struct message *m;

	for (m = inbox_first_of(&e->inbox, queue); m != NULL;
	     m = TAILQ_NEXT(m, own))
		if (m->attempts + 1 == run->attempt &&
		    strcmp(m->id, run->id) == 0)
			return m;
	return NULL;
}

struct stop_request {
	struct engine *engine;
	int queue;
};

static void
on_request(void *arg, enum mq_stop what, const struct mq_run *run)
{
	struct stop_request *q = arg;
	struct engine *e = q->engine;
	int queue = q->queue;
	struct message *m;

	free(q);
	if (what == MQ_STOP_NONE)
		return;
	m = find_run(e, queue, run);
	/* What is lost, or stops already, has an end of its own. */
	if (m != NULL && (m->lost || m->stop != MQ_STOP_NONE))
		return;
	if (m == NULL || m->state != MESSAGE_RUNNING ||
	    !executor_stop_run(&e->executor, m, what))
		mq_consumer_tell_stop(
		    session_server(&e->session), queue, MQ_STOP_OVER, run);
}

void
engine_look_for_stop(struct engine *e, int queue)
{
	struct stop_request *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct stop_request){e, queue};
	mq_consumer_look_for_stop(
	    session_server(&e->session), queue, on_request, q);
}

void
engine_look_for_stops(struct engine *e)
{
	const struct message *m;
	int i;

	for (i = 0; i < e->opt->queue_count; i++) {
		m = inbox_first_of(&e->inbox, i);
		while (m != NULL && m->state != MESSAGE_RUNNING)
			m = TAILQ_NEXT(m, own);
		if (m != NULL)
			engine_look_for_stop(e, i);
	}
}

void
engine_tell_stopped(struct engine *e, const struct message *m)
{
	const struct mq_run run = {
	    .id = (char *)(uintptr_t)m->id, .attempt = m->attempts + 1};
	enum mq_stop answer = MQ_STOP_OVER;

	if (m->stopped)
		answer = m->outcome == MQ_OUTCOME_ACK ? MQ_STOP_PURGED :
		    m->outcome == MQ_OUTCOME_AGAIN    ? MQ_STOP_RETURNED :
							MQ_STOP_REJECTED;
	mq_consumer_tell_stop(
	    session_server(&e->session), m->queue, answer, &run);
}
