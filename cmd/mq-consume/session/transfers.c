#include "session.h"

#include <stdio.h>

#include "base/say.h"
#include "mq-consume/rules.h"
#include "redis/connection.h"

struct round {
	char error[512]; /* empty: none */
};

/* to: NULL: nothing goes there. */
static int
finish(const struct transfers *t, struct mq_redis *r, int queue, const char *to)
{
	return to == NULL ?
	    0 :
	    t->opt->layout->finish_pushes(r, &t->opt->queues[queue], 1, to);
}

static void
run_round(void *arg, void *result)
{
	const struct transfers *t = arg;
	struct round *round = result;
	struct mq_redis r;
	int i, rv = mq_redis_open(&r, t->server);

	for (i = 0; i < t->opt->queue_count && rv == 0; i++)
		if (finish(t, &r, i, rules_of(t->opt, i)->push) == -1 ||
		    finish(t, &r, i, rules_of(t->opt, i)->notify) == -1)
			rv = -1;
	if (rv == -1)
		snprintf(round->error, sizeof(round->error), "%s", r.error);
	mq_redis_close(&r);
}

static void
take_round(struct transfers *t, const struct round *round)
{
	bool failed = round == NULL || round->error[0] != '\0';

	if (failed && round != NULL && !t->failing && !t->opt->quiet)
		mq_say("%s", round->error);
	t->wanted |= failed;
	t->failing = failed;
}

static void on_round(void *arg, const void *result);

static void
start_round(struct transfers *t)
{
	if (!t->wanted || mq_helper_runs(&t->helper))
		return;
	t->wanted = mq_helper_start(&t->helper, t->children,
			sizeof(struct round), run_round, on_round, t) == -1;
}

/* An error waits for the next tick. */
static void
on_round(void *arg, const void *result)
{
	struct transfers *t = arg;
	bool more = t->wanted;

	take_round(t, result);
	if (more)
		start_round(t);
}

void
transfers_begin(struct transfers *t)
{
	if (t->opt->layout->finish_pushes == NULL ||
	    t->server->url.kind != MQ_URL_CLUSTER)
		return;
	t->wanted = true;
	start_round(t);
}

void
transfers_tick(struct transfers *t)
{
	start_round(t);
}

void
transfers_end(struct transfers *t)
{
	struct round round = {.error = ""};

	if (!t->wanted && !mq_helper_runs(&t->helper))
		return;
	mq_helper_kill(&t->helper);
	run_round(t, &round);
	take_round(t, &round);
}
