/*
 * Queues that are paused: nothing is claimed from them, and what has been
 * claimed and not started goes back to the front.  Scripts that run end as
 * they would.
 */
#include <stdlib.h>

#include "base/say.h"
#include "base/xalloc.h"
#include "consume.h"
#include "executor.h"

/*
 * A pause is noticed as anything else is.  But with no room for more messages
 * nothing is claimed, and so nothing would tell that those in hand have been
 * paused.  Then a claim of none looks, on the tick and, since there may be
 * other news all the time, not more often than this.
 */
#define LOOK_S 0.1

static void
on_look(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)events;
	ev_timer_stop(loop, w);
	claim_look(w->data);
}

void
pause_init(struct consumer *c)
{
	ev_timer_init(&c->look_timer, on_look, 0, LOOK_S);
	c->look_timer.data = c;
}

void
pause_look_soon(struct consumer *c)
{
	if (!TAILQ_EMPTY(&c->messages) && !ev_is_active(&c->look_timer))
		ev_timer_again(c->loop, &c->look_timer);
}

bool
pause_matters(const struct consumer *c, int queue)
{
	const struct queue *q = &c->queues[queue];

	return q->held > 0 || q->paused ||
	    (!c->executor->runs && c->running > 0);
}

void
pause_seen(struct consumer *c, int queue, bool paused)
{
	struct queue *q = &c->queues[queue];

	if (q->paused != paused && !c->opt->quiet)
		mq_say("%s: %s", c->opt->queues[queue],
		    paused ? "paused" : "resumed");
	q->paused = paused;
	/* Who is stopping gives everything back, in its own order. */
	if (!paused || policy_level(&c->policy) >= STOP_SOON)
		return;
	c->executor->take_back(c, queue);
	settle_held_of(c, queue);
}

struct pause_request {
	struct consumer *c;
	int queue;
};

/* Refused or not, the message that asked for it is settled. */
static void
on_pause(void *arg, const struct mq_answer *answer)
{
	struct pause_request *p = arg;
	struct consumer *c = p->c;
	int queue = p->queue;

	free(p);
	c->queues[queue].pausing--;
	if (answer == NULL)
		return;
	if (answer->error != NULL) {
		link_complain(c, answer->error);
		return;
	}
	pause_seen(c, queue, true);
	claim_look(c);
}

/* Until the server has answered, nothing of the queue is started. */
void
pause_send(const struct message *m)
{
	struct consumer *c = m->c;
	struct pause_request *p;

	if (m->pause_ms <= 0)
		return;
	p = mq_xcalloc(1, sizeof(*p));
	*p = (struct pause_request){c, m->queue};
	c->queues[m->queue].pausing++;
	mq_consumer_pause(
	    &c->self, c->opt->queues[m->queue], m->pause_ms, on_pause, p);
}
