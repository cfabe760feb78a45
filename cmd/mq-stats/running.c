#include "outputs.h"

#include "base/clock.h"
#include "message.h"
#include "message/json.h"
#include "table.h"

static void
add_run(struct table *t, const struct mq_run *run, int64_t now_ms)
{
	table_name(t, run->queue, STYLE_PLAIN);
	table_name(t, run->id, STYLE_PLAIN);
	table_number(t, run->attempt, STYLE_PLAIN);
	table_name(t, run->host != NULL ? run->host : "-", STYLE_PLAIN);
	table_number(t, run->pid, STYLE_PLAIN);
	table_number(t, run_seconds(run, now_ms), STYLE_PLAIN);
	table_name(t, run->script, STYLE_PLAIN);
	table_name(t, run->text, STYLE_PLAIN);
}

static void
print_run_table(const struct mq_runs *runs, int64_t now_ms)
{
	static const struct column columns[] = {
	    {.title = "QUEUE", .text = true},
	    {.title = "ID", .text = true},
	    {.title = "ATTEMPT"},
	    {.title = "HOST", .text = true},
	    {.title = "PID"},
	    {.title = "SECONDS"},
	    {.title = "SCRIPT", .text = true},
	    {.title = "TEXT", .text = true},
	};
	struct table table = {
	    .columns = columns, .count = sizeof(columns) / sizeof(columns[0])};
	int i;

	for (i = 0; i < runs->count; i++)
		add_run(&table, &runs->runs[i], now_ms);
	table_print(&table);
}

static void
print_run_json(const struct mq_runs *runs, int64_t now_ms)
{
	json_t *list = json_array();
	int i;

	mq_json_must(list != NULL);
	for (i = 0; i < runs->count; i++)
		mq_json_must(json_array_append_new(
				 list, run_json(&runs->runs[i], now_ms)) == 0);
	text_json_line(list);
}

void
running_print(const struct model *m, bool json)
{
	int64_t now_ms = mq_clock_unix_us() / 1000;

	if (json)
		print_run_json(&m->runs, now_ms);
	else if (m->runs.count > 0)
		print_run_table(&m->runs, now_ms);
}
