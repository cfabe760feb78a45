/*
 * Telling the server what became of a message.  A settlement is sent until it
 * is confirmed: an error reply repeats it on the next tick, a lost connection
 * leads to settle_reconcile() by way of the next join.
 */
#include <stdlib.h>
#include <string.h>

#include "consume.h"
#include "message.h"
#include "say.h"

static void
lose(struct message *m)
{
	count_lost(m);
	message_say(m, "lease lost: somebody else has the message now");
}

static void
settled(const struct message *m)
{
	count_settled(m);
	if (m->c->opt->at_most_once && m->outcome == MQ_OUTCOME_ACK)
		print_acked(m);
}

/* Nothing is under way about it any more. */
static void
landed(struct message *m)
{
	m->in_flight = false;
	m->c->in_flight--;
	m->c->moves++;
}

void
settle_answered(struct message *m, redisReply *reply)
{
	struct consumer *c = m->c;

	landed(m);
	if (m->lost) {
		message_drop(m);
		return;
	}
	if (reply == NULL)
		return;
	if (reply->type == REDIS_REPLY_ERROR) {
		c->in_order = false;
		link_complain(c, reply->str);
		return;
	}
	if (c->layout->settled(reply))
		settled(m);
	else
		lose(m);
	message_drop(m);
	if (c->opt->at_most_once)
		print_held(c);
}

static void
on_settled(void *arg, redisReply *reply)
{
	struct message *m = arg;
	struct consumer *c = m->c;
	bool ended = reply != NULL || m->lost;

	settle_answered(m, reply);
	if (ended)
		stop_check(c);
}

void
settle_again(struct message *m)
{
	landed(m);
	if (m->lost)
		message_drop(m);
	else
		settle_send(m);
}

void
settle_send(struct message *m)
{
	struct consumer *c = m->c;
	struct mq_command cmd = {0};
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
	acks_forget(m);
	pause_send(m);
	m->in_flight = true;
	c->in_flight++;
	c->layout->settle(&c->session, m->queue, &how, &cmd);
	mq_async_send(&c->main, &cmd, on_settled, m);
	mq_command_free(&cmd);
}

void
settle(struct message *m, enum mq_outcome outcome, int64_t delay_ms)
{
	struct consumer *c = m->c;

	m->outcome = outcome;
	m->delay_ms = delay_ms;
	message_state(m, STATE_SETTLING);
	stop_active(c);
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
			lose(m);
		m->lost = true;
		if (m->state == STATE_HELD ||
		    (m->state == STATE_SETTLING && !m->in_flight) ||
		    (m->state == STATE_RUNNING && c->opt->command == NULL))
			message_drop(m);
	}
	slot_kill(c, SIGKILL);
}

static struct message *
find(struct consumer *c, int queue, const redisReply *element,
    struct message *from)
{
	struct message *m;

	for (m = from; m != NULL; m = TAILQ_NEXT(m, link))
		if (!m->seen && !m->lost && m->queue == queue &&
		    m->len == element->len &&
		    memcmp(m->element, element->str, m->len) == 0)
			return m;
	return from == TAILQ_FIRST(&c->messages) ?
	    NULL :
	    find(c, queue, element, TAILQ_FIRST(&c->messages));
}

/* The server does not hold it for us any more. */
static void
gone(struct message *m)
{
	if (m->state == STATE_SETTLING) {
		/* The settlement arrived; only its answer was lost. */
		settled(m);
		message_drop(m);
		return;
	}
	lose(m);
	m->lost = true;
	if (!slot_kill_one(m))
		message_drop(m);
}

/*
 * The server lists the newest first, we keep the oldest first: with both in
 * about the same order, each search begins where the last one ended.
 */
void
settle_reconcile(struct consumer *c, int queue, redisReply *held)
{
	struct message *m, *next, *at;
	redisReply *element;
	size_t i;

	TAILQ_FOREACH(m, &c->messages, link)
		m->seen = false;
	at = TAILQ_FIRST(&c->messages);
	for (i = held->elements; i-- > 0;) {
		element = held->element[i];
		m = at == NULL ? NULL : find(c, queue, element, at);
		if (m == NULL) {
			/* Claimed for us, and the answer was lost. */
			m = message_new(c, queue, element->str, element->len);
			c->in_order = false;
			element->str = NULL;
		}
		m->seen = true;
		at = TAILQ_NEXT(m, link);
		if (at == NULL)
			at = TAILQ_FIRST(&c->messages);
	}
	TAILQ_FOREACH_SAFE(m, &c->messages, link, next)
		if (m->queue == queue && !m->seen && !m->lost)
			gone(m);
}
