/*
 * mq-stats --json: everything as one JSON object on one line.  Its form is
 * documented in mq-stats(1) and stays; members may be added.
 */
#include "outputs.h"

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

/* A number that may not be known. */
static json_t *
number_if(bool known, long long n)
{
	return known ? json_integer(n) : json_null();
}

static json_t *
real_if(bool known, double n)
{
	return known ? json_real(n) : json_null();
}

static json_t *
buckets_json(const struct mq_counts *counts)
{
	json_t *list = json_array(), *bucket;
	int i;

	for (i = 0; i < MQ_BUCKETS; i++) {
		bucket = json_object();
		mq_json_set(bucket, "up_to_s",
		    real_if(i < MQ_BUCKETS - 1,
			i < MQ_BUCKETS - 1 ? mq_bucket_s[i] : 0));
		mq_json_set(bucket, "runs", json_integer(counts->bucket[i]));
		append_value(list, bucket);
	}
	return list;
}

static json_t *
counters_json(const struct mq_counts *counts)
{
	json_t *v = json_object();

	mq_json_set(v, "published", json_integer(counts->published));
	mq_json_set(v, "attempts", json_integer(counts->runs));
	mq_json_set(v, "done", json_integer(counts->done));
	mq_json_set(v, "failed", json_integer(counts->failed));
	mq_json_set(v, "expired", json_integer(counts->expired));
	mq_json_set(v, "retried", json_integer(counts->retried));
	mq_json_set(v, "crashed", json_integer(counts->crashed));
	mq_json_set(v, "lease_lost", json_integer(counts->lease_lost));
	mq_json_set(v, "run_s", json_real((double)counts->run_ms / 1000));
	mq_json_set(v, "run_buckets", buckets_json(counts));
	return v;
}

/* Numbers of a queue, and of all queues together. */
static void
set_numbers(json_t *v, const struct model *m, const struct mq_queue_stats *q)
{
	mq_json_set(v, "ready", json_integer(q->ready));
	mq_json_set(v, "delayed", json_integer(q->delayed));
	mq_json_set(v, "unacked", json_integer(q->unacked));
	mq_json_set(v, "rejected", json_integer(q->rejected));
	mq_json_set(v, "consumers", json_integer(q->consumers));
	mq_json_set(v, "dead_consumers", json_integer(q->dead_consumers));
	mq_json_set(v, "oldest_age_s",
	    real_if(q->oldest_ms > 0, model_age_s(m, q->oldest_ms)));
}

static void
set_rates(json_t *v, const struct mq_queue_stats *q)
{
	mq_json_set(v, "in_per_s", real_if(q->in_s >= 0, q->in_s));
	mq_json_set(v, "out_per_s", real_if(q->out_s >= 0, q->out_s));
}

/* By the names that node has for them. */
static json_t *
attributes_json(const struct mq_queue_stats *q)
{
	json_t *v = json_object();

	mq_json_set(v, "vt", json_integer(q->attributes.vt_s));
	mq_json_set(v, "delay", json_integer(q->attributes.delay_s));
	mq_json_set(v, "maxsize", json_integer(q->attributes.maxsize));
	mq_json_set(v, "created", json_integer(q->created_s));
	mq_json_set(v, "modified", json_integer(q->modified_s));
	mq_json_set(v, "totalsent", json_integer(q->sent));
	mq_json_set(v, "totalrecv", json_integer(q->received));
	return v;
}

static json_t *
queue_json(const struct model *m, const struct mq_queue_stats *q)
{
	json_t *v = json_object();

	mq_json_set(v, "name", mq_json_text(q->name));
	mq_json_set(v, "known", json_boolean(q->known));
	set_numbers(v, m, q);
	mq_json_set(
	    v, "next_due_ms", number_if(q->next_due_ms > 0, q->next_due_ms));
	mq_json_set(v, "in_line", json_integer(q->in_line));
	mq_json_set(v, "tick", number_if(q->tick > 0, q->tick));
	mq_json_set(v, "paused", json_boolean(q->paused_ms != 0));
	mq_json_set(
	    v, "paused_until_ms", number_if(q->paused_ms > 0, q->paused_ms));
	set_rates(v, q);
	mq_json_set(v, "counters",
	    q->counted ? counters_json(&q->counts) : json_null());
	if (q->attributed)
		mq_json_set(v, "attributes", attributes_json(q));
	return v;
}

static json_t *
consumed_json(const struct mq_connection_stats *c)
{
	json_t *list = json_array(), *v;
	int i;

	for (i = 0; i < c->count; i++) {
		v = json_object();
		mq_json_set(v, "queue", mq_json_text(c->consumed[i].queue));
		mq_json_set(v, "unacked", json_integer(c->consumed[i].unacked));
		mq_json_set(
		    v, "consumers", json_integer(c->consumed[i].consumers));
		append_value(list, v);
	}
	return list;
}

static json_t *
connection_json(const struct mq_connection_stats *c)
{
	json_t *v = json_object();

	mq_json_set(v, "name", mq_json_text(c->name));
	mq_json_set(v, "live", json_boolean(c->ttl_ms > 0));
	mq_json_set(v, "lease_ms", number_if(c->ttl_ms > 0, c->ttl_ms));
	mq_json_set(
	    v, "host", c->host != NULL ? mq_json_text(c->host) : json_null());
	mq_json_set(v, "pid", number_if(c->pid > 0, c->pid));
	mq_json_set(v, "queues", consumed_json(c));
	return v;
}

static json_t *
totals_json(const struct model *m)
{
	struct mq_queue_stats total = model_total(m);
	json_t *v = json_object();

	set_numbers(v, m, &total);
	set_rates(v, &total);
	return v;
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
		append_value(list, queue_json(m, &stats->queues[i]));
	if (connections) {
		list = json_array();
		mq_json_set(v, "connections", list);
		for (i = 0; i < stats->connection_count; i++)
			append_value(
			    list, connection_json(&stats->connections[i]));
	}
	mq_json_set(v, "left_alone", mq_json_names(&stats->cluster));
	mq_json_set(v, "maxmemory_policy",
	    *policy != '\0' ? mq_json_text(policy) : json_null());
	mq_json_set(v, "totals", totals_json(m));
	/* A failed write is noticed when stdout is closed. */
	if (json_dumpf(v, stdout, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) ==
	    0)
		putchar('\n');
	json_decref(v);
}
