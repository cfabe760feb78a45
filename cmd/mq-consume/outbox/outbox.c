/*
 * Ack batches.  Acks wait for others, so that one command acks the oldest messages
 * of a queue, without their bytes.
 */
#include "outbox.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "mq-consume/rules.h"

/* Waiting acks, and their longest wait.  After a crash, at most that many messages
 * are run again: if each has a run of its own, at most as many as there are slots.
 * If messages end many at a time, more acks may wait until the end of a turn.
 * If one holds a key or a group, others may wait for it. */
#define ENOUGH	    64
#define ENOUGH_S    0.05
#define HOLDING_S   0.02
#define ENOUGH_MANY 250
#define MANY_S	    0.005
#define MANY_MAX    1000
/* Bytes of a batch whose elements must be read. */
#define BYTES_MAX ((size_t)1 << 20)
/* The server removes acks together cheaply if this many times fewer others are
 * between them. */
#define DENSE 4
/* Fewer acks are sent one by one. */
#define TOGETHER_MIN 4

/* Messages that are acked by one command. */
struct ack_batch {
	struct outbox *outbox;
	struct message **m;
	int *places;	     /* of each */
	struct mq_acks acks; /* but for their elements */
};

static void
free_batch(struct ack_batch *b)
{
	free(b->m);
	free(b->places);
	free(b);
}

static void
on_acked(void *arg, const struct mq_answer *answer, enum mq_settled how)
{
	struct ack_batch *b = arg;
	struct outbox *o = b->outbox;
	bool answered = mq_answer_good(answer);
	bool done = answered && how == MQ_SETTLED;
	int i;

	if (!done)
		inbox_disorder(o->inbox, b->m[0]->queue);
	for (i = 0; i < b->acks.n; i++)
		if (done || !answered)
			settlement_answered(o, b->m[i], answer, how);
		else
			settlement_again(o, b->m[i]);
	free_batch(b);
	tell(o, FACT_WAKE);
}

/* False: the message cannot be acked together with the others. */
static bool
add_to_batch(struct ack_batch *b, struct message *m, int place, size_t bytes)
{
	bool holds = b->acks.holds || mq_message_holds(&m->envelope);

	if (holds && bytes > BYTES_MAX)
		return false;
	b->acks.holds = holds;
	b->places[b->acks.n] = place;
	b->m[b->acks.n++] = m;
	return true;
}

/* Adds the acks that wait, as far as they can go together; unless all, as far as
 * few others are between them. */
static void
collect_acks(struct ack_batch *b, int queue, int most, bool all)
{
	struct outbox *o = b->outbox;
	struct message *m;
	size_t bytes = 0, others_len = 0;
	int place = 0, n = 0;

	for (m = inbox_first_of(o->inbox, queue); m != NULL && b->acks.n < most;
	     m = TAILQ_NEXT(m, own)) {
		/* The server does not have the message any more, or once all
		 * commands in flight are carried out. */
		if (m->in_flight || m->lost || m->gone)
			continue;
		if (place++ == 0)
			b->acks.oldest = (struct mq_part){m->element, m->len};
		bytes += m->len;
		if (!m->waits || m->equal || result_wanted(o->results, m)) {
			others_len += m->len;
		} else if (!add_to_batch(b, m, place, bytes)) {
			break;
		} else if (all || (place - b->acks.n) * DENSE <= b->acks.n) {
			n = b->acks.n;
			b->acks.others_len = others_len;
		}
	}
	b->acks.n = n;
}

static struct ack_batch *
make_batch(struct outbox *o, int queue, bool all)
{
	struct ack_batch *b = mq_xcalloc(1, sizeof(*b));
	int most = o->waiting_of[queue];

	b->outbox = o;
	b->m = mq_xcalloc((size_t)most, sizeof(b->m[0]));
	b->places = mq_xcalloc((size_t)most, sizeof(b->places[0]));
	b->acks.places = b->places;
	collect_acks(b, queue, most, all);
	return b;
}

static void
send_batch(struct outbox *o, int queue, bool all)
{
	struct ack_batch *b = make_batch(o, queue, all);
	int i, n = b->acks.n;
	struct mq_part *elements;

	if (n < TOGETHER_MIN) {
		free_batch(b);
		return;
	}
	b->acks.elements = elements = mq_xcalloc((size_t)n, sizeof(*elements));
	for (i = 0; i < n; i++) {
		elements[i] = (struct mq_part){b->m[i]->element, b->m[i]->len};
		settlement_sent(o, b->m[i]);
	}
	mq_id_make(o->ids, 0, b->acks.unique);
	mq_consumer_ack_oldest(o->server, queue, &b->acks, on_acked, b);
	free(elements);
}

static void
send_batches(struct outbox *o, bool all)
{
	int queue;

	for (queue = 0; queue < o->opt->queue_count; queue++)
		if (o->waiting_of[queue] >= TOGETHER_MIN &&
		    inbox_in_order(o->inbox, queue))
			send_batch(o, queue, all);
}

void
outbox_flush(struct outbox *o)
{
	ev_timer_stop(o->loop, &o->timer);
	if (!session_is_up(o->session))
		return;
	o->holding = false;
	if (o->waiting_count >= TOGETHER_MIN)
		send_batches(o, true);
	while (session_is_up(o->session) && !TAILQ_EMPTY(&o->waiting))
		settlement_send(o, TAILQ_FIRST(&o->waiting));
	outbox_send_equal(o);
}

/* The others wait until the acks between them have come. */
void
outbox_flush_enough(struct outbox *o)
{
	if (!session_is_up(o->session))
		return;
	if (o->waiting_count >= o->enough && !o->holding)
		send_batches(o, false);
	if (o->waiting_count >= o->enough)
		outbox_flush(o);
	else
		outbox_send_equal(o);
}

static void
start_timer(struct outbox *o)
{
	o->timer.repeat = o->wait_s;
	if (o->holding && o->timer.repeat > HOLDING_S)
		o->timer.repeat = HOLDING_S;
	ev_timer_again(o->loop, &o->timer);
}

static int
most_waiting(const struct outbox *o)
{
	int slots = o->many ? o->most : rules_slots(o->opt);

	return slots < o->most ? slots : o->most;
}

static void
wait_for_others(struct outbox *o, struct message *m)
{
	bool held = o->holding;

	m->waits = true;
	TAILQ_INSERT_TAIL(&o->waiting, m, waiting);
	o->waiting_of[m->queue]++;
	o->holding = o->holding || mq_message_holds(&m->envelope);
	if (++o->waiting_count > most_waiting(o) || m->awaited)
		outbox_flush(o);
	else if (!ev_is_active(&o->timer) || o->holding != held)
		start_timer(o);
}

void
outbox_settle(struct outbox *o, struct message *m, enum mq_outcome outcome)
{
	if (outcome == MQ_OUTCOME_FRONT && outbox_gives_back(o, m->queue)) {
		outbox_give_back(o, m);
		return;
	}
	m->outcome = outcome;
	m->state = MESSAGE_SETTLING;
	o->settling++;
	if (!session_is_up(o->session))
		return;
	if (outcome == MQ_OUTCOME_ACK)
		wait_for_others(o, m);
	else
		settlement_send(o, m);
}

static bool
is_unsent(const struct message *m)
{
	return m->state == MESSAGE_SETTLING && !m->in_flight && !m->goes_back &&
	    !m->lined_up;
}

void
outbox_send_again(struct outbox *o)
{
	struct message *m, *next;

	ev_timer_stop(o->loop, &o->timer);
	if (!session_is_up(o->session) || o->settling == o->in_flight)
		return;
	for (m = inbox_first(o->inbox); m != NULL; m = next) {
		next = TAILQ_NEXT(m, link);
		if (is_unsent(m) && m->outcome != MQ_OUTCOME_FRONT)
			settlement_send(o, m);
	}
	/* The oldest goes back last: then it is in front. */
	for (m = inbox_last(o->inbox); m != NULL; m = next) {
		next = TAILQ_PREV(m, messages, link);
		if (is_unsent(m))
			settlement_send(o, m);
	}
	outbox_send_equal(o);
	outbox_send_back(o);
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
outbox_init(struct outbox *o)
{
	size_t i, n = (size_t)o->opt->queue_count;

	o->enough = o->many ? ENOUGH_MANY : ENOUGH;
	o->most = o->many ? MANY_MAX : ENOUGH;
	o->wait_s = o->many ? MANY_S : ENOUGH_S;
	TAILQ_INIT(&o->waiting);
	o->waiting_of = mq_xcalloc(n, sizeof(*o->waiting_of));
	o->back_of = mq_xcalloc(n, sizeof(*o->back_of));
	o->equal_of = mq_xcalloc(n, sizeof(*o->equal_of));
	for (i = 0; i < n; i++) {
		TAILQ_INIT(&o->back_of[i]);
		TAILQ_INIT(&o->equal_of[i]);
	}
	ev_timer_init(&o->timer, on_timer, 0, 0);
	o->timer.data = o;
}

void
outbox_free(struct outbox *o)
{
	free(o->waiting_of);
	free(o->back_of);
	free(o->equal_of);
}
