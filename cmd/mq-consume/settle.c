/*
 * Telling the server what became of a message.  A settlement is sent until it
 * is confirmed: an error reply repeats it on the next tick, a lost connection
 * leads to settle_reconcile() by way of the next join.
 */
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "consume.h"
#include "executor.h"
#include "message/headers.h"

/* It was not for us to end; what it had come to here does not count. */
static void
overtaken(const struct message *m, const char *by)
{
	if (m->news.len > 0)
		message_say(m, "%s (%.*s)", by, (int)m->news.len, m->news.data);
	else
		message_say(m, "%s", by);
}

static void
lose(struct message *m, const char *why)
{
	count_lost(m);
	overtaken(m, why);
}

static void
lose_to_another(struct message *m)
{
	lose(m, "lease lost: somebody else has the message now");
}

/* One that was not even started is no news. */
static void
vanish(struct message *m)
{
	if (m->outcome != MQ_OUTCOME_FRONT || m->c->opt->verbose)
		overtaken(m, "gone: somebody has deleted the message");
}

static void
settled(const struct message *m)
{
	count_settled(m);
	if (m->news.len > 0)
		message_say(m, "%.*s", (int)m->news.len, m->news.data);
	if (m->c->executor->acked != NULL && m->outcome == MQ_OUTCOME_ACK)
		m->c->executor->acked(m);
}

void
settle_sent(struct message *m)
{
	acks_forget(m);
	m->sent = ++m->c->sendings;
	m->in_flight = true;
	m->c->in_flight++;
}

/* Nothing is under way about it any more. */
static void
landed(struct message *m)
{
	m->in_flight = false;
	m->c->in_flight--;
	m->c->moves++;
}

/* Whether a key of the place that it was to go to holds something else. */
static bool
is_barred(const struct message *m, const struct mq_answer *answer)
{
	return m->outcome != MQ_OUTCOME_ACK && m->outcome != MQ_OUTCOME_FRONT &&
	    answer->status == MQ_EXIT_WRONGTYPE;
}

/* The message goes back instead, and we end: the next start finds the key, and
 * names it. */
static void
turn_back(struct message *m)
{
	struct consumer *c = m->c;
	bool push = m->outcome == MQ_OUTCOME_PUSH;

	message_note(m, "back: a key of %s holds something else than messages",
	    push ? c->opt->push : "the queue");
	m->outcome = MQ_OUTCOME_FRONT;
	settle_send(m);
	policy_stop(&c->policy, STOP_SOON, MQ_EXIT_WRONGTYPE, 0);
}

void
settle_answered(
    struct message *m, const struct mq_answer *answer, enum mq_settled how)
{
	struct consumer *c = m->c;

	landed(m);
	if (m->lost) {
		message_drop(m);
		return;
	}
	if (answer == NULL)
		return;
	if (answer->error != NULL) {
		c->in_order = false;
		m->sent = 0;
		if (is_barred(m, answer))
			turn_back(m);
		else
			link_complain(c, answer->error);
		return;
	}
	switch (how) {
	case MQ_SETTLED:
		settled(m);
		break;
	case MQ_SETTLED_LOST:
		lose_to_another(m);
		break;
	case MQ_SETTLED_GONE:
		vanish(m);
		break;
	case MQ_SETTLED_TOO_LONG:
		verdict_too_long(m);
		return;
	}
	message_drop(m);
}

static void
on_settled(void *arg, const struct mq_answer *answer, enum mq_settled how)
{
	struct message *m = arg;
	struct consumer *c = m->c;
	bool ended = answer != NULL || m->lost;

	settle_answered(m, answer, how);
	if (ended)
		engine_mark(c);
}

void
settle_again(struct message *m)
{
	landed(m);
	m->sent = 0;
	if (m->lost)
		message_drop(m);
	else
		settle_send(m);
}

void
settle_send(struct message *m)
{
	struct consumer *c = m->c;
	struct mq_result result;
	struct mq_settlement how = {.outcome = m->outcome,
	    .element = m->element,
	    .len = m->len,
	    .delay_ms = m->delay_ms,
	    .push = c->opt->push,
	    .unrun = m->late,
	    .holds = mq_message_holds(&m->envelope)};

	if (m->header.len > 0) {
		how.header = m->header.data;
		how.header_len = m->header.len;
		how.payload_at = (size_t)(m->envelope.payload - m->element);
	}
	how.result = result_of(m, &how, &result);
	mq_id_make(&c->ids, 0, how.unique);
	pause_send(m);
	settle_sent(m);
	mq_consumer_settle(&c->self, m->queue, &how, on_settled, m);
}

void
settle(struct message *m, enum mq_outcome outcome, int64_t delay_ms)
{
	struct consumer *c = m->c;

	m->outcome = outcome;
	m->delay_ms = delay_ms;
	message_state(m, STATE_SETTLING);
	engine_active(c);
	if (c->link != LINK_UP)
		return;
	if (outcome == MQ_OUTCOME_ACK)
		acks_wait(m);
	else
		settle_send(m);
}

void
settle_unsent(struct consumer *c)
{
	struct message *m, *next;

	ev_timer_stop(c->loop, &c->settle_timer);
	if (c->link != LINK_UP || c->settling == c->in_flight)
		return;
	TAILQ_FOREACH_SAFE(m, &c->messages, link, next)
		if (m->state == STATE_SETTLING && !m->in_flight &&
		    m->outcome != MQ_OUTCOME_FRONT)
			settle_send(m);
	/* The oldest last: it then is in front. */
	TAILQ_FOREACH_REVERSE_SAFE(m, &c->messages, messages, link, next)
		if (m->state == STATE_SETTLING && !m->in_flight)
			settle_send(m);
}

/* From the newest to the oldest, which so ends up in front. */
void
settle_held(struct consumer *c)
{
	struct message *m, *next;

	TAILQ_FOREACH_REVERSE_SAFE(m, &c->messages, messages, link, next)
		if (m->state == STATE_HELD)
			settle(m, MQ_OUTCOME_FRONT, 0);
}

void
settle_held_of(struct consumer *c, int queue)
{
	struct message *m, *next;

	TAILQ_FOREACH_REVERSE_SAFE(m, &c->messages, messages, link, next)
		if (m->state == STATE_HELD && m->queue == queue)
			settle(m, MQ_OUTCOME_FRONT, 0);
}

void
settle_lost(struct consumer *c)
{
	struct message *m, *next;

	TAILQ_FOREACH_SAFE(m, &c->messages, link, next) {
		if (m->lost)
			continue;
		if (m->state != STATE_HELD)
			lose(m, "lease lost: others may get the message");
		m->lost = true;
		if (m->state == STATE_HELD ||
		    (m->state == STATE_SETTLING && !m->in_flight) ||
		    (m->state == STATE_RUNNING && !c->executor->runs))
			message_drop(m);
	}
	slot_kill(c, SIGKILL);
}

static struct message *
find(struct consumer *c, int queue, const struct mq_element *element,
    struct message *from)
{
	struct message *m;

	for (m = from; m != NULL; m = TAILQ_NEXT(m, link))
		if (!m->seen && !m->lost && m->queue == queue &&
		    m->len == element->len &&
		    memcmp(m->element, element->data, m->len) == 0)
			return m;
	return from == TAILQ_FIRST(&c->messages) ?
	    NULL :
	    find(c, queue, element, TAILQ_FIRST(&c->messages));
}

static void
taken_away(struct message *m)
{
	lose_to_another(m);
	m->lost = true;
	if (!slot_kill_one(m))
		message_drop(m);
}

struct question {
	struct consumer *c;
	unsigned long number; /* of a message, which may be dropped meanwhile */
};

static void
on_exists(void *arg, const struct mq_answer *answer, long long exists)
{
	struct question *q = arg;
	struct message *m;

	TAILQ_FOREACH(m, &q->c->messages, link)
		if (m->number == q->number)
			break;
	free(q);
	/* One that is settling is told by its own answer. */
	if (answer == NULL || m == NULL || m->lost ||
	    m->state == STATE_SETTLING)
		return;
	if (answer->error != NULL || exists != 0)
		taken_away(m);
	else if (m->state == STATE_HELD)
		message_drop(m);
	else
		m->gone = true;
}

/* Somebody else has it now, who runs it, too; or it was deleted.  False: it
 * cannot have been. */
static bool
ask_exists(struct message *m)
{
	struct consumer *c = m->c;
	struct question *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct question){c, m->number};
	if (mq_consumer_exists(
		&c->self, m->queue, m->element, m->len, on_exists, q))
		return true;
	free(q);
	return false;
}

/* The server does not hold it for us any more. */
static void
gone(struct message *m)
{
	if (m->state == STATE_SETTLING && m->sent) {
		/* The settlement arrived; only its answer was lost. */
		settled(m);
		message_drop(m);
	} else if (m->state != STATE_SETTLING && !ask_exists(m)) {
		taken_away(m);
	}
}

/*
 * Claimed for us, and the answer was lost: these are the newest of those held,
 * whatever else is equal to them.  How many there were.
 */
static int
count_unanswered(struct consumer *c, int queue, const struct mq_held *held)
{
	long long n = held->received - c->queues[queue].received;

	c->queues[queue].received += n;
	if (n < 0)
		return 0;
	return n < held->n ? (int)n : held->n;
}

static void
take_unanswered(struct consumer *c, int queue, struct mq_element *element)
{
	struct message *m = message_new(c, queue, element->data, element->len);

	element->data = NULL;
	m->seen = true;
}

/*
 * The server lists the newest first, we keep the oldest first: with both in
 * about the same order, each search begins where the last one ended.
 */
static void
see(struct consumer *c, int queue, struct mq_held *held, int newer)
{
	struct message *m, *at = TAILQ_FIRST(&c->messages);
	int i;

	for (i = held->n; i-- > newer;) {
		m = at == NULL ? NULL : find(c, queue, &held->elements[i], at);
		if (m == NULL) {
			take_unanswered(c, queue, &held->elements[i]);
			c->in_order = false;
			continue;
		}
		m->seen = true;
		at = TAILQ_NEXT(m, link);
		if (at == NULL)
			at = TAILQ_FIRST(&c->messages);
	}
	while (newer > 0)
		take_unanswered(c, queue, &held->elements[--newer]);
}

/* One whose end is under way is told by its own answer. */
static bool
is_missing(const struct message *m, int queue)
{
	return m->queue == queue && !m->seen && !m->lost && !m->gone &&
	    !m->in_flight;
}

void
settle_reconcile(struct consumer *c, int queue, struct mq_held *held)
{
	struct message *m, *next, *other;

	TAILQ_FOREACH(m, &c->messages, link)
		m->seen = false;
	see(c, queue, held, count_unanswered(c, queue, held));
	TAILQ_FOREACH(m, &c->messages, link) {
		if (!is_missing(m, queue))
			continue;
		/* Of equal ones, that is gone whose end was sent first. */
		other = twins_settled(m);
		if (other != NULL) {
			other->seen = false;
			m->seen = true;
		}
	}
	TAILQ_FOREACH_SAFE(m, &c->messages, link, next)
		if (is_missing(m, queue))
			gone(m);
}
