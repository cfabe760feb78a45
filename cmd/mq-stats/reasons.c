#include "stats.h"

#include "message/json.h"

#define REASONS_PER_QUEUE 10
#define NEWEST_PER_QUEUE  5

static const struct column columns[] = {
    {.title = "QUEUE", .text = true, .optional = true},
    {.title = "COUNT"},
    {.title = "OLDEST"},
    {.title = "NEWEST"},
    {.title = "REASON", .text = true},
};

static void
add_reason(
    struct table *t, const char *queue, int64_t now_ms, const struct reason *r)
{
	table_name(t, queue, STYLE_PLAIN);
	table_number(t, r->count, STYLE_PLAIN);
	table_age(t, now_ms, r->oldest_ms);
	table_age(t, now_ms, r->newest_ms);
	table_name(t, r->text[0] != '\0' ? r->text : "-", STYLE_PLAIN);
}

/* The first ones; others: messages of other reasons. */
static void
add_reasons(struct table *t, const char *queue, int64_t now_ms,
    const struct reasons *r, int shown, long others)
{
	char name[] = "(other reasons)";
	struct reason rest = {.text = name, .count = others};
	int i;

	for (i = 0; i < shown; i++)
		add_reason(t, queue, now_ms, &r->list[i]);
	if (others > 0)
		add_reason(t, queue, now_ms, &rest);
}

static void
print_reason_table(const struct reasons *r, int shown, int64_t now_ms)
{
	struct table t = {
	    .columns = columns, .count = sizeof(columns) / sizeof(columns[0])};

	add_reasons(
	    &t, "", now_ms, r, shown, shown == r->count ? r->others : 0);
	table_print(&t);
}

void
reasons_fill(const struct model *m, struct table *t)
{
	const struct reasons *r;
	long others;
	int i, k;

	*t = (struct table){
	    .columns = columns, .count = sizeof(columns) / sizeof(columns[0])};
	for (i = 0; i < m->stats.count; i++) {
		r = &m->rejected[i].reasons;
		others = r->others;
		for (k = REASONS_PER_QUEUE; k < r->count; k++)
			others += r->list[k].count;
		add_reasons(t, m->stats.queues[i].name, m->stats.now_ms, r,
		    r->count < REASONS_PER_QUEUE ? r->count : REASONS_PER_QUEUE,
		    others);
	}
}

static void
add_rejected(struct table *t, const char *queue, int64_t now_ms,
    const struct rejected *r)
{
	table_name(t, queue, STYLE_PLAIN);
	table_name(t, r->id != NULL ? r->id : "-", STYLE_PLAIN);
	table_age(t, now_ms, r->at_ms);
	table_number(t, r->attempts, STYLE_PLAIN);
	table_name(t, r->reason != NULL ? r->reason : "-", STYLE_PLAIN);
}

void
rejected_fill(const struct model *m, struct table *t)
{
	static const struct column head[] = {
	    {.title = "QUEUE", .text = true},
	    {.title = "ID", .text = true},
	    {.title = "AGE"},
	    {.title = "ATTEMPTS"},
	    {.title = "REASON", .text = true},
	};
	int i, k;

	*t = (struct table){
	    .columns = head, .count = sizeof(head) / sizeof(head[0])};
	for (i = 0; i < m->stats.count; i++)
		for (k = 0; k < m->rejected[i].count && k < NEWEST_PER_QUEUE;
		     k++)
			add_rejected(t, m->stats.queues[i].name,
			    m->stats.now_ms, &m->rejected[i].all[k]);
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
	    "{so so}", "queue", mq_json_name(queue), "reasons", list);
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
