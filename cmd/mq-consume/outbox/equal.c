/*
 * Settlements of messages that have the same bytes.  The server cannot tell these apart:
 * it removes the oldest, whichever has ended.  So that nothing has to be guessed after a
 * lost connection, at most one settlement of such messages is under way in a queue.  The
 * others wait for its answer, and go together.
 */
#include "outbox.h"

#include <stdlib.h>

#include "base/xalloc.h"

/* The most of one step. */
#define EQUAL_MAX   250
#define EQUAL_BYTES ((size_t)1 << 20)

struct equal_batch {
	struct outbox *outbox;
	int n;
	struct message *m[EQUAL_MAX];
};

bool
equal_under_way(const struct outbox *o, int queue)
{
	const struct message *m;

	for (m = inbox_first_of(o->inbox, queue); m != NULL;
	     m = TAILQ_NEXT(m, own))
		if (m->equal && m->in_flight)
			return true;
	return false;
}

/* Whether its header may ask for more than a place in line.  A message that was not
 * started has no envelope yet. */
static bool
asks_for_more(const struct message *m)
{
	return mq_envelope_signed(m->element, m->len) &&
	    (m->envelope.payload == NULL || mq_message_special(&m->envelope));
}

static bool
goes_together(const struct outbox *o, const struct message *m)
{
	return !m->alone && m->outcome != MQ_OUTCOME_PUSH && m->pause_ms == 0 &&
	    !asks_for_more(m) && !result_wanted(o->results, m);
}

/* If somebody has taken some of them, each finds out for itself. */
static void
on_settled_together(
    void *arg, const struct mq_answer *answer, enum mq_settled how)
{
	struct equal_batch *b = arg;
	struct outbox *o = b->outbox;
	bool one_by_one = mq_answer_good(answer) && how != MQ_SETTLED;
	int i;

	for (i = 0; i < b->n; i++) {
		b->m[i]->alone |= one_by_one;
		if (one_by_one)
			settlement_again(o, b->m[i]);
		else
			settlement_answered(o, b->m[i], answer, how);
	}
	free(b);
	o->events->wake(o->arg);
}

static struct equal_batch *
collect_equal(struct outbox *o, int queue)
{
	struct equal_batch *b = mq_xcalloc(1, sizeof(*b));
	struct message *m;
	size_t bytes = 0;

	b->outbox = o;
	TAILQ_FOREACH(m, &o->equal_of[queue], waiting) {
		bytes += m->len;
		if (b->n == EQUAL_MAX || (b->n > 0 && bytes > EQUAL_BYTES) ||
		    !goes_together(o, m))
			break;
		b->m[b->n++] = m;
	}
	return b;
}

static bool
fits_together(struct outbox *o, const struct equal_batch *b)
{
	size_t bytes = 0;
	int i;

	for (i = 0; i < b->n; i++)
		bytes += settlement_copies(b->m[i]);
	return bytes == 0 || o->events->has_room(o->arg, bytes);
}

static void
send_together(struct outbox *o, int queue, struct equal_batch *b)
{
	struct mq_settlement how[EQUAL_MAX];
	int i;

	for (i = 0; i < b->n; i++) {
		settlement_describe(o, b->m[i], &how[i]);
		settlement_sent(o, b->m[i]);
	}
	mq_consumer_settle_equal(
	    o->server, queue, how, b->n, on_settled_together, b);
}

static void
send_next(struct outbox *o, int queue)
{
	struct equal_batch *b = collect_equal(o, queue);

	/* The server removes another place of the list than ours. */
	inbox_disorder(o->inbox, queue);
	if (b->n > 1 && fits_together(o, b)) {
		send_together(o, queue, b);
		return;
	}
	settlement_send_alone(o, TAILQ_FIRST(&o->equal_of[queue]));
	free(b);
}

void
outbox_send_equal(struct outbox *o)
{
	int queue;

	for (queue = 0; queue < o->opt->queue_count && o->equal_count > 0;
	     queue++)
		if (!TAILQ_EMPTY(&o->equal_of[queue]) &&
		    !equal_under_way(o, queue) && o->events->online(o->arg))
			send_next(o, queue);
}
