/* --running: the scripts that run now, as their consumers tell. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "message/json.h"
#include "shared/options.h"
#include "stats.h"

static bool
wanted(const struct look *look, const char *queue)
{
	int i;

	for (i = 0; i < look->count; i++)
		if (strcmp(look->queues[i], queue) == 0)
			return true;
	return look->count == 0;
}

void
look_runs(struct look *look, struct mq_runs *runs)
{
	struct mq_runs all, others = {0};
	int i;

	if (look->layout->running(look->redis, &all) == -1)
		mq_die(look->redis->status, "%s", look->redis->error);
	*runs = (struct mq_runs){0};
	runs->runs = mq_xcalloc((size_t)all.count + 1, sizeof(*runs->runs));
	others.runs = mq_xcalloc((size_t)all.count + 1, sizeof(*others.runs));
	for (i = 0; i < all.count; i++)
		if (wanted(look, all.runs[i].queue))
			runs->runs[runs->count++] = all.runs[i];
		else
			others.runs[others.count++] = all.runs[i];
	mq_runs_free(&others);
	free(all.runs);
}

long long
show_run_s(const struct mq_run *run, int64_t now_ms)
{
	int64_t ms = now_ms - run->started_ms;

	return run->started_ms == 0 || ms < 0 ? 0 : ms / 1000;
}

static void
add_row(struct stats_table *t, const struct mq_run *run, int64_t now_ms)
{
	stats_table_name(t, run->queue, STATS_PLAIN);
	stats_table_name(t, run->id, STATS_PLAIN);
	stats_table_number(t, run->attempt, STATS_PLAIN);
	stats_table_name(t, run->host != NULL ? run->host : "-", STATS_PLAIN);
	stats_table_number(t, run->pid, STATS_PLAIN);
	stats_table_number(t, show_run_s(run, now_ms), STATS_PLAIN);
	stats_table_name(t, run->script, STATS_PLAIN);
	stats_table_name(t, run->text, STATS_PLAIN);
}

static void
print_human(const struct mq_runs *runs, int64_t now_ms)
{
	static const struct stats_column columns[] = {
	    {.title = "QUEUE", .text = true},
	    {.title = "ID", .text = true},
	    {.title = "ATTEMPT"},
	    {.title = "HOST", .text = true},
	    {.title = "PID"},
	    {.title = "SECONDS"},
	    {.title = "SCRIPT", .text = true},
	    {.title = "TEXT", .text = true},
	};
	struct stats_table table = {
	    .columns = columns, .count = sizeof(columns) / sizeof(columns[0])};
	struct stats_view view = stats_view_stdout();
	struct mq_buf out = {0};
	int i;

	for (i = 0; i < runs->count; i++)
		add_row(&table, &runs->runs[i], now_ms);
	stats_table_write(&table, &view, &out);
	fwrite(out.data, 1, out.len, stdout);
	stats_table_free(&table);
	mq_buf_free(&out);
}

json_t *
show_run_json(const struct mq_run *run, int64_t now_ms)
{
	json_t *v = json_pack("{so so sI so* sI so sI so sI so}", "queue",
	    mq_json_text(run->queue), "id", mq_json_text(run->id), "attempt",
	    (json_int_t)run->attempt, "host",
	    run->host != NULL ? mq_json_text(run->host) : NULL, "pid",
	    (json_int_t)run->pid, "connection", mq_json_text(run->connection),
	    "started_ms", (json_int_t)run->started_ms, "script",
	    mq_json_text(run->script), "seconds",
	    (json_int_t)show_run_s(run, now_ms), "text",
	    mq_json_text(run->text));

	mq_json_must(v != NULL);
	return v;
}

static void
print_json(const struct mq_runs *runs, int64_t now_ms)
{
	struct mq_buf out = {0};
	json_t *list = json_array();
	int i;

	mq_json_must(list != NULL);
	for (i = 0; i < runs->count; i++)
		mq_json_must(json_array_append_new(list,
				 show_run_json(&runs->runs[i], now_ms)) == 0);
	mq_json_dump(list, &out);
	json_decref(list);
	show_json(out.data, out.len);
	putchar('\n');
	mq_buf_free(&out);
}

static bool
all_known(const struct look *look)
{
	struct mq_stats stats;
	bool known = true;
	int i;

	if (look->count == 0)
		return true;
	if (look->layout->stats(
		look->redis, look->queues, look->count, 0, &stats) == -1)
		mq_die(look->redis->status, "%s", look->redis->error);
	for (i = 0; i < stats.count; i++)
		if (!stats.queues[i].known) {
			mq_option_unknown(
			    look->redis, look->layout, stats.queues[i].name);
			known = false;
		}
	mq_stats_free(&stats);
	return known;
}

int
look_running(struct look *look)
{
	int64_t now_ms = mq_clock_unix_us() / 1000;
	struct mq_runs runs;
	bool known = all_known(look), any;

	look_runs(look, &runs);
	any = runs.count > 0;
	if (look->json)
		print_json(&runs, now_ms);
	else if (any)
		print_human(&runs, now_ms);
	if (!any && known && !look->quiet)
		mq_say("no script is known to run");
	mq_runs_free(&runs);
	return any && known ? MQ_EXIT_OK : MQ_EXIT_NO;
}
