/*
 * The states of a message, and the lists that it is in.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "consume.h"
#include "executor.h"

/* Among those of its queue that wait; it may be older than some of them. */
static void
put_in_line(struct message *m)
{
	struct queue *q = &m->c->queues[m->queue];
	struct message *last = TAILQ_LAST(&q->waiting, messages), *other;

	if (last == NULL || last->number < m->number) {
		TAILQ_INSERT_TAIL(&q->waiting, m, hand);
		return;
	}
	TAILQ_FOREACH(other, &q->waiting, hand)
		if (other->number > m->number)
			break;
	TAILQ_INSERT_BEFORE(other, m, hand);
}

static void
enter(struct message *m, enum state state)
{
	struct consumer *c = m->c;

	m->state = state;
	switch (state) {
	case STATE_HELD:
		c->held++;
		c->held_bytes += m->len;
		c->queues[m->queue].held++;
		put_in_line(m);
		break;
	case STATE_RUNNING:
		if (!c->executor->runs)
			TAILQ_INSERT_TAIL(&c->printed, m, hand);
		c->running++;
		break;
	case STATE_SETTLING:
		c->settling++;
		break;
	}
}

static void
leave(struct message *m)
{
	struct consumer *c = m->c;

	switch (m->state) {
	case STATE_HELD:
		c->held--;
		c->held_bytes -= m->len;
		c->queues[m->queue].held--;
		TAILQ_REMOVE(&c->queues[m->queue].waiting, m, hand);
		break;
	case STATE_RUNNING:
		if (!c->executor->runs)
			TAILQ_REMOVE(&c->printed, m, hand);
		else
			slot_release(m);
		c->running--;
		break;
	case STATE_SETTLING:
		c->settling--;
		break;
	}
}

struct message *
message_new(struct consumer *c, int queue, char *element, size_t len)
{
	struct message *m = mq_xcalloc(1, sizeof(*m));

	m->c = c;
	m->number = ++c->claimed;
	if (c->executor->bulk)
		m->since = mq_clock_steady_s();
	m->queue = queue;
	m->queue_name = c->opt->queues[queue];
	m->element = element;
	m->len = len;
	TAILQ_INSERT_TAIL(&c->messages, m, link);
	twins_add(m);
	enter(m, STATE_HELD);
	return m;
}

void
message_state(struct message *m, enum state state)
{
	leave(m);
	enter(m, state);
}

void
message_unstart(struct message *m)
{
	policy_unstarted(&m->c->policy);
	if (m->lost || m->gone) {
		message_drop(m);
		return;
	}
	mq_envelope_free(&m->envelope);
	message_state(m, STATE_HELD);
}

void
message_drop(struct message *m)
{
	acks_forget(m);
	leave(m);
	TAILQ_REMOVE(&m->c->messages, m, link);
	twins_remove(m);
	mq_envelope_free(&m->envelope);
	mq_buf_free(&m->header);
	mq_buf_free(&m->result);
	mq_buf_free(&m->news);
	if (TAILQ_EMPTY(&m->c->messages))
		m->c->in_order = true;
	free(m->element);
	free(m);
}

void
message_note(struct message *m, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = mq_xvasprintf(fmt, ap);
	va_end(ap);
	mq_buf_clear(&m->news);
	mq_buf_addstr(&m->news, text);
	free(text);
}

void
message_say(const struct message *m, const char *fmt, ...)
{
	const char *queue = m->c->opt->queues[m->queue];
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = mq_xvasprintf(fmt, ap);
	va_end(ap);
	if (m->id[0] != '\0')
		mq_say("%s: %s: %s", queue, m->id, text);
	else
		mq_say("%s: %s", queue, text);
	free(text);
}

void
message_frame(const struct message *m, struct mq_buf *out)
{
	const struct options *opt = m->c->opt;
	const struct mq_frame_meta meta = {.id = m->id,
	    .queue = opt->queues[m->queue],
	    .attempt = m->attempts + 1};

	mq_frame_write(out, opt->framing, &m->envelope, &meta);
}
