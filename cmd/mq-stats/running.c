#include "stats.h"

#include "base/clock.h"
#include "message/json.h"

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

void
running_fill(const struct mq_runs *runs, int64_t now_ms, struct table *t)
{
	static const struct column columns[] = {
	    {.title = "QUEUE", .text = true},
	    {.title = "ID", .text = true},
	    {.title = "ATTEMPT"},
	    {.title = "HOST", .text = true},
	    {.title = "PID", .name = true},
	    {.title = "SECONDS"},
	    {.title = "SCRIPT", .text = true},
	    {.title = "TEXT", .text = true},
	};
	int i;

	*t = (struct table){
	    .columns = columns, .count = sizeof(columns) / sizeof(columns[0])};
	for (i = 0; i < runs->count; i++)
		add_run(t, &runs->runs[i], now_ms);
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
	struct table table;

	if (json) {
		print_run_json(&m->runs, now_ms);
	} else if (m->runs.count > 0) {
		running_fill(&m->runs, now_ms, &table);
		table_print(&table);
	}
}
