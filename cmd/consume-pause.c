/*
 * Queues that are paused: nothing is claimed from them, and what has been
 * claimed and not started goes back to the front.  Scripts that run end as
 * they would.
 */
#include "consume.h"
#include "say.h"

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
	    (c->opt->command == NULL && c->running > 0);
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
	if (!paused || c->stop >= STOP_SOON)
		return;
	if (c->opt->command == NULL)
		print_take_back(c, queue);
	settle_held_of(c, queue);
}
