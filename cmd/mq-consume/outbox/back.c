/*
 * Messages that go back unstarted, to the front of their queue.  The newest go
 * first, so the oldest ends up in front.  One command gives back the newest
 * messages of a queue that the server holds for us.  The next command waits for
 * its answer: other clients of the server have their turn meanwhile.
 *
 * If these are not the newest, as another message has not ended yet, they go one
 * by one.
 */
#include "outbox.h"

#include <stdlib.h>

#include "base/xalloc.h"

/* The most of one command, which takes the server a few milliseconds. */
#define BACK_MAX   500
#define BACK_BYTES ((size_t)1 << 20)
/* Fewer messages are sent one by one, unless the first is long: alone it is copied. */
#define BACK_MIN  4
#define BACK_LONG 4096

struct back_batch {
	struct outbox *outbox;
	int n;
	struct message *m[];
};

void
outbox_give_back(struct outbox *o, struct message *m)
{
	struct messages *line = &o->back_of[m->queue];
	struct message *other = TAILQ_LAST(line, messages);

	m->outcome = MQ_OUTCOME_FRONT;
	m->state = MESSAGE_SETTLING;
	m->goes_back = true;
	o->settling++;
	o->back_count++;
	while (other != NULL && other->number < m->number)
		other = TAILQ_PREV(other, messages, line);
	if (other == NULL)
		TAILQ_INSERT_HEAD(line, m, line);
	else
		TAILQ_INSERT_AFTER(line, other, m, line);
	tell(o, FACT_WAKE);
}

bool
outbox_gives_back(const struct outbox *o, int queue)
{
	return !TAILQ_EMPTY(&o->back_of[queue]);
}

/* Without an answer, or beyond the bounds of the command, a message stays in
 * line. */
static void
end_batch(struct back_batch *b, const struct mq_answer *answer, long long done)
{
	struct outbox *o = b->outbox;
	struct message *m;
	int i;

	o->back_sent = 0;
	for (i = 0; i < b->n; i++) {
		m = b->m[i];
		if (i < done) {
			settlement_answered(o, m, answer, MQ_SETTLED);
		} else if (answer == NULL || done > 0) {
			m->sent &= answer == NULL;
			settlement_answered(o, m, NULL, MQ_SETTLED_LOST);
		} else {
			settlement_out_of_line(o, m);
			settlement_again(o, m);
		}
	}
}

static void
on_given_back(void *arg, const struct mq_answer *answer, long long n)
{
	struct back_batch *b = arg;
	struct outbox *o = b->outbox;

	end_batch(b, answer, n);
	free(b);
	tell(o, FACT_WAKE);
}

/* The next messages of a line that go together. */
static struct back_batch *
collect_newest(struct outbox *o, int queue)
{
	struct back_batch *b =
	    mq_xcalloc(1, sizeof(*b) + BACK_MAX * sizeof(b->m[0]));
	struct message *m;
	size_t bytes = 0;

	b->outbox = o;
	TAILQ_FOREACH(m, &o->back_of[queue], line) {
		bytes += m->len;
		if (b->n == BACK_MAX || (b->n > 0 && bytes > BACK_BYTES))
			break;
		b->m[b->n++] = m;
	}
	return b;
}

static void
send_one_by_one(struct outbox *o, struct back_batch *b)
{
	int i;

	for (i = 0; i < b->n; i++) {
		settlement_out_of_line(o, b->m[i]);
		settlement_send(o, b->m[i]);
	}
	free(b);
}

static void
send_next(struct outbox *o, int queue)
{
	struct back_batch *b = collect_newest(o, queue);
	struct mq_part elements[BACK_MAX];
	struct mq_newest newest = {.elements = elements,
	    .n = b->n,
	    .each = !inbox_in_order(o->inbox, queue)};
	int i;

	if (b->n < BACK_MIN && b->m[0]->len < BACK_LONG) {
		send_one_by_one(o, b);
		return;
	}
	for (i = 0; i < b->n; i++) {
		elements[i] = (struct mq_part){b->m[i]->element, b->m[i]->len};
		newest.each |= b->m[i]->equal;
		settlement_sent(o, b->m[i]);
	}
	o->back_sent = b->n;
	mq_consumer_give_back(o->server, queue, &newest, on_given_back, b);
}

void
outbox_send_back(struct outbox *o)
{
	int queue;

	for (queue = 0; queue < o->opt->queue_count && o->back_count > 0;
	     queue++)
		while (outbox_gives_back(o, queue) && o->back_sent == 0 &&
		    !equal_under_way(o, queue) && session_is_up(o->session))
			send_next(o, queue);
}
