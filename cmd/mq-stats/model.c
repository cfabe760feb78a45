#include "model.h"

#include <stdlib.h>
#include <string.h>

double
model_age_s(const struct model *m, int64_t since_ms)
{
	return since_ms < m->stats.now_ms ?
	    (double)(m->stats.now_ms - since_ms) / 1000 :
	    0;
}

/* Whether row i is of a queue that an earlier row is of, too. */
static bool
is_repeated(const struct mq_stats *stats, int i)
{
	int k;

	for (k = 0; k < i; k++)
		if (strcmp(stats->queues[k].name, stats->queues[i].name) == 0)
			return true;
	return false;
}

static void
add_rate(double *sum, double rate)
{
	if (rate >= 0)
		*sum = *sum < 0 ? rate : *sum + rate;
}

static void
add_waiting(struct mq_queue_stats *sum, const struct mq_queue_stats *q)
{
	sum->ready += q->ready;
	sum->delayed += q->delayed;
	sum->unacked += q->unacked;
	if (q->oldest_ms > 0 ?
		sum->oldest_ms <= 0 || q->oldest_ms < sum->oldest_ms :
		q->oldest_ms != 0 && sum->oldest_ms == 0)
		sum->oldest_ms = q->oldest_ms;
}

static void
sum_queue(struct mq_queue_stats *sum, const struct mq_queue_stats *q)
{
	if (!q->refuse)
		add_waiting(sum, q);
	sum->rejected += q->rejected;
	sum->consumers += q->consumers;
	sum->dead_consumers += q->dead_consumers;
	add_rate(&sum->in_s, q->in_s);
	add_rate(&sum->out_s, q->out_s);
}

/* Queues that were not named are: then no name can be there twice. */
static bool
is_ascending(const struct mq_stats *stats)
{
	int i;

	for (i = 1; i < stats->count; i++)
		if (strcmp(stats->queues[i - 1].name, stats->queues[i].name) >=
		    0)
			return false;
	return true;
}

struct mq_queue_stats
model_total(const struct model *m)
{
	const struct mq_stats *stats = &m->stats;
	struct mq_queue_stats sum = {.in_s = -1, .out_s = -1};
	bool unique = is_ascending(stats);
	int i;

	for (i = 0; i < stats->count; i++)
		if (unique || !is_repeated(stats, i))
			sum_queue(&sum, &stats->queues[i]);
	return sum;
}

void
model_free(struct model *m)
{
	int i;

	for (i = 0; m->rejected != NULL && i < m->stats.count; i++)
		rejections_free(&m->rejected[i]);
	free(m->rejected);
	free(m->elsewhere);
	mq_runs_free(&m->runs);
	mq_stats_free(&m->stats);
}
