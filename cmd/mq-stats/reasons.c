#include "outputs.h"

#include "message/json.h"
#include "table.h"

static const struct column columns[] = {
    {.title = "COUNT"},
    {.title = "OLDEST"},
    {.title = "NEWEST"},
    {.title = "REASON", .text = true},
};

static void
add_reason_age(struct table *t, int64_t now_ms, int64_t at_ms)
{
	char age[TEXT_AGE];

	text_age_since(age, now_ms, at_ms);
	table_text(t, age, STYLE_PLAIN);
}

static void
add_reason(struct table *t, int64_t now_ms, const struct reason *r)
{
	table_number(t, r->count, STYLE_PLAIN);
	add_reason_age(t, now_ms, r->oldest_ms);
	add_reason_age(t, now_ms, r->newest_ms);
	table_name(t, r->text[0] != '\0' ? r->text : "-", STYLE_PLAIN);
}

static void
print_reason_table(const struct reasons *r, int shown, int64_t now_ms)
{
	struct table t = {
	    .columns = columns, .count = sizeof(columns) / sizeof(columns[0])};
	char name[] = "(other reasons)";
	struct reason others = {.text = name, .count = r->others};
	int i;

	for (i = 0; i < shown; i++)
		add_reason(&t, now_ms, &r->list[i]);
	if (r->others > 0 && shown == r->count)
		add_reason(&t, now_ms, &others);
	table_print(&t);
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

json_t *
reasons_json(const struct reasons *r, const char *queue, int shown)
{
	json_t *list = json_array(), *v;
	json_t *all = mq_json_pack(
	    "{so so}", "queue", mq_json_text(queue), "reasons", list);
	const struct reason *one;
	int i;

	for (i = 0; i < shown; i++) {
		one = &r->list[i];
		v = mq_json_pack("{so sI so so so so}", "reason",
		    text_if(one->text), "count", (json_int_t)one->count,
		    "oldest_ms", time_if(one->oldest_ms), "newest_ms",
		    time_if(one->newest_ms), "newest_reason",
		    text_if(one->newest), "newest_id", text_if(one->id));
		mq_json_must(json_array_append_new(list, v) == 0);
	}
	mq_json_set(all, "others", json_integer(r->others));
	return all;
}

void
reasons_print(const struct reasons *r, const char *queue, long limit,
    int64_t now_ms, bool json)
{
	int shown = limit != -1 && limit < r->count ? (int)limit : r->count;

	if (json)
		text_json_line(reasons_json(r, queue, shown));
	else if (r->count > 0)
		print_reason_table(r, shown, now_ms);
}
