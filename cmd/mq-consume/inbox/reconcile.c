/*
 * Compares the messages that the server holds for us with ours.
 */
#include <string.h>

#include "inbox.h"

static struct message *
find_unseen(struct inbox *in, int queue, const struct mq_element *element,
    struct message *from)
{
	struct message *m;

	for (m = from; m != NULL; m = TAILQ_NEXT(m, link))
		if (!m->seen && !m->lost && m->queue == queue &&
		    m->len == element->len &&
		    memcmp(m->element, element->data, m->len) == 0)
			return m;
	if (from == TAILQ_FIRST(&in->all))
		return NULL;
	return find_unseen(in, queue, element, TAILQ_FIRST(&in->all));
}

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

/*
 * Marks our messages that the server holds, and adds the others.  The server lists
 * the newest first, we the oldest.  Both orders are about the same, so each
 * search begins where the last one ended.
 */
static void
mark_held(struct inbox *in, int queue, struct mq_held *held, int newer)
{
	struct message *m, *at = TAILQ_FIRST(&in->all);
	int i;

	for (i = held->n; i-- > newer;) {
		m = at == NULL ? NULL :
				 find_unseen(in, queue, &held->elements[i], at);
		if (m == NULL) {
			take_unanswered(in, queue, &held->elements[i]);
			inbox_disorder(in);
			continue;
		}
		m->seen = true;
		at = TAILQ_NEXT(m, link);
		if (at == NULL)
			at = TAILQ_FIRST(&in->all);
	}
	while (newer > 0)
		take_unanswered(in, queue, &held->elements[--newer]);
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
	struct message *m, *next, *other;

	TAILQ_FOREACH(m, &in->all, link)
		m->seen = false;
	mark_held(in, queue, held, count_unanswered(in, queue, held));
	TAILQ_FOREACH(m, &in->all, link) {
		if (!is_missing(m, queue))
			continue;
		/* Of equal messages, the first settled one is gone. */
		other = equals_settled(&in->equals, m);
		if (other != NULL) {
			other->seen = false;
			m->seen = true;
		}
	}
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
