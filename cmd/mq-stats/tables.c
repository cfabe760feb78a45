#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct column queue_columns[] = {
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

static const struct column connection_columns[] = {
    {.title = "CONNECTION", .text = true},
    {.title = "STATE", .text = true},
    {.title = "HEARTBEAT ON", .text = true, .optional = true},
    {.title = "HOST", .text = true},
    {.title = "PID", .name = true},
    {.title = "QUEUE", .text = true},
    {.title = "QUEUE ON", .text = true, .optional = true},
    {.title = "UNACKED"},
    {.title = "CONSUMERS"},
};

/* One digit behind the point, but for 10 and more. */
static void
add_rate_cell(struct table *t, double rate)
{
	char text[32];

	if (rate < 0)
		table_text(t, "-", STYLE_PLAIN);
	else if (rate < 0.05)
		table_text(t, "0.0", STYLE_PLAIN);
	else {
		snprintf(
		    text, sizeof(text), rate < 9.95 ? "%.1f" : "%.0f", rate);
		table_text(t, text, STYLE_PLAIN);
	}
}

static void
add_note(struct table *t, const struct model *m, const struct mq_queue_stats *q)
{
	struct mq_buf text = {0};
	char left[TEXT_AGE];

	if (q->paused_ms != 0)
		mq_buf_addstr(&text, "paused");
	if (q->paused_ms > 0) {
		text_age(left, (double)(q->paused_ms - m->stats.now_ms) / 1000);
		mq_buf_printf(&text, " for %s", left);
	}
	if (q->dead_consumers > 0)
		mq_buf_printf(&text, "%s%lld dead consumer%s",
		    text.len > 0 ? ", " : "", q->dead_consumers,
		    q->dead_consumers == 1 ? "" : "s");
	if (q->leaving > 0)
		mq_buf_printf(&text, "%s%lld on the way to another queue",
		    text.len > 0 ? ", " : "", q->leaving);
	table_text(t, mq_buf_str(&text), STYLE_YELLOW);
	mq_buf_free(&text);
}

/* "?": not known. */
static void
add_count(struct table *t, long long n, enum style style)
{
	if (n >= 0)
		table_number(t, n, style);
	else
		table_text(t, "?", STYLE_YELLOW);
}

static void
add_queue(struct table *t, const struct model *m, const char *name,
    const struct mq_queue_stats *q)
{
	table_name(t, name, q->paused_ms != 0 ? STYLE_YELLOW : STYLE_PLAIN);
	add_count(t, q->ready, STYLE_PLAIN);
	add_count(t, q->delayed, STYLE_PLAIN);
	add_count(t, q->unacked, STYLE_PLAIN);
	add_count(t, q->rejected, q->rejected > 0 ? STYLE_RED : STYLE_PLAIN);
	add_count(t, q->consumers, STYLE_PLAIN);
	/* "-": nothing waits; "?": something does, nobody knows for how long. */
	table_age(t, m->stats.now_ms, q->oldest_ms);
	add_rate_cell(t, q->in_s);
	add_rate_cell(t, q->out_s);
	add_note(t, m, q);
}

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

static void
add_rest(struct table *t, const struct model *m, const int *rows, int n)
{
	struct mq_queue_stats sum = model_sum(m, rows, n);
	char name[32];

	t->rest = n > 0;
	if (n == 0)
		return;
	snprintf(name, sizeof(name), "%d more", n);
	add_queue(t, m, name, &sum);
}

static void
fill_queues(const struct model *m, int height, struct table *t)
{
	struct mq_queue_stats total;
	int i, n, lines, *rows = order_rows(m, &n);

	*t = (struct table){.columns = queue_columns,
	    .count = sizeof(queue_columns) / sizeof(queue_columns[0]),
	    .total = m->stats.count > 1};
	lines = count_lines(m, n, height, t->total);
	for (i = 0; i < lines; i++)
		add_queue(t, m, m->stats.queues[rows[i]].name,
		    &m->stats.queues[rows[i]]);
	add_rest(t, m, rows + lines, n - lines);
	free(rows);
	if (!t->total)
		return;
	total = model_total(m);
	add_queue(t, m, "TOTAL", &total);
}

/* One line; consumed may be NULL: it consumes nothing. */
static void
add_connection(struct table *t, const struct mq_connection_stats *c,
    const struct mq_consumed *consumed)
{
	bool live = c->ttl_ms > 0;

	table_name(t, c->name, STYLE_PLAIN);
	if (c->unsure)
		table_text(t, "?", STYLE_YELLOW);
	else
		table_text(
		    t, live ? "live" : "dead", live ? STYLE_PLAIN : STYLE_RED);
	table_name(t, c->node != NULL ? c->node : "", STYLE_PLAIN);
	table_name(t, c->host != NULL ? c->host : "-", STYLE_PLAIN);
	if (c->pid > 0)
		table_number(t, c->pid, STYLE_PLAIN);
	else
		table_text(t, "-", STYLE_PLAIN);
	if (consumed == NULL) {
		table_text(t, "-", STYLE_PLAIN);
		table_text(t, "", STYLE_PLAIN);
		table_text(t, "-", STYLE_PLAIN);
		table_text(t, "-", STYLE_PLAIN);
		return;
	}
	table_name(t, consumed->queue, STYLE_PLAIN);
	table_name(
	    t, consumed->node != NULL ? consumed->node : "", STYLE_PLAIN);
	add_count(t, consumed->unacked, STYLE_PLAIN);
	add_count(t, consumed->consumers, STYLE_PLAIN);
}

static void
fill_connections(const struct model *m, struct table *t)
{
	const struct mq_connection_stats *c;
	int i, k;

	*t = (struct table){.columns = connection_columns,
	    .count =
		sizeof(connection_columns) / sizeof(connection_columns[0])};
	for (i = 0; i < m->stats.connection_count; i++) {
		c = &m->stats.connections[i];
		if (c->count == 0)
			add_connection(t, c, NULL);
		for (k = 0; k < c->count; k++)
			add_connection(t, c, &c->consumed[k]);
	}
}

void
tables_fill(
    const struct model *m, bool connections, int height, struct table *t)
{
	if (connections)
		fill_connections(m, t);
	else
		fill_queues(m, height, t);
}
