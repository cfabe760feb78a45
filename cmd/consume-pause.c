/*
 * Queues that are paused: nothing is claimed from them, and what has been
 * claimed and not started goes back to the front.  Scripts that run end as
 * they would.  consume-claim.c looks.
 */
#include "consume.h"
#include "say.h"

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
