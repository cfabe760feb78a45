/*
 * mq-stats --json: everything as one JSON object on one line.  Its form is
 * documented in mq-metrics(7) and stays; members may be added.
 */
#include "stats.h"

#include <stdio.h>

#include <jansson.h>

#include "message/json.h"

/* More digits than this are only what a binary fraction leaves behind. */
#define DIGITS 12

static void
append_value(json_t *list, json_t *value)
{
	mq_json_must(json_array_append_new(list, value) == 0);
}

static json_t *
buckets_json(const struct mq_counts *counts)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < MQ_BUCKETS; i++)
		append_value(list,
		    mq_json_pack("{so sI}", "up_to_s",
			i < MQ_BUCKETS - 1 ? json_real(mq_bucket_s[i]) :
					     json_null(),
			"runs", (json_int_t)counts->bucket[i]));
	return list;
}

static json_t *
counters_json(const struct mq_queue_stats *q)
{
	json_t *v = fields_json(count_fields, q, 0);

	mq_json_set(v, "run_buckets", buckets_json(&q->counts));
	return v;
}

static json_t *
past_json(const struct mq_past *p)
{
	static const char *const names[] = {"time_ms", "ready", "delayed",
	    "unacked", "rejected", "consumers", "oldest_age_s", "published",
	    "ended"};
	const struct mq_note *n = p->notes;
	json_t *list = json_array(), *v;
	long long number;
	int i;

	for (; n < p->notes + p->count; n++) {
		append_value(list, v = json_object());
		for (i = 0; i < MQ_NOTED; i++) {
			number = n->n[i] * (i == MQ_NOTED_AT_S ? 1000 : 1);
			mq_json_set(v, names[i],
			    number < 0 ? json_null() : json_integer(number));
		}
	}
	return list;
}

json_t *
json_queue(const struct model *m, const struct mq_queue_stats *q)
{
	json_t *v = fields_json(queue_fields, q, m->stats.now_ms);

	mq_json_set(v, "counters", q->counted ? counters_json(q) : json_null());
	if (q->attributed)
		mq_json_set(
		    v, "attributes", fields_json(attribute_fields, q, 0));
	if (m->stats.past) {
		mq_json_set(v, "minutes", past_json(&q->past[MQ_MINUTES]));
		mq_json_set(v, "hours", past_json(&q->past[MQ_HOURS]));
	}
	return v;
}

static json_t *
connection_json(const struct mq_connection_stats *c)
{
	json_t *v = fields_json(connection_fields, c, 0);

	mq_json_set(v, "queues",
	    fields_list(consumed_fields, c->consumed, sizeof(*c->consumed),
		c->count, 0));
	/* Only on a cluster. */
	if (c->node != NULL)
		mq_json_set(v, "node", mq_json_text(c->node));
	return v;
}

static json_t *
totals_json(const struct model *m)
{
	struct mq_queue_stats total = model_total(m);
	const struct field *f;
	json_t *v = json_object();

	for (f = queue_fields; f->kind != KIND_END; f++)
		if (f->sum != SUM_NONE)
			field_set(v, f, &total, m->stats.now_ms);
	return v;
}

void
json_print_line(json_t *v)
{
	/* A failed write is noticed when stdout is closed. */
	if (json_dumpf(v, stdout, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) ==
	    0)
		putchar('\n');
	json_decref(v);
}

/* Queues with messages that only Go programs find here; only if there are any. */
static void
set_left_alone(json_t *v, const struct mq_stats *stats)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < stats->count; i++)
		if (stats->queues[i].scattered || stats->queues[i].other)
			append_value(list, mq_json_text(stats->queues[i].name));
	if (json_array_size(list) > 0)
		mq_json_set(v, "queues_left_alone", list);
	else
		json_decref(list);
}

void
json_print(const struct model *m, bool connections)
{
	const struct mq_stats *stats = &m->stats;
	const char *policy = m->info.policy;
	json_t *v = json_object(), *list = json_array();
	int i;

	mq_json_set(v, "time_ms", json_integer(stats->now_ms));
	mq_json_set(v, "queues", list);
	for (i = 0; i < stats->count; i++)
		append_value(list, json_queue(m, &stats->queues[i]));
	if (connections) {
		list = json_array();
		mq_json_set(v, "connections", list);
		for (i = 0; i < stats->connection_count; i++)
			append_value(
			    list, connection_json(&stats->connections[i]));
	}
	mq_json_set(v, "left_alone", mq_json_names(&stats->cluster));
	set_left_alone(v, stats);
	mq_json_set(v, "maxmemory_policy",
	    *policy != '\0' ? mq_json_text(policy) : json_null());
	if (m->lost.n > 0)
		mq_json_set(v, "lost_nodes", mq_json_names(&m->lost));
	mq_json_set(v, "totals", totals_json(m));
	json_print_line(v);
}
