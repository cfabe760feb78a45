/*
 * --reasons: why the rejected messages of a queue are rejected, in groups.  The
 * walk is slice by slice, and the groups are bounded, so that a queue of any
 * length passes through little memory.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/exit.h"
#include "base/say.h"
#include "message/json.h"
#include "reasons.h"
#include "shared/options.h"
#include "stats.h"

static const struct stats_column columns[] = {
    {.title = "COUNT"},
    {.title = "OLDEST"},
    {.title = "NEWEST"},
    {.title = "REASON", .text = true},
};

/* Returns how many messages were looked at. */
static long
read_reasons(
    struct look *look, const struct mq_filter *filter, struct reasons *r)
{
	struct mq_scan scan = {
	    .place = {.queue = look->queues[0], .state = MQ_REJECTED}};
	const struct mq_item *item;
	struct shown s;
	long seen;

	while (!scan.end) {
		if (look->layout->scan(look->redis, &scan) == -1)
			mq_die(look->redis->status, "%s", look->redis->error);
		for (item = scan.items; item < scan.items + scan.count;
		     item++) {
			if (!mq_filter_match(filter, item->element, item->len))
				continue;
			show_open(&s, item, MQ_REJECTED);
			reasons_add(r, s.reason, s.since_ms, s.id);
			show_close(&s);
		}
	}
	seen = scan.seen;
	mq_scan_free(&scan);
	return seen;
}

static void
add_age(struct stats_table *t, int64_t now_ms, int64_t at_ms)
{
	char age[24];

	show_age(age, now_ms, at_ms);
	stats_table_text(t, age, STATS_PLAIN);
}

static void
add_row(struct stats_table *t, int64_t now_ms, const struct reason *r)
{
	stats_table_number(t, r->count, STATS_PLAIN);
	add_age(t, now_ms, r->oldest_ms);
	add_age(t, now_ms, r->newest_ms);
	stats_table_name(t, r->text[0] != '\0' ? r->text : "-", STATS_PLAIN);
}

static void
print_table(const struct reasons *r, int shown, int64_t now_ms)
{
	struct stats_table t = {
	    .columns = columns, .count = sizeof(columns) / sizeof(columns[0])};
	struct stats_view view = stats_view_stdout();
	char name[] = "(other reasons)";
	struct reason others = {.text = name, .count = r->others};
	struct mq_buf out = {0};
	int i;

	for (i = 0; i < shown; i++)
		add_row(&t, now_ms, &r->list[i]);
	if (r->others > 0 && shown == r->count)
		add_row(&t, now_ms, &others);
	view.height = 0;
	stats_table_write(&t, &view, &out);
	fwrite(out.data, 1, out.len, stdout);
	stats_table_free(&t);
	mq_buf_free(&out);
}

static json_t *
text_if(const char *text)
{
	return text != NULL && *text != '\0' ? mq_json_text(text) : json_null();
}

static json_t *
time_if(int64_t ms)
{
	return ms > 0 ? json_integer(ms) : json_null();
}

static void
print_json(const char *queue, const struct reasons *r, int shown)
{
	json_t *all = json_object(), *list = json_array(), *v;
	struct mq_buf text = {0};
	int i;

	mq_json_set(all, "queue", mq_json_text(queue));
	mq_json_set(all, "reasons", list);
	for (i = 0; i < shown; i++) {
		v = json_object();
		mq_json_set(v, "reason", text_if(r->list[i].text));
		mq_json_set(v, "count", json_integer(r->list[i].count));
		mq_json_set(v, "oldest_ms", time_if(r->list[i].oldest_ms));
		mq_json_set(v, "newest_ms", time_if(r->list[i].newest_ms));
		mq_json_set(v, "newest_reason", text_if(r->list[i].newest));
		mq_json_set(v, "newest_id", text_if(r->list[i].id));
		mq_json_must(json_array_append_new(list, v) == 0);
	}
	mq_json_set(all, "others", json_integer(r->others));
	mq_json_dump(all, &text);
	json_decref(all);
	show_json(text.data, text.len);
	putchar('\n');
	mq_buf_free(&text);
}

static int
print(const struct look *look, struct reasons *r, long limit, long seen,
    int64_t now_ms)
{
	int shown;

	reasons_sort(r);
	shown = limit != -1 && limit < r->count ? (int)limit : r->count;
	if (look->json)
		print_json(look->queues[0], r, shown);
	else if (r->count > 0)
		print_table(r, shown, now_ms);
	if (r->count > 0)
		return MQ_EXIT_OK;
	if (!look->quiet && seen > 0)
		mq_say("%s: none of %ld rejected message%s matched",
		    look->queues[0], seen, seen == 1 ? "" : "s");
	else if (!look->quiet)
		mq_say("%s: no message is rejected", look->queues[0]);
	return MQ_EXIT_NO;
}

int
look_reasons(struct look *look, const struct list *list)
{
	struct reasons r = {0};
	struct mq_stats stats;
	int status = MQ_EXIT_NO;
	long seen;

	if (look->layout->stats(look->redis, look->queues, 1, 0, &stats) == -1)
		mq_die(look->redis->status, "%s", look->redis->error);
	if (stats.queues[0].known) {
		seen = read_reasons(look, &list->filter, &r);
		status = print(look, &r, list->limit, seen, stats.now_ms);
	} else {
		mq_option_unknown(look->redis, look->layout, look->queues[0]);
	}
	reasons_free(&r);
	mq_stats_free(&stats);
	return status;
}
