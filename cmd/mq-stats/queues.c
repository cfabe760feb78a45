/*
 * mq-stats: the table of queues, and numbers as it shows them.
 */
#include "stats.h"

#include <stdio.h>
#include <string.h>

static const struct stats_column columns[] = {
    {.title = "QUEUE", .text = true},
    {.title = "READY"},
    {.title = "DELAYED"},
    {.title = "UNACKED"},
    {.title = "REJECTED"},
    {.title = "CONSUMERS"},
    {.title = "AGE"},
    {.title = "IN/S"},
    {.title = "OUT/S"},
    {.title = "NOTE", .text = true, .optional = true},
};

double
stats_age_s(const struct mq_stats *stats, int64_t since_ms)
{
	return since_ms < stats->now_ms ?
	    (double)(stats->now_ms - since_ms) / 1000 :
	    0;
}

void
stats_age_text(char *out, size_t size, double seconds)
{
	long long s = (long long)seconds;

	if (s < 60)
		snprintf(out, size, "%llds", s);
	else if (s < 3600)
		snprintf(out, size, "%lldm", s / 60);
	else if (s < 86400)
		snprintf(out, size, "%lldh", s / 3600);
	else
		snprintf(out, size, "%lldd", s / 86400);
}

bool
stats_repeated(const struct mq_stats *stats, int i)
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
add(struct mq_queue_stats *sum, const struct mq_queue_stats *q)
{
	if (!q->refuse)
		add_waiting(sum, q);
	sum->rejected += q->rejected;
	sum->consumers += q->consumers;
	sum->dead_consumers += q->dead_consumers;
	add_rate(&sum->in_s, q->in_s);
	add_rate(&sum->out_s, q->out_s);
}

/* As they are unless they were named: then no name can be there twice. */
static bool
ascending(const struct mq_stats *stats)
{
	int i;

	for (i = 1; i < stats->count; i++)
		if (strcmp(stats->queues[i - 1].name, stats->queues[i].name) >=
		    0)
			return false;
	return true;
}

struct mq_queue_stats
stats_total(const struct mq_stats *stats)
{
	struct mq_queue_stats sum = {.in_s = -1, .out_s = -1};
	bool unique = ascending(stats);
	int i;

	for (i = 0; i < stats->count; i++)
		if (unique || !stats_repeated(stats, i))
			add(&sum, &stats->queues[i]);
	return sum;
}

/* "-": nothing waits; "?": something does, and nobody knows for how long. */
static void
add_age(struct stats_table *t, const struct mq_stats *stats, int64_t since_ms)
{
	char text[24] = "-";

	if (since_ms < 0)
		strcpy(text, "?");
	else if (since_ms > 0)
		stats_age_text(
		    text, sizeof(text), stats_age_s(stats, since_ms));
	stats_table_text(t, text, STATS_PLAIN);
}

/* One digit behind the point, but for 10 and more. */
static void
add_rate_cell(struct stats_table *t, double rate)
{
	char text[32];

	if (rate < 0)
		stats_table_text(t, "-", STATS_PLAIN);
	else if (rate < 0.05)
		stats_table_text(t, "0.0", STATS_PLAIN);
	else {
		snprintf(
		    text, sizeof(text), rate < 9.95 ? "%.1f" : "%.0f", rate);
		stats_table_text(t, text, STATS_PLAIN);
	}
}

static void
add_note(struct stats_table *t, const struct mq_stats *stats,
    const struct mq_queue_stats *q)
{
	struct mq_buf text = {0};
	char left[24];

	if (q->paused_ms != 0)
		mq_buf_addstr(&text, "paused");
	if (q->paused_ms > 0) {
		stats_age_text(left, sizeof(left),
		    (double)(q->paused_ms - stats->now_ms) / 1000);
		mq_buf_printf(&text, " for %s", left);
	}
	if (q->dead_consumers > 0)
		mq_buf_printf(&text, "%s%lld dead consumer%s",
		    text.len > 0 ? ", " : "", q->dead_consumers,
		    q->dead_consumers == 1 ? "" : "s");
	stats_table_text(t, mq_buf_str(&text), STATS_YELLOW);
	mq_buf_free(&text);
}

static void
add_row(struct stats_table *t, const struct mq_stats *stats, const char *name,
    const struct mq_queue_stats *q)
{
	stats_table_name(
	    t, name, q->paused_ms != 0 ? STATS_YELLOW : STATS_PLAIN);
	stats_table_number(t, q->ready, STATS_PLAIN);
	stats_table_number(t, q->delayed, STATS_PLAIN);
	stats_table_number(t, q->unacked, STATS_PLAIN);
	stats_table_number(
	    t, q->rejected, q->rejected > 0 ? STATS_RED : STATS_PLAIN);
	stats_table_number(t, q->consumers, STATS_PLAIN);
	add_age(t, stats, q->oldest_ms);
	add_rate_cell(t, q->in_s);
	add_rate_cell(t, q->out_s);
	add_note(t, stats, q);
}

void
stats_queues_table(const struct mq_stats *stats, struct stats_table *t)
{
	struct mq_queue_stats total;
	int i;

	*t = (struct stats_table){.columns = columns,
	    .count = sizeof(columns) / sizeof(columns[0]),
	    .total = stats->count > 1};
	for (i = 0; i < stats->count; i++)
		add_row(t, stats, stats->queues[i].name, &stats->queues[i]);
	if (!t->total)
		return;
	total = stats_total(stats);
	add_row(t, stats, "TOTAL", &total);
}
