/*
 * What the server is asked about our messages: which of them it holds for us, and which
 * runs an operator wants stopped.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/say.h"
#include "base/xalloc.h"

struct question {
	struct engine *engine;
	int queue;
	/* Of a message, which may be gone meanwhile; or the moves so far. */
	unsigned long number;
};

static struct question *
make_question(struct engine *e, int queue, unsigned long number)
{
	struct question *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct question){e, queue, number};
	return q;
}

/* --- the messages that the server holds for us ------------------------------- */

/*
 * After each join the messages are compared with ours.  A stalled server may carry out
 * a command of an old connection later.  So once a second, while no message moves, their
 * number is.
 */

/* Another consumer has the message now. */
static void
take_over(struct engine *e, struct message *m)
{
	outbox_lose(
	    &e->outbox, m, "lease lost: another consumer has the message now");
	m->lost = true;
	if (m->state != MESSAGE_RUNNING || !executor_take_away(&e->executor, m))
		inbox_forget(&e->inbox, m);
}

static void
on_exists(void *arg, const struct mq_answer *answer, long long n)
{
	struct question *q = arg;
	struct engine *e = q->engine;
	struct message *m;

	TAILQ_FOREACH(m, &e->inbox.all, link)
		if (m->number == q->number)
			break;
	free(q);
	/* A settling message has an answer of its own. */
	if (answer == NULL || m == NULL || m->lost ||
	    m->state == MESSAGE_SETTLING)
		return;
	if (answer->error != NULL || n != 0)
		take_over(e, m);
	else if (m->state == MESSAGE_HELD)
		inbox_forget(&e->inbox, m);
	else
		m->gone = true;
}

static void
on_missing(void *arg, struct message *m)
{
	struct engine *e = arg;

	if (m->state == MESSAGE_SETTLING) {
		/* The settlement arrived; only its answer was lost. */
		if (m->sent)
			outbox_confirm(&e->outbox, m);
		return;
	}
	/* Another consumer runs the message now, or somebody deleted it. */
	if (e->opt->layout->exists == NULL)
		take_over(e, m);
	else
		mq_consumer_exists(&e->session.self, m->queue, m->element,
		    m->len, on_exists, make_question(e, m->queue, m->number));
}

void
engine_compare(struct engine *e, int queue, struct mq_held *held)
{
	inbox_reconcile(&e->inbox, queue, held, on_missing, e);
}

static void
on_held(void *arg, const struct mq_answer *answer, struct mq_held *held)
{
	struct question *q = arg;
	struct engine *e = q->engine;
	int queue = q->queue;

	free(q);
	if (!mq_answer_good(answer) || !session_is_up(&e->session))
		return;
	/* The server answers in order: no earlier answer is missing. */
	engine_compare(e, queue, held);
	e->marked = true;
}

static void
on_count(void *arg, const struct mq_answer *answer, long long count)
{
	struct question *q = arg;
	struct engine *e = q->engine;
	long long ours = inbox_count(&e->inbox, q->queue);

	if (q->number != e->inbox.moves + e->outbox.moves ||
	    !mq_answer_good(answer) || ours == count ||
	    !session_is_up(&e->session)) {
		free(q);
		return;
	}
	if (ours < count && !e->opt->quiet)
		mq_say("%s: the server has unacked messages that this consumer "
		       "does not have",
		    e->server->name);
	mq_consumer_held(&e->session.self, q->queue, on_held, q);
}

static void
count_held(struct engine *e, int queue)
{
	mq_consumer_count_held(&e->session.self, MQ_HELD_COUNT, &queue, 1,
	    on_count,
	    make_question(e, queue, e->inbox.moves + e->outbox.moves));
}

static void
on_some(void *arg, const struct mq_answer *answer, long long n)
{
	struct engine *e = arg;
	int i;

	if (!mq_answer_good(answer) || n == 0)
		return;
	/* The others are counted already. */
	for (i = 0; i < e->opt->queue_count; i++)
		if (inbox_count(&e->inbox, i) == 0)
			count_held(e, i);
}

void
engine_count_held(struct engine *e, bool all)
{
	int *empty, n = 0, i;

	/* An answer that comes before those to these questions spoils the
	 * comparison, and changes the moves. */
	if (e->inbox.claiming || e->outbox.settling > 0)
		return;
	empty = mq_xcalloc((size_t)e->opt->queue_count, sizeof(*empty));
	for (i = 0; i < e->opt->queue_count; i++)
		if (inbox_count(&e->inbox, i) == 0)
			empty[n++] = i;
		else
			count_held(e, i);
	if (all)
		mq_consumer_count_held(
		    &e->session.self, MQ_HELD_KEY, empty, n, on_some, e);
	free(empty);
}

/* --- runs that an operator wants stopped; see queue/stats.h ------------------- */

static void
on_request(void *arg, enum mq_stop what, const struct mq_run *run)
{
	struct question *q = arg;
	struct engine *e = q->engine;
	int queue = q->queue;
	struct message *m;

	free(q);
	if (what == MQ_STOP_NONE)
		return;
	TAILQ_FOREACH(m, &e->inbox.queues[queue].all, own)
		if (m->attempts + 1 == run->attempt &&
		    strcmp(m->id, run->id) == 0)
			break;
	/* What is lost, or stops already, has an end of its own. */
	if (m != NULL && (m->lost || m->stop != MQ_STOP_NONE))
		return;
	if (m == NULL || m->state != MESSAGE_RUNNING ||
	    !executor_stop_run(&e->executor, m, what))
		mq_consumer_tell_stop(
		    &e->session.self, queue, MQ_STOP_OVER, run);
}

void
engine_look_for_stops(struct engine *e, int queue)
{
	const struct message *m;
	int i;

	for (i = 0; i < e->opt->queue_count; i++) {
		TAILQ_FOREACH(m, &e->inbox.queues[i].all, own)
			if (m->state == MESSAGE_RUNNING)
				break;
		if (queue == -1 ? m != NULL : i == queue)
			mq_consumer_look_for_stop(&e->session.self, i,
			    on_request, make_question(e, i, 0));
	}
}
