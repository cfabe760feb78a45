#include "session.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "redis/connection.h"

/* Between two rounds, in seconds. */
#define CLEAN_S 60.0
/* The cleaner in charge has as much longer to begin the next round. */
#define GRACE_S 5.0
/* Others come at different times. */
#define JITTER_MS 3000

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

/* The keys are ours for so long, in seconds, and a bit longer. */
static void
compete(struct cleaning *cl, double seconds, mq_number_fn *fn)
{
	int64_t ms = (int64_t)((seconds + GRACE_S) * 1000);
	int i, n = cl->consumer->session.queue_count;

	cl->answers = cl->by_queue ? n : 1;
	if (!cl->by_queue)
		mq_consumer_compete(cl->consumer, -1, ms, fn, cl);
	for (i = 0; cl->by_queue && i < n; i++)
		mq_consumer_compete(cl->consumer, i, ms, fn, cl);
}

static void
on_kept(void *arg, const struct mq_answer *answer, long long n)
{
	struct cleaning *cl = arg;

	/* Another one may have the key by now, if this round took long. */
	cl->ours = mq_answer_good(answer) && n == 0;
	cl->answers--;
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
	compete(cl, wait, on_kept);
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

static void
wait_for_others(struct cleaning *cl)
{
	double jitter = arc4random_uniform(JITTER_MS);

	cl->next = mq_clock_steady_s() + ((double)cl->wait_ms + jitter) / 1000;
}

static void
on_competed(void *arg, const struct mq_answer *answer, long long n)
{
	struct cleaning *cl = arg;
	bool away = answer != NULL && answer->missing;
	bool refused = answer != NULL && answer->status == MQ_EXIT_NOPERM;

	cl->answers--;
	if ((refused || away) && !cl->by_queue) {
		cl->by_queue = true;
		cl->away = away;
		compete(cl, CLEAN_S, on_competed);
		return;
	}
	/* A queue whose key is refused is cleaned as ever. */
	if (answer != NULL && n == 0)
		cl->ours = true;
	else if (answer != NULL && n < cl->wait_ms)
		cl->wait_ms = n;
	if (cl->answers > 0 || answer == NULL)
		return;
	if (cl->ours)
		begin_round(cl);
	else
		wait_for_others(cl);
}

static void
begin_competition(struct cleaning *cl)
{
	if (cl->answers > 0 || mq_helper_runs(&cl->helper))
		return;
	cl->ours = false;
	if (cl->away)
		cl->by_queue = cl->away = false;
	cl->wait_ms = (long long)(CLEAN_S * 1000);
	compete(cl, CLEAN_S, on_competed);
}

void
cleaning_tick(struct cleaning *cl)
{
	if (cl->wanted && mq_clock_steady_s() >= cl->next)
		begin_competition(cl);
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
		begin_competition(cl);
	return !cl->wanted ||
	    (cl->next > 0 && cl->answers == 0 && !mq_helper_runs(&cl->helper));
}

void
cleaning_resign(struct cleaning *cl)
{
	if (cl->ours && !cl->by_queue)
		mq_consumer_resign(cl->consumer);
}

void
cleaning_end(struct cleaning *cl)
{
	mq_helper_kill(&cl->helper);
}
