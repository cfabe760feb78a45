/*
 * Compares the messages that the server holds for us with ours.
 */
#include "inbox.h"

/* Counts messages of claims whose answers were lost: the newest in the reply. */
static int
count_unanswered(struct inbox *in, int queue, const struct mq_held *held)
{
	long long n = held->received - in->queues[queue].received;

	in->queues[queue].received += n;
	if (n < 0)
		return 0;
	return n < held->n ? (int)n : held->n;
}

static void
take_unanswered(struct inbox *in, int queue, struct mq_element *element)
{
	struct message *m = inbox_add(in, queue, element->data, element->len);

	element->data = NULL;
	m->seen = true;
}

/* Marks our messages that the server holds, and adds the others, the oldest first. */
static void
mark_held(struct inbox *in, int queue, struct mq_held *held, int newer)
{
	struct mq_element *e;
	struct message *m;
	int i;

	for (i = held->n; i-- > 0;) {
		e = &held->elements[i];
		m = i < newer ?
		    NULL :
		    equals_unseen(&in->equals, queue, e->data, e->len);
		if (m == NULL)
			take_unanswered(in, queue, e);
		else
			m->seen = true;
		if (m == NULL && i >= newer)
			inbox_disorder(in, queue);
	}
}

/* The settlement of a message that the server holds had no effect. */
static void
forget_sendings(struct inbox *in)
{
	struct message *m;

	TAILQ_FOREACH(m, &in->all, link)
		if (m->seen && !m->in_flight)
			m->sent = false;
}

/* A settlement in flight has an answer of its own. */
static bool
is_missing(const struct message *m, int queue)
{
	return m->queue == queue && !m->seen && !m->lost && !m->gone &&
	    !m->in_flight;
}

void
inbox_reconcile(struct inbox *in, int queue, struct mq_held *held,
    void (*missing)(void *arg, struct message *), void *arg)
{
	struct message *m, *next;

	TAILQ_FOREACH(m, &in->all, link)
		m->seen = false;
	mark_held(in, queue, held, count_unanswered(in, queue, held));
	forget_sendings(in);
	TAILQ_FOREACH_SAFE(m, &in->all, link, next)
		if (is_missing(m, queue))
			missing(arg, m);
}

long long
inbox_count(const struct inbox *in, int queue)
{
	const struct message *m;
	long long n = 0;

	TAILQ_FOREACH(m, &in->queues[queue].all, own)
		n += !m->lost && !m->gone;
	return n;
}
