#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"

/* How many of n queues have a line of their own; height as of struct view. */
static int
count_lines(const struct model *m, int n, int height, bool total)
{
	int room = height - 1 - total, lines = n;

	if (m->order.limit > 0 && m->order.limit < lines)
		lines = (int)m->order.limit;
	/* The rest has one line, too. */
	if (height > 0 && lines + (lines < n) > room)
		lines = room > 1 ? room - 1 : 0;
	return lines;
}

/* The first rows go behind the others. */
static void
scroll_rows(const struct mq_queue_stats **rows, int n, int by)
{
	size_t size = (size_t)by * sizeof(*rows);
	void *first = memcpy(mq_xcalloc(size, 1), rows, size);

	memmove(rows, rows + by, (size_t)(n - by) * sizeof(*rows));
	memcpy(rows + n - by, first, size);
	free(first);
}

/* The marked row is among those that have a line. */
static void
mark_row(const struct model *m, const struct mq_queue_stats **rows, int n,
    int lines, struct table *t)
{
	if (m->order.marked == NULL || lines == 0)
		return;
	t->marked = order_marked(m, rows, n) + 1;
	if (t->marked > lines) {
		scroll_rows(rows, n, t->marked - lines);
		t->marked = lines;
	}
}

static void
fill_queues(const struct model *m, int height, struct table *t)
{
	int64_t now_ms = m->stats.now_ms;
	struct mq_queue_stats sum;
	char rest[32], total[] = "TOTAL";
	int i, n, lines;
	const struct mq_queue_stats **rows = order_rows(m, &n);

	table_columns(t, queue_fields);
	t->total = m->stats.count > 1;
	lines = count_lines(m, n, height, t->total);
	t->rest = lines < n;
	mark_row(m, rows, n, lines, t);
	for (i = 0; i < lines; i++)
		table_add(t, queue_fields, rows[i], now_ms);
	if (t->rest) {
		sum = model_sum(rows + lines, n - lines);
		snprintf(rest, sizeof(rest), "%d more", n - lines);
		sum.name = rest;
		table_add(t, queue_fields, &sum, now_ms);
	}
	free(rows);
	if (t->total) {
		sum = model_total(m);
		sum.name = total;
		table_add(t, queue_fields, &sum, now_ms);
	}
}

/* A line for each queue that one consumes, or one, if there is none. */
static void
fill_connections(const struct model *m, struct table *t)
{
	const struct mq_connection_stats *c = m->stats.connections;
	int i;

	table_columns(t, connection_fields);
	table_columns(t, consumed_fields);
	for (; c < m->stats.connections + m->stats.connection_count; c++)
		for (i = 0; i == 0 || i < c->count; i++) {
			table_add(t, connection_fields, c, 0);
			table_add(t, consumed_fields,
			    c->count > 0 ? &c->consumed[i] : NULL, 0);
		}
}

void
running_fill(const struct mq_runs *runs, int64_t now_ms, struct table *t)
{
	int i;

	*t = (struct table){0};
	table_columns(t, run_fields);
	for (i = 0; i < runs->count; i++)
		table_add(t, run_fields, &runs->runs[i], now_ms);
}

void
running_print(const struct mq_runs *runs, bool json)
{
	int64_t now_ms = mq_clock_unix_us() / 1000;
	struct table table;

	if (json) {
		text_json_line(fields_list(run_fields, runs->runs,
		    sizeof(*runs->runs), runs->count, now_ms));
	} else if (runs->count > 0) {
		running_fill(runs, now_ms, &table);
		table_print(&table);
	}
}

void
tables_fill(
    const struct model *m, bool connections, int height, struct table *t)
{
	*t = (struct table){0};
	if (connections)
		fill_connections(m, t);
	else
		fill_queues(m, height, t);
}
