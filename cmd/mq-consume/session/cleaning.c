#include "cleaning.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/say.h"
#include "redis/connection.h"

/* Between two rounds, in seconds. */
#define CLEAN_S 60.0

struct round {
	bool failed;
	char error[512]; /* failed: why */
	struct mq_cleaned cleaned;
};

static void
run_round(void *arg, void *result)
{
	const struct cleaning *cl = arg;
	struct round *round = result;
	const struct mq_clean how = {.limit = MQ_ATTEMPTS,
	    .scan_from = cl->scan_from,
	    .self = cl->connection};
	struct mq_redis r;

	if (mq_redis_open(&r, cl->server) == -1 ||
	    cl->layout->clean(&r, &how, &round->cleaned) == -1) {
		round->failed = true;
		snprintf(round->error, sizeof(round->error), "%s", r.error);
	}
	mq_redis_close(&r);
}

static void
say_cleaned(const struct cleaning *cl, const struct mq_cleaned *n)
{
	if (n->connections == 0 || cl->quiet)
		return;
	if (cl->verbose || n->returned > 0 || n->rejected > 0)
		mq_say("%ld dead %s cleaned up: %ld message%s returned, %ld "
		       "rejected",
		    n->connections,
		    n->connections == 1 ? "connection" : "connections",
		    n->returned, n->returned == 1 ? "" : "s", n->rejected);
}

static void
on_round(void *arg, const void *result)
{
	struct cleaning *cl = arg;
	const struct round died = {.failed = true};
	const struct round *round = result != NULL ? result : &died;
	const struct mq_cleaned *n = &round->cleaned;
	double wait = CLEAN_S;

	if (!round->failed && n->next_ms >= 0 &&
	    (double)n->next_ms / 1000 + 0.1 < wait)
		wait = (double)n->next_ms / 1000 + 0.1;
	cl->next = mq_clock_steady_s() + wait;
	cl->scan_from = n->scan_at;
	if (!round->failed)
		say_cleaned(cl, n);
	/* The session reports a lost link itself, and the next round tries
	 * again. */
	else if (cl->verbose && !cl->quiet && round->error[0] != '\0')
		mq_say("%s", round->error);
}

static void
begin_round(struct cleaning *cl)
{
	(void)mq_helper_start(&cl->helper, cl->children, sizeof(struct round),
	    run_round, on_round, cl);
}

void
cleaning_tick(struct cleaning *cl)
{
	if (cl->wanted && mq_clock_steady_s() >= cl->next)
		begin_round(cl);
}

void
cleaning_soon(struct cleaning *cl)
{
	cl->next = 0;
}

bool
cleaning_is_over(struct cleaning *cl)
{
	if (cl->wanted && cl->next == 0)
		begin_round(cl);
	return !mq_helper_runs(&cl->helper);
}

void
cleaning_end(struct cleaning *cl)
{
	mq_helper_kill(&cl->helper);
}
