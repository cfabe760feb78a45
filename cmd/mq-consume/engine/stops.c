/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Runs that an operator wants stopped; see queue/stats.h. */
#include "parts.h"

struct question {
	struct engine *engine;
	int queue;
};

/* The message of a run; NULL: not in the hand. */
static struct message *
find_run(const struct engine *e, int queue, const struct mq_run *run)
{
	struct message *m = NULL;

	while ((m = hand_after(e->hand, queue, m)) != NULL)
		if (m->attempts + 1 == run->attempt &&
		    strcmp(m->id, run->id) == 0)
			break;
	return m;
}

static void
on_request(void *arg, const struct mq_answer *answer)
{
	struct question *q = arg;

	if (answer != NULL && answer->text != NULL)
		tell(q->engine, FACT_STOP_REQUEST, .queue = q->queue,
		    .text = mq_xstrdup(answer->text));
	free(q);
}

void
stops_take(struct engine *e, const struct fact *f)
{
	struct mq_run run = {0};
	enum mq_stop what = mq_stop_read(f->text, &run);
	struct message *m;

	if ((what != MQ_STOP_PURGE && what != MQ_STOP_RETURN) ||
	    strcmp(run.connection, e->consumer->session.connection) != 0)
		return;
	m = find_run(e, f->queue, &run);
	/* A lost message, or one that stops already, ends in any case. */
	if (m != NULL && (m->lost || m->stop != MQ_STOP_NONE))
		return;
	if (m == NULL || m->state != MESSAGE_RUNNING ||
	    !executor_stop_run(e->executor, m, what))
		mq_consumer_tell_stop(
		    e->consumer, f->queue, MQ_STOP_OVER, &run);
}

void
stops_look(struct engine *e, int queue)
{
	struct question *q;
	int i;

	for (i = 0; i < e->opt->queue_count; i++) {
		if (queue == -1 ? hand_count(e->hand, i, MESSAGE_RUNNING) == 0 :
				  i != queue)
			continue;
		q = mq_xcalloc(1, sizeof(*q));
		*q = (struct question){e, i};
		mq_consumer_look_for_stop(e->consumer, i, on_request, q);
	}
}
