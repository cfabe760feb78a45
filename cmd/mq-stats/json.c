/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * JSON of mq-stats: the object of --json and of the page, and that of one queue for
 * --http.  Members are documented in mq-metrics(7) and stay; new ones may be added.
 */
#include "stats.h"

/* Messages of each state that are shown, and the largest payload shown, in bytes. */
#define CONTENTS_MESSAGES 100
#define CONTENTS_PAYLOAD  65536

static json_t *
past_json(const struct mq_past *p)
{
	static const char *const names[] = {"time_ms", "ready", "delayed",
	    "unacked", "rejected", "consumers", "oldest_age_s", "published",
	    "ended"};
	const struct mq_note *n;
	json_t *list = json_array(), *v;
	long long number;
	int at, i;

	for (at = 0; at < p->count; at++) {
		n = &p->notes[at];
		json_array_append_new(list, v = json_object());
		for (i = 0; i < MQ_NOTED; i++) {
			number = n->n[i] * (i == MQ_NOTED_AT_S ? 1000 : 1);
			mq_json_set(v, names[i],
			    number < 0 ? json_null() : json_integer(number));
		}
	}
	return list;
}

static json_t *
queue_json(const struct model *m, const struct mq_queue_stats *q)
{
	json_t *v = fields_json(queue_fields, q, m->stats.now_ms);
	json_t *counters = json_null(), *buckets;
	int i;

	if (q->counted) {
		counters = fields_json(count_fields, q, 0);
		mq_json_set(counters, "run_buckets", buckets = json_array());
		for (i = 0; i < MQ_BUCKETS; i++)
			json_array_append_new(buckets,
			    json_pack("{so sI}", "up_to_s",
				i < MQ_BUCKETS - 1 ? json_real(mq_bucket_s[i]) :
						     json_null(),
				"runs", (json_int_t)q->counts.bucket[i]));
	}
	mq_json_set(v, "counters", counters);
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
sum_json(const struct mq_queue_stats *sum, int64_t now_ms)
{
	json_t *v = json_object();
	const struct field *f;

	for (f = queue_fields; f->kind != KIND_END; f++)
		if (f->sum != SUM_NONE)
			field_set(v, f, sum, now_ms);
	return v;
}

static json_t *
connections_json(const struct mq_stats *stats)
{
	const struct mq_connection_stats *c = stats->connections;
	const struct mq_connection_stats *end = c + stats->connection_count;
	json_t *list = json_array(), *v;

	for (; c < end; c++) {
		json_array_append_new(
		    list, v = fields_json(connection_fields, c, 0));
		mq_json_set(v, "queues",
		    fields_list(consumed_fields, c->consumed,
			sizeof(*c->consumed), c->count, 0));
		/* Outside a cluster, a connection has no node. */
		mq_json_set(v, "node", mq_json_text(c->node));
	}
	return list;
}

json_t *
model_json(const struct model *m, bool connections, bool page)
{
	const struct mq_stats *stats = &m->stats;
	const struct mq_queue_stats *q;
	struct mq_queue_stats total = model_total(m), others = SUM_BEGIN;
	const struct mq_names lost = {m->lacks.list, (size_t)m->lost, 0};
	json_t *v = json_object(), *list = json_array(), *left = json_array();
	int row, n, shown;
	size_t i;
	const struct mq_queue_stats **rows = order_rows(m, &n, &row);

	shown = m->order.limit > 0 ? (int)MIN(m->order.limit, n) : n;
	mq_json_set(v, "time_ms", json_integer(stats->now_ms));
	mq_json_set(v, "queues", list);
	for (row = 0; row < n; row++) {
		q = rows[row];
		if (row < shown)
			json_array_append_new(list,
			    page ? fields_json(queue_fields, q, stats->now_ms) :
				   queue_json(m, q));
		else
			sum_add(&others, q);
		if (q->scattered || q->other)
			json_array_append_new(left, mq_json_text(q->name));
	}
	free(rows);
	if (connections)
		mq_json_set(v, "connections", connections_json(stats));
	for (i = 0; i < stats->odd.n; i++)
		json_array_append_new(
		    left, mq_json_text(stats->odd.list[i].name));
	mq_json_set(v, "left_alone", mq_json_names(&stats->cluster));
	/* Names of queues with messages that only Go programs find. */
	if (json_array_size(left) > 0)
		mq_json_set(v, "queues_left_alone", json_incref(left));
	json_decref(left);
	mq_json_set(v, "maxmemory_policy",
	    *m->info.policy != '\0' ? mq_json_text(m->info.policy) :
				      json_null());
	if (m->lost > 0)
		mq_json_set(v, "lost_nodes", mq_json_names(&lost));
	if (stats->wrong.n > 0)
		mq_json_set(v, "wrong_keys", mq_json_names(&stats->wrong));
	mq_json_set(v, "totals", sum_json(&total, stats->now_ms));
	if (shown < n) {
		list = sum_json(&others, stats->now_ms);
		mq_json_set(list, "queues", json_integer(n - shown));
		mq_json_set(v, "others", list);
	}
	return v;
}

void
json_print(const struct model *m, bool connections)
{
	output_json_line(model_json(m, connections, false));
}

void
contents_print(struct collector *c, const struct model *m, bool payloads)
{
	const struct mq_queue_stats *q = &m->stats.queues[0];
	const struct reasons *r = &m->rejected[0].reasons;
	struct mq_place place = {.queue = q->name};
	struct mq_search search;
	const struct mq_item *item;
	char group[REASON_BYTES + 1];
	struct message s;
	json_t *v = reasons_json(r, q->name, r->count), *list, *one;
	long newest = MAX((long)q->rejected - CONTENTS_MESSAGES, 0);

	mq_json_set(v, "time_ms", json_integer(m->stats.now_ms));
	mq_json_set(v, "queue", queue_json(m, q));
	/* A list begins with the next message; the list of rejected messages has
	 * only the newest. */
	for (; place.state < MQ_STATES; place.state++) {
		mq_json_set(v, mq_state_name(place.state), list = json_array());
		search = (struct mq_search){c->layout, &c->redis, NULL,
		    .scan = {place,
			.skip = place.state == MQ_REJECTED ? newest : 0}};
		while (json_array_size(list) < CONTENTS_MESSAGES &&
		    (item = mq_search_next(&search)) != NULL) {
			message_unpack(&s, item, place.state);
			one = message_facts(&s);
			json_array_append_new(list, one);
			if (place.state == MQ_REJECTED) {
				reason_fold(s.reason, group);
				mq_json_set(
				    one, "reason_group", mq_json_text(group));
			}
			mq_json_set(one, "id",
			    s.id != NULL ? mq_json_text(s.id) : json_null());
			message_set_content(one, &s,
			    payloads &&
				s.envelope.payload_len <= CONTENTS_PAYLOAD);
			mq_envelope_free(&s.envelope);
		}
		mq_scan_free(&search.scan);
	}
	output_json_line(v);
}
