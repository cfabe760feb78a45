#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"

/* height: as of struct view. */
static void
fill_queues(const struct model *m, int height, struct table *t)
{
	int64_t now_ms = m->stats.now_ms;
	struct mq_queue_stats sum = {.in_s = -1, .out_s = -1};
	char rest[32], total[] = "TOTAL";
	int i, n, room, lines, first = 0, marked;
	const struct mq_queue_stats **rows = order_rows(m, &n, &marked);

	table_columns(t, queue_fields);
	t->total = m->stats.count > 1;
	room = height - 1 - t->total;
	lines =
	    m->order.limit > 0 && m->order.limit < n ? (int)m->order.limit : n;
	/* The rest has one line, too. */
	if (height > 0 && lines + (lines < n) > room)
		lines = room > 1 ? room - 1 : 0;
	t->rest = lines < n;
	if (m->order.marked != NULL && lines > 0)
		t->marked = marked + 1;
	/* The marked row is among those that have a line. */
	if (t->marked > lines) {
		first = t->marked - lines;
		t->marked = lines;
	}
	for (i = 0; i < lines; i++)
		table_add(t, queue_fields, rows[first + i], now_ms);
	if (t->rest) {
		for (i = lines; i < n; i++)
			model_add(&sum, rows[(first + i) % n]);
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

void
tables_fill(
    const struct model *m, bool connections, int height, struct table *t)
{
	const struct mq_connection_stats *c = m->stats.connections;
	int i;

	*t = (struct table){0};
	if (!connections) {
		fill_queues(m, height, t);
		return;
	}
	table_columns(t, connection_fields);
	table_columns(t, consumed_fields);
	/* A line for each queue that one consumes, or one, if there is none. */
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
