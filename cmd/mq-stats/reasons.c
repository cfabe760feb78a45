#include "stats.h"

#include "message/json.h"

#define REASONS_PER_QUEUE 10
#define NEWEST_PER_QUEUE  5

static const struct field queue_name[] = {
    {NULL, KIND_NAME, FIELD_OF(mq_queue_stats, name), .title = "QUEUE"},
    {0},
};

static const struct field reason_fields[] = {
    {"reason", KIND_REASON, FIELD_OF(reason, text)},
    {"count", KIND_NUMBER, FIELD_OF(reason, count), .title = "COUNT"},
    {"oldest_ms", KIND_SOME, FIELD_OF(reason, oldest_ms)},
    {NULL, KIND_AGE, FIELD_OF(reason, oldest_ms), .title = "OLDEST"},
    {"newest_ms", KIND_SOME, FIELD_OF(reason, newest_ms)},
    {NULL, KIND_AGE, FIELD_OF(reason, newest_ms), .title = "NEWEST"},
    {NULL, KIND_REASON, FIELD_OF(reason, text), .title = "REASON"},
    {"newest_reason", KIND_REASON, FIELD_OF(reason, newest)},
    {"newest_id", KIND_REASON, FIELD_OF(reason, id)},
    {0},
};

static const struct field rejected_fields[] = {
    {NULL, KIND_TEXT, FIELD_OF(rejected, state), .title = "STATE",
	.sparse = true},
    {NULL, KIND_TEXT, FIELD_OF(rejected, id), .title = "ID", .id = true},
    {NULL, KIND_AGE, FIELD_OF(rejected, at_ms), .title = "AGE"},
    {NULL, KIND_NUMBER, FIELD_OF(rejected, attempts), .title = "ATTEMPTS"},
    {NULL, KIND_TEXT, FIELD_OF(rejected, reason), .title = "REASON"},
    {0},
};

/* The first ones of a queue (NULL: it is not shown); others: messages of other
 * reasons. */
static void
add_reasons(struct table *t, const struct mq_queue_stats *q, int64_t now_ms,
    const struct reasons *r, int shown, long others)
{
	char name[] = "(other reasons)";
	struct reason rest = {.text = name, .count = others};
	int i;

	for (i = 0; i < shown + (others > 0); i++) {
		if (q != NULL)
			table_add(t, queue_name, q, now_ms);
		table_add(
		    t, reason_fields, i < shown ? &r->list[i] : &rest, now_ms);
	}
}

static void
print_reason_table(const struct reasons *r, int shown, int64_t now_ms)
{
	struct table t = {0};

	table_columns(&t, reason_fields);
	add_reasons(
	    &t, NULL, now_ms, r, shown, shown == r->count ? r->others : 0);
	table_print(&t);
}

void
reasons_fill(const struct model *m, struct table *t)
{
	const struct reasons *r;
	long others;
	int i, k;

	*t = (struct table){0};
	table_columns(t, queue_name);
	table_columns(t, reason_fields);
	for (i = 0; i < m->stats.count; i++) {
		r = &m->rejected[i].reasons;
		others = r->others;
		for (k = REASONS_PER_QUEUE; k < r->count; k++)
			others += r->list[k].count;
		add_reasons(t, &m->stats.queues[i], m->stats.now_ms, r,
		    r->count < REASONS_PER_QUEUE ? r->count : REASONS_PER_QUEUE,
		    others);
	}
}

void
rejected_fill(const struct model *m, struct table *t)
{
	int i, k;

	*t = (struct table){0};
	table_columns(t, queue_name);
	table_columns(t, rejected_fields);
	for (i = 0; i < m->stats.count; i++)
		for (k = 0; k < m->rejected[i].count; k++) {
			if (k >= NEWEST_PER_QUEUE &&
			    m->rejected[i].all[k].state == NULL)
				continue;
			table_add(t, queue_name, &m->stats.queues[i], 0);
			table_add(t, rejected_fields, &m->rejected[i].all[k],
			    m->stats.now_ms);
		}
}

json_t *
reasons_json(const struct reasons *r, const char *queue, int shown)
{
	return mq_json_pack("{so so sI}", "queue", mq_json_name(queue),
	    "reasons",
	    fields_list(reason_fields, r->list, sizeof(*r->list), shown, 0),
	    "others", (json_int_t)r->others);
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
