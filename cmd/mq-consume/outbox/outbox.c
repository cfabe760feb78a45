/*
 * Ack batches.  Acks wait for others, so that one command acks the oldest messages
 * of a queue, without their bytes.
 */
#include "outbox.h"

#include <stdlib.h>

#include "base/xalloc.h"

/* Waiting acks, and their longest wait.  After a crash, at most that many messages
 * are run again. */
#define ENOUGH	    16
#define ENOUGH_S    0.02
#define ENOUGH_MANY 250 /* if messages end many at a time */
#define MANY_S	    0.005
/* Bytes of a batch whose elements must be sent or read. */
#define BYTES_MAX ((size_t)1 << 20)
/* Fewer acks are sent one by one. */
#define TOGETHER_MIN 4

/* Messages that are acked by one command. */
struct ack_batch {
	struct outbox *outbox;
	bool holds;  /* one may hold a key or a group */
	bool equals; /* one may be equal to another; never both */
	int n;
	struct message *m[];
};

static void
on_acked(void *arg, const struct mq_answer *answer, enum mq_settled how)
{
	struct ack_batch *b = arg;
	struct outbox *o = b->outbox;
	bool answered = answer != NULL && answer->error == NULL;
	bool done = answered && how == MQ_SETTLED;
	int i;

	if (!done)
		inbox_disorder(o->inbox);
	for (i = 0; i < b->n; i++)
		if (done || !answered)
			settlement_answered(o, b->m[i], answer, how);
		else
			settlement_again(o, b->m[i]);
	free(b);
	o->events->wake(o->arg);
}

/* False: the message cannot be acked together with the others. */
static bool
add_to_batch(struct ack_batch *b, struct message *m, size_t bytes)
{
	bool holds = b->holds || mq_message_holds(&m->envelope);
	bool equals = b->equals || m->equal;

	if ((holds && equals) || ((holds || equals) && bytes > BYTES_MAX))
		return false;
	b->holds = holds;
	b->equals = equals;
	b->m[b->n++] = m;
	return true;
}

/*
 * The oldest messages that the server has of a queue, once all commands in flight
 * are carried out; as far as they can be acked together.
 */
static struct ack_batch *
collect_oldest(struct outbox *o, int queue)
{
	int most = o->waiting_of[queue];
	struct ack_batch *b =
	    mq_xcalloc(1, sizeof(*b) + (size_t)most * sizeof(b->m[0]));
	struct message *m;
	size_t bytes = 0;

	b->outbox = o;
	for (m = inbox_first(o->inbox); m != NULL && b->n < most;
	     m = TAILQ_NEXT(m, link)) {
		if (m->queue != queue || m->in_flight)
			continue;
		bytes += m->len;
		if (!m->waits || result_wanted(o->results, m) ||
		    !add_to_batch(b, m, bytes))
			break;
	}
	return b;
}

static void
send_batch(struct outbox *o, int queue)
{
	struct ack_batch *b = collect_oldest(o, queue);
	struct mq_part *elements;
	int i;

	if (b->n < TOGETHER_MIN) {
		free(b);
		return;
	}
	elements = mq_xcalloc((size_t)b->n, sizeof(*elements));
	for (i = 0; i < b->n; i++) {
		elements[i] = (struct mq_part){b->m[i]->element, b->m[i]->len};
		settlement_sent(o, b->m[i]);
	}
	mq_consumer_ack_oldest(o->server, queue,
	    &(struct mq_acks){elements, b->n, b->holds, b->equals}, on_acked,
	    b);
	free(elements);
}

void
outbox_flush(struct outbox *o)
{
	int queue;

	ev_timer_stop(o->loop, &o->timer);
	if (!o->events->online(o->arg))
		return;
	o->holding = false;
	if (inbox_in_order(o->inbox) && o->waiting_count >= TOGETHER_MIN)
		for (queue = 0; queue < o->opt->queue_count; queue++)
			if (o->waiting_of[queue] >= TOGETHER_MIN)
				send_batch(o, queue);
	while (o->events->online(o->arg) && !TAILQ_EMPTY(&o->waiting))
		settlement_send(o, TAILQ_FIRST(&o->waiting));
}

static void
wait_for_others(struct outbox *o, struct message *m)
{
	m->waits = true;
	TAILQ_INSERT_TAIL(&o->waiting, m, waiting);
	o->waiting_of[m->queue]++;
	o->holding = o->holding || mq_message_holds(&m->envelope);
	if (++o->waiting_count >= o->enough || m->awaited)
		outbox_flush(o);
	else if (!ev_is_active(&o->timer))
		ev_timer_again(o->loop, &o->timer);
}

void
outbox_settle(struct outbox *o, struct message *m, enum mq_outcome outcome)
{
	m->outcome = outcome;
	m->state = MESSAGE_SETTLING;
	o->settling++;
	if (!o->events->online(o->arg))
		return;
	if (outcome == MQ_OUTCOME_ACK)
		wait_for_others(o, m);
	else
		settlement_send(o, m);
}

void
outbox_send_again(struct outbox *o)
{
	struct message *m, *next;

	ev_timer_stop(o->loop, &o->timer);
	if (!o->events->online(o->arg) || o->settling == o->in_flight)
		return;
	for (m = inbox_first(o->inbox); m != NULL; m = next) {
		next = TAILQ_NEXT(m, link);
		if (m->state == MESSAGE_SETTLING && !m->in_flight &&
		    m->outcome != MQ_OUTCOME_FRONT)
			settlement_send(o, m);
	}
	/* The oldest goes back last: then it is in front. */
	for (m = inbox_last(o->inbox); m != NULL; m = next) {
		next = TAILQ_PREV(m, messages, link);
		if (m->state == MESSAGE_SETTLING && !m->in_flight)
			settlement_send(o, m);
	}
}

bool
outbox_waits(const struct outbox *o)
{
	return o->waiting_count > 0;
}

bool
outbox_holds(const struct outbox *o)
{
	return o->holding;
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	outbox_flush(w->data);
}

void
outbox_init(struct outbox *o, struct ev_loop *loop, const struct options *opt,
    struct mq_consumer *server, struct mq_idgen *ids, struct inbox *inbox,
    struct counters *counters, const struct result_rules *results, bool many,
    const struct outbox_events *events, void *arg)
{
	*o = (struct outbox){.loop = loop,
	    .opt = opt,
	    .server = server,
	    .ids = ids,
	    .inbox = inbox,
	    .counters = counters,
	    .results = results,
	    .events = events,
	    .arg = arg,
	    .enough = many ? ENOUGH_MANY : ENOUGH};
	TAILQ_INIT(&o->waiting);
	o->waiting_of =
	    mq_xcalloc((size_t)opt->queue_count, sizeof(*o->waiting_of));
	ev_timer_init(&o->timer, on_timer, 0, many ? MANY_S : ENOUGH_S);
	o->timer.data = o;
}

void
outbox_free(struct outbox *o)
{
	free(o->waiting_of);
}
