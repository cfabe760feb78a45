/*
 * Acks wait for each other, and the oldest messages of a queue are acked
 * together: one step for many, and their bytes need not be sent again.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "consume.h"
#include "executor.h"
#include "message/headers.h"

/*
 * While there is more to run, so that the server is not woken up for each of
 * many short runs.  After a crash, so many are repeated at most; and then, for
 * a while, none waits, so that a message that kills its consumer is soon the
 * oldest unacked one, which a cleaner charges with the crash.
 */
#define COMPANY	     16
#define COMPANY_S    0.02
#define COMPANY_MANY 250 /* where many run at once */
#define MANY_S	     0.005
/* What is sent, or looked at there, at once, if that must be. */
#define BYTES_MAX ((size_t)1 << 20)
/* Fewer are as well acked one by one. */
#define TOGETHER_MIN 4

/* Some that are acked in one step. */
struct together {
	struct consumer *c;
	bool holds; /* some may hold a key or a group */
	bool twins; /* some may be equal to others; never both */
	int n;
	struct message *m[];
};

void
acks_forget(struct message *m)
{
	if (!m->waits)
		return;
	TAILQ_REMOVE(&m->c->company, m, waiting);
	m->c->company_count--;
	m->c->queues[m->queue].company--;
	m->waits = false;
}

static void
on_acked(void *arg, const struct mq_answer *answer, enum mq_settled how)
{
	struct together *t = arg;
	struct consumer *c = t->c;
	bool good = answer != NULL && answer->error == NULL;
	bool done = good && how == MQ_SETTLED;
	int i;

	for (i = 0; i < t->n; i++)
		if (done || !good)
			settle_answered(t->m[i], answer, how);
		else
			settle_again(t->m[i]);
	if (!done)
		c->in_order = false;
	free(t);
	engine_mark(c);
}

/*
 * The oldest messages of the queue that the server still has when it comes to
 * what is sent now, as far as they can be acked together.
 */
static struct together *
oldest(struct consumer *c, int queue)
{
	struct together *t = mq_xcalloc(
	    1, sizeof(*t) + (size_t)c->queues[queue].company * sizeof(t->m[0]));
	struct message *m;
	size_t bytes = 0;
	bool holds, twins;

	t->c = c;
	TAILQ_FOREACH(m, &c->messages, link) {
		if (m->queue != queue || m->in_flight)
			continue;
		if (!m->waits || result_wanted(m))
			break;
		holds = t->holds || mq_message_holds(&m->envelope);
		twins = t->twins || m->twin;
		bytes += m->len;
		if ((holds && twins) || ((holds || twins) && bytes > BYTES_MAX))
			break;
		t->holds = holds;
		t->twins = twins;
		t->m[t->n++] = m;
		if (t->n == c->queues[queue].company)
			break;
	}
	return t;
}

static void
send_together(struct consumer *c, int queue)
{
	struct together *t = oldest(c, queue);
	struct mq_part *elements;
	int i;

	if (t->n < TOGETHER_MIN) {
		free(t);
		return;
	}
	elements = mq_xcalloc((size_t)t->n, sizeof(*elements));
	for (i = 0; i < t->n; i++) {
		elements[i] = (struct mq_part){t->m[i]->element, t->m[i]->len};
		settle_sent(t->m[i]);
	}
	mq_consumer_ack_oldest(&c->self, queue,
	    &(struct mq_acks){elements, t->n, t->holds, t->twins}, on_acked, t);
	free(elements);
}

void
acks_send(struct consumer *c)
{
	int queue;

	ev_timer_stop(c->loop, &c->settle_timer);
	if (c->in_order && c->company_count >= TOGETHER_MIN &&
	    c->link == LINK_UP)
		for (queue = 0; queue < c->opt->queue_count; queue++)
			if (c->queues[queue].company >= TOGETHER_MIN)
				send_together(c, queue);
	while (c->link == LINK_UP && !TAILQ_EMPTY(&c->company))
		settle_send(TAILQ_FIRST(&c->company));
}

/* The next of its group is all that there may be to do. */
static bool
keeps_others_waiting(const struct message *m)
{
	return m->c->held == 0 && m->c->running == 0 &&
	    mq_message_holds(&m->envelope);
}

void
acks_wait(struct message *m)
{
	struct consumer *c = m->c;
	bool many = c->executor->many;
	int enough = many ? COMPANY_MANY : COMPANY;

	m->waits = true;
	TAILQ_INSERT_TAIL(&c->company, m, waiting);
	c->queues[m->queue].company++;
	if (++c->company_count >= enough ||
	    (c->held == 0 && c->executor->runs && (!many || c->running == 0)) ||
	    keeps_others_waiting(m) || m->awaited ||
	    (!c->executor->bulk && policy_is_careful(&c->policy)))
		acks_send(c);
	else if (!ev_is_active(&c->settle_timer))
		ev_timer_again(c->loop, &c->settle_timer);
}

static void
on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	acks_send(w->data);
}

void
acks_init(struct consumer *c)
{
	c->in_order = true;
	TAILQ_INIT(&c->company);
	ev_timer_init(&c->settle_timer, on_timer, 0,
	    c->executor->many ? MANY_S : COMPANY_S);
	c->settle_timer.data = c;
}
