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
counters_json(const struct mq_counts *n)
{
	return mq_json_pack("{sI sI sI sI sI sI sI sI sf so}", "published",
	    (json_int_t)n->published, "attempts", (json_int_t)n->runs, "done",
	    (json_int_t)n->done, "failed", (json_int_t)n->failed, "expired",
	    (json_int_t)n->expired, "retried", (json_int_t)n->retried,
	    "crashed", (json_int_t)n->crashed, "lease_lost",
	    (json_int_t)n->lease_lost, "run_s", (double)n->run_ms / 1000,
	    "run_buckets", buckets_json(n));
}

/* A lost node has it, unless it is one. */
static json_t *
count_json(long long n)
{
	return number_if(n >= 0, n);
}

/* Only on a cluster. */
static void
set_node(json_t *v, const char *node)
{
	if (node != NULL)
		mq_json_set(v, "node", mq_json_text(node));
}

/* Numbers of a queue, and of all queues together. */
static void
set_numbers(json_t *v, const struct model *m, const struct mq_queue_stats *q)
{
	mq_json_set(v, "ready", count_json(q->ready));
	mq_json_set(v, "delayed", count_json(q->delayed));
	mq_json_set(v, "unacked", count_json(q->unacked));
	mq_json_set(v, "rejected", count_json(q->rejected));
	mq_json_set(v, "consumers", count_json(q->consumers));
	mq_json_set(v, "dead_consumers", count_json(q->dead_consumers));
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
	const struct mq_attributes *a = &q->attributes;

	return mq_json_pack("{sI sI sI sI sI sI sI}", "vt", (json_int_t)a->vt_s,
	    "delay", (json_int_t)a->delay_s, "maxsize", (json_int_t)a->maxsize,
	    "created", (json_int_t)q->created_s, "modified",
	    (json_int_t)q->modified_s, "totalsent", (json_int_t)q->sent,
	    "totalrecv", (json_int_t)q->received);
}

json_t *
json_queue(const struct model *m, const struct mq_queue_stats *q)
{
	json_t *v = json_object();

	mq_json_set(v, "name", mq_json_name(q->name));
	mq_json_set(v, "known", json_boolean(q->known));
	set_node(v, q->node);
	set_numbers(v, m, q);
	mq_json_set(
	    v, "next_due_ms", number_if(q->next_due_ms > 0, q->next_due_ms));
	mq_json_set(v, "in_line", number_if(q->ready >= 0, q->in_line));
	if (q->leaving > 0)
		mq_json_set(v, "leaving", json_integer(q->leaving));
	mq_json_set(v, "tick", number_if(q->tick > 0, q->tick));
	mq_json_set(v, "paused",
	    q->ready < 0 ? json_null() : json_boolean(q->paused_ms != 0));
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
		v = mq_json_pack("{so so so}", "queue",
		    mq_json_name(c->consumed[i].queue), "unacked",
		    count_json(c->consumed[i].unacked), "consumers",
		    count_json(c->consumed[i].consumers));
		set_node(v, c->consumed[i].node);
		append_value(list, v);
	}
	return list;
}

static json_t *
connection_json(const struct mq_connection_stats *c)
{
	json_t *v =
	    mq_json_pack("{so so so so so so}", "name", mq_json_name(c->name),
		"live", c->unsure ? json_null() : json_boolean(c->ttl_ms > 0),
		"lease_ms", number_if(c->ttl_ms > 0, c->ttl_ms), "host",
		c->host != NULL ? mq_json_text(c->host) : json_null(), "pid",
		number_if(c->pid > 0, c->pid), "queues", consumed_json(c));

	set_node(v, c->node);
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
