#include "stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/say.h"

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

/* -1 (not known) as soon as one number is. */
static void
add_count(long long *sum, long long n)
{
	*sum = *sum < 0 || n < 0 ? -1 : *sum + n;
}

static void
add_rate(double *sum, double rate)
{
	if (rate >= 0)
		*sum = *sum < 0 ? rate : *sum + rate;
}

static void
add_age(int64_t *sum, int64_t since_ms)
{
	if (since_ms > 0 ? *sum <= 0 || since_ms < *sum :
			   since_ms != 0 && *sum == 0)
		*sum = since_ms;
}

static void
sum_queue(struct mq_queue_stats *sum, const struct mq_queue_stats *q)
{
	const struct field *f;
	const void *from;
	void *to;

	for (f = queue_fields; f->kind != KIND_END; f++) {
		to = (char *)sum + f->at;
		from = (const char *)q + f->at;
		if (f->sum == SUM_NONE || (q->refuse && f->sum == SUM_OWN))
			continue;
		if (f->kind == KIND_COUNT)
			add_count(to, *(const long long *)from);
		else if (f->kind == KIND_RATE)
			add_rate(to, *(const double *)from);
		else
			add_age(to, *(const int64_t *)from);
	}
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
	if (stats->part)
		sum.ready = sum.delayed = sum.unacked = sum.rejected =
		    sum.consumers = sum.dead_consumers = -1;
	if (sum.ready < 0) {
		sum.oldest_ms = -1;
		sum.in_s = sum.out_s = -1;
	}
	return sum;
}

struct mq_queue_stats
model_sum(const struct mq_queue_stats **rows, int n)
{
	struct mq_queue_stats sum = {.in_s = -1, .out_s = -1};
	int i;

	for (i = 0; i < n; i++)
		sum_queue(&sum, rows[i]);
	return sum;
}

void
model_report_lost(const struct model *m)
{
	size_t i;

	for (i = 0; i < m->lost.n; i++)
		mq_say("%s: %s", m->server, m->lost.list[i].name);
}

void
model_free_elsewhere(struct model *m)
{
	int i;

	for (i = 0; i < m->elsewhere_count; i++)
		free(m->elsewhere[i]);
	free(m->elsewhere);
	m->elsewhere = NULL;
	m->elsewhere_count = 0;
}

void
model_free(struct model *m)
{
	int i;

	for (i = 0; m->rejected != NULL && i < m->stats.count; i++)
		rejections_free(&m->rejected[i]);
	free(m->rejected);
	model_free_elsewhere(m);
	mq_names_free(&m->lost);
	mq_runs_free(&m->runs);
	mq_stats_free(&m->stats);
}
