#include "session.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/say.h"
#include "redis/connection.h"

/* Seconds between two looks; a bit less than a tick. */
#define DRAIN_S 0.9

struct look {
	bool drained;
	char error[512]; /* empty: none */
};

static void
look_at_queues(void *arg, void *result)
{
	const struct drain *d = arg;
	struct look *look = result;
	struct mq_redis r;

	if (mq_redis_open(&r, d->server) == -1 ||
	    d->opt->layout->drained(&r, d->opt->queues, d->opt->queue_count,
		&look->drained) == -1) {
		look->drained = false;
		snprintf(look->error, sizeof(look->error), "%s", r.error);
	}
	mq_redis_close(&r);
}

static void
on_looked(void *arg, const void *result)
{
	struct drain *d = arg;
	const struct look *look = result;

	d->next = mq_clock_steady_s() + DRAIN_S;
	if (look == NULL)
		return;
	if (look->error[0] != '\0' && !d->opt->quiet)
		mq_say("%s", look->error);
	if (look->drained)
		tell(d, FACT_DRAINED);
}

void
drain_look(struct drain *d)
{
	if (mq_clock_steady_s() >= d->next)
		(void)mq_helper_start(&d->helper, d->children,
		    sizeof(struct look), look_at_queues, on_looked, d);
}

void
drain_soon(struct drain *d)
{
	d->next = 0;
}

void
drain_end(struct drain *d)
{
	mq_helper_kill(&d->helper);
}
