/*
 * mq-stats: the table of connections.
 */
#include "stats.h"

#include <stdio.h>

static const struct stats_column columns[] = {
    {.title = "CONNECTION", .text = true},
    {.title = "STATE", .text = true},
    {.title = "HOST", .text = true},
    {.title = "PID"},
    {.title = "QUEUE", .text = true},
    {.title = "UNACKED"},
    {.title = "CONSUMERS"},
};

/* One line; consumed may be NULL: it consumes nothing. */
static void
add_row(struct stats_table *t, const struct mq_connection_stats *c,
    const struct mq_consumed *consumed)
{
	bool live = c->ttl_ms > 0;

	stats_table_name(t, c->name, STATS_PLAIN);
	stats_table_text(
	    t, live ? "live" : "dead", live ? STATS_PLAIN : STATS_RED);
	stats_table_name(t, c->host != NULL ? c->host : "-", STATS_PLAIN);
	if (c->pid > 0)
		stats_table_number(t, c->pid, STATS_PLAIN);
	else
		stats_table_text(t, "-", STATS_PLAIN);
	if (consumed == NULL) {
		stats_table_text(t, "-", STATS_PLAIN);
		stats_table_text(t, "-", STATS_PLAIN);
		stats_table_text(t, "-", STATS_PLAIN);
		return;
	}
	stats_table_name(t, consumed->queue, STATS_PLAIN);
	stats_table_number(t, consumed->unacked, STATS_PLAIN);
	stats_table_number(t, consumed->consumers, STATS_PLAIN);
}

void
stats_connections_table(const struct mq_stats *stats, struct stats_table *t)
{
	const struct mq_connection_stats *c;
	int i, k;

	*t = (struct stats_table){
	    .columns = columns, .count = sizeof(columns) / sizeof(columns[0])};
	for (i = 0; i < stats->connection_count; i++) {
		c = &stats->connections[i];
		if (c->count == 0)
			add_row(t, c, NULL);
		for (k = 0; k < c->count; k++)
			add_row(t, c, &c->consumed[k]);
	}
}
