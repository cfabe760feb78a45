/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The facts of queues, connections and runs, one row each, from which come the
 * tables, JSON, metrics, --sort and --check.  JSON and tables keep this order; where
 * their orders differ, a fact has a row for each.
 */
#include "stats.h"

#define QUEUE(member)	   FIELD_OF(mq_queue_stats, member)
#define CONNECTION(member) FIELD_OF(mq_connection_stats, member)
#define CONSUMED(member)   FIELD_OF(mq_consumed, member)
#define RUN(member)	   FIELD_OF(mq_run, member)
#define BATCH(member)	   FIELD_OF(batch, member)
#define SPOOLED(member)	   FIELD_OF(spooled, member)

const struct field queue_fields[] = {
    {"name", KIND_QUEUE, QUEUE(name), .key = "name", .title = "QUEUE"},
    {"known", KIND_FLAG, QUEUE(known)},
    {"node", KIND_TEXT, QUEUE(node), .optional = true},
    {"ready", KIND_COUNT, QUEUE(ready), .key = "ready", .title = "READY",
	.grows = true, .sum = SUM_OWN, .check = 1,
	.metric = {1, "rmq_ready", "Messages that a consumer can have now."}},
    {"delayed", KIND_COUNT, QUEUE(delayed), .key = "delayed",
	.title = "DELAYED", .spare = 2, .sum = SUM_OWN, .check = 2,
	.metric = {7, "mq_delayed", "Messages that become ready later."}},
    {"unacked", KIND_COUNT, QUEUE(unacked), .key = "unacked",
	.title = "UNACKED", .spare = 4, .sum = SUM_OWN, .check = 3,
	.metric = {5, "rmq_unacked", "Messages claimed and not settled yet."}},
    {"rejected", KIND_COUNT, QUEUE(rejected), .key = "rejected",
	.title = "REJECTED", .red = true, .sum = SUM_ALL, .check = 4,
	.metric = {2, "rmq_rejected", "Messages that failed for good."}},
    {"consumers", KIND_COUNT, QUEUE(consumers), .key = "consumers",
	.title = "CONSUMERS", .spare = 3, .sum = SUM_ALL, .check = 6,
	.least = true,
	.metric = {4, "rmq_consumer", "Consumers whose lease holds."}},
    {NULL, KIND_COUNT, QUEUE(connections),
	.metric = {3, "rmq_connection",
	    "Live connections that consume the queue."}},
    {"dead_consumers", KIND_COUNT, QUEUE(dead_consumers), .sum = SUM_ALL,
	.metric = {6, "mq_dead_consumers",
	    "Consumers that have died and are not cleaned up yet."}},
    {"oldest_age_s", KIND_AGE, QUEUE(oldest_ms), .key = "age", .title = "AGE",
	.sum = SUM_OWN, .check = 5,
	.metric = {8, "mq_oldest_age_seconds",
	    "How long the oldest claimable message has been claimable."}},
    {"next_due_ms", KIND_SOME, QUEUE(next_due_ms)},
    {"in_line", KIND_COUNT, QUEUE(in_line)},
    {"leaving", KIND_SOME, QUEUE(leaving), .optional = true},
    {"slots_taken", KIND_COUNT, QUEUE(slots_taken), .optional = true,
	.metric = {10, "mq_slots_taken",
	    "Slots shared by all consumers that have a message."}},
    {"slots_shared", KIND_COUNT, QUEUE(slots_shared), .optional = true,
	.metric = {11, "mq_slots_shared", "Slots that all consumers share."}},
    {"tick", KIND_SOME, QUEUE(tick)},
    {"paused", KIND_PAUSED,
	.metric = {9, "mq_paused", "1 while the queue is paused."}},
    {"paused_until_ms", KIND_SOME, QUEUE(paused_ms)},
    {"all_paused", KIND_FLAG, QUEUE(all_paused)},
    {"all_paused_until_ms", KIND_SOME, QUEUE(all_paused_ms), .optional = true},
    {"last_done_ms", KIND_SOME, QUEUE(done_ms)},
    {NULL, KIND_TIME, QUEUE(done_ms),
	.metric = {12, "mq_last_done_seconds",
	    "When a message was last done, unix time; 0: never."}},
    {NULL, KIND_AGE, QUEUE(done_ms), .key = "done-within", .check = 7,
	.needed = true},
    {"in_per_s", KIND_RATE, QUEUE(in_s), .key = "in", .title = "IN/S",
	.spare = 1, .sum = SUM_ALL},
    {"out_per_s", KIND_RATE, QUEUE(out_s), .key = "out", .title = "OUT/S",
	.spare = 1, .sum = SUM_ALL},
    {NULL, KIND_SPARK, .title = "LAST HOUR", .sparse = true},
    {NULL, KIND_NOTE, .title = "NOTE", .sparse = true},
    {0},
};

_Static_assert(sizeof(queue_fields) / sizeof(queue_fields[0]) <= COLUMNS_MAX,
    "a table has room for all");

#define COUNTED(place, name, help, count)                                      \
	name, KIND_NUMBER, QUEUE(counts.count),                                \
	    .metric = {place, "mq_" name "_total", help}

const struct field count_fields[] = {
    {COUNTED(1, "published", "Messages published.", published)},
    {COUNTED(2, "attempts", "Runs that ended, however they did.", runs)},
    {COUNTED(3, "done", "Messages that are done.", done)},
    {COUNTED(4, "failed", "Messages rejected.", failed)},
    {COUNTED(5, "expired", "Messages rejected for being too late.", expired)},
    {COUNTED(6, "retried", "Messages put back for another attempt.", retried)},
    {COUNTED(7, "crashed", "Runs whose consumer died.", crashed)},
    {COUNTED(
	8, "lease_lost", "Runs whose consumer lost its lease.", lease_lost)},
    {COUNTED(9, "replaced", "Messages replaced by newer ones.", replaced)},
    {COUNTED(
	10, "dropped", "Rejected messages that were kept no longer.", dropped)},
    {"run_s", KIND_SECONDS, QUEUE(counts.run_ms)},
    {0},
};

/* Attributes of RSMQ have the names of its Node.js library. */
const struct field attribute_fields[] = {
    {"vt", KIND_NUMBER, QUEUE(attributes.vt_s)},
    {"delay", KIND_NUMBER, QUEUE(attributes.delay_s)},
    {"maxsize", KIND_NUMBER, QUEUE(attributes.maxsize)},
    {"created", KIND_NUMBER, QUEUE(created_s)},
    {"modified", KIND_NUMBER, QUEUE(modified_s)},
    {"totalsent", KIND_NUMBER, QUEUE(sent)},
    {"totalrecv", KIND_NUMBER, QUEUE(received)},
    {0},
};

const struct field connection_fields[] = {
    {"name", KIND_NAME, CONNECTION(name), .title = "CONNECTION"},
    {"live", KIND_LIVE, .title = "STATE"},
    {"lease_ms", KIND_SOME, CONNECTION(ttl_ms)},
    {NULL, KIND_TEXT, CONNECTION(node), .title = "HEARTBEAT ON",
	.sparse = true},
    {"host", KIND_TEXT, CONNECTION(host), .title = "HOST"},
    {"pid", KIND_SOME, CONNECTION(pid), .title = "PID", .id = true},
    {0},
};

const struct field consumed_fields[] = {
    {"queue", KIND_NAME, CONSUMED(queue), .title = "QUEUE"},
    {NULL, KIND_TEXT, CONSUMED(node), .title = "QUEUE ON", .sparse = true},
    {"unacked", KIND_COUNT, CONSUMED(unacked), .title = "UNACKED"},
    {"consumers", KIND_COUNT, CONSUMED(consumers), .title = "CONSUMERS"},
    {"node", KIND_TEXT, CONSUMED(node), .optional = true},
    {0},
};

const struct field run_fields[] = {
    {"queue", KIND_NAME, RUN(queue), .title = "QUEUE"},
    {"id", KIND_TEXT, RUN(id), .title = "ID"},
    {"attempt", KIND_NUMBER, RUN(attempt), .title = "ATTEMPT"},
    {"host", KIND_TEXT, RUN(host), .optional = true, .title = "HOST"},
    {"pid", KIND_NUMBER, RUN(pid), .title = "PID", .id = true},
    {"connection", KIND_NAME, RUN(connection)},
    {"started_ms", KIND_NUMBER, RUN(started_ms)},
    {NULL, KIND_PASSED, RUN(started_ms), .title = "SECONDS"},
    {"script", KIND_TEXT, RUN(script), .title = "SCRIPT"},
    {"seconds", KIND_PASSED, RUN(started_ms)},
    {"percent", KIND_PERCENT, RUN(percent), .optional = true},
    {"text", KIND_SAID, RUN(text), .title = "TEXT"},
    {0},
};

/* The counts are named as by mq_batch_words. */
const struct field batch_fields[] = {
    {"queue", KIND_NAME, BATCH(queue), .title = "QUEUE"},
    {"batch", KIND_TEXT, BATCH(name), .title = "BATCH"},
    {"total", KIND_NUMBER, BATCH(counts[MQ_BATCH_TOTAL]), .title = "TOTAL"},
    {"open", KIND_NUMBER, BATCH(counts[MQ_BATCH_OPEN]), .title = "OPEN"},
    {"done", KIND_NUMBER, BATCH(counts[MQ_BATCH_DONE]), .title = "DONE"},
    {"rejected", KIND_NUMBER, BATCH(counts[MQ_BATCH_REJECTED]),
	.title = "REJECTED"},
    {"expired", KIND_NUMBER, BATCH(counts[MQ_BATCH_EXPIRED]),
	.title = "EXPIRED"},
    {"purged", KIND_NUMBER, BATCH(counts[MQ_BATCH_PURGED]), .title = "PURGED"},
    {"pushed", KIND_NUMBER, BATCH(counts[MQ_BATCH_PUSHED]), .title = "PUSHED"},
    {"unknown", KIND_NUMBER, BATCH(counts[MQ_BATCH_UNKNOWN]),
	.title = "UNKNOWN"},
    {0},
};

const struct field spool_fields[] = {
    {"queue", KIND_NAME, SPOOLED(queue), .title = "QUEUE"},
    {"layout", KIND_TEXT, SPOOLED(layout), .title = "LAYOUT"},
    {"server", KIND_TEXT, SPOOLED(server), .title = "SERVER"},
    {"messages", KIND_NUMBER, SPOOLED(messages), .title = "MESSAGES"},
    {"since_ms", KIND_SOME, SPOOLED(since_ms)},
    {NULL, KIND_AGE, SPOOLED(since_ms), .title = "AGE"},
    {"tried_ms", KIND_SOME, SPOOLED(tried_ms)},
    {"why", KIND_TEXT, SPOOLED(why), .title = "WHY"},
    {"file", KIND_TEXT, SPOOLED(file)},
    {0},
};

const struct field *
field_by_key(const char *key)
{
	const struct field *f;

	for (f = queue_fields; f->kind != KIND_END; f++)
		if (f->key != NULL && strcmp(key, f->key) == 0)
			return f;
	return NULL;
}

long long
run_seconds(const struct mq_run *run, int64_t now_ms)
{
	int64_t ms = now_ms - run->started_ms;

	return run->started_ms == 0 || ms < 0 ? 0 : ms / 1000;
}

static long long
integer_of(const struct field *f, const void *record, int64_t now_ms)
{
	const void *at = (const char *)record + f->at;
	const struct mq_queue_stats *q = record;
	const struct mq_connection_stats *c = record;

	switch (f->kind) {
	case KIND_PAUSED:
		return q->ready < 0 ? -1 : q->paused_ms != 0;
	case KIND_LIVE:
		return c->unknown ? -1 : c->ttl_ms > 0;
	case KIND_PASSED:
		return run_seconds(record, now_ms);
	default:
		return f->size == sizeof(bool) ? *(const bool *)at :
		    f->size == sizeof(int)     ? *(const int *)at :
		    f->size == sizeof(long)    ? *(const long *)at :
						 *(const long long *)at;
	}
}

struct value
field_get(const struct field *f, const void *record, int64_t now_ms)
{
	/* The types of a number below 0, of 0, and of a number above 0. */
	static const enum value_type types[][3] = {
	    [KIND_LIVE] = {VALUE_UNKNOWN, VALUE_FLAG, VALUE_FLAG},
	    [KIND_FLAG] = {VALUE_UNKNOWN, VALUE_FLAG, VALUE_FLAG},
	    [KIND_PAUSED] = {VALUE_UNKNOWN, VALUE_FLAG, VALUE_FLAG},
	    [KIND_NUMBER] = {VALUE_INTEGER, VALUE_INTEGER, VALUE_INTEGER},
	    [KIND_PASSED] = {VALUE_INTEGER, VALUE_INTEGER, VALUE_INTEGER},
	    [KIND_COUNT] = {VALUE_UNKNOWN, VALUE_INTEGER, VALUE_INTEGER},
	    [KIND_SOME] = {VALUE_NONE, VALUE_NONE, VALUE_INTEGER},
	    [KIND_PERCENT] = {VALUE_NONE, VALUE_INTEGER, VALUE_INTEGER},
	    [KIND_SECONDS] = {VALUE_REAL, VALUE_REAL, VALUE_REAL},
	    [KIND_TIME] = {VALUE_UNKNOWN, VALUE_NONE, VALUE_REAL},
	    [KIND_AGE] = {VALUE_UNKNOWN, VALUE_NONE, VALUE_REAL},
	};
	const void *at = (const char *)record + f->at;
	struct value v = {.type = VALUE_NONE};

	if (f->kind == KIND_RATE) {
		v.real = *(const double *)at;
		v.type = v.real >= 0 ? VALUE_REAL : VALUE_NONE;
	} else if (f->kind <= KIND_CHARS) {
		v.text = f->kind == KIND_CHARS ? at : *(char *const *)at;
		if (v.text != NULL && (*v.text != '\0' || f->kind <= KIND_SAID))
			v.type = VALUE_TEXT;
	} else {
		v.n = integer_of(f, record, now_ms);
		v.type = types[f->kind][v.n < 0 ? 0 : v.n == 0 ? 1 : 2];
		v.real = (double)v.n;
		if (f->kind == KIND_AGE && v.type == VALUE_REAL)
			v.real =
			    v.n < now_ms ? (double)(now_ms - v.n) / 1000 : 0;
		else if (v.type == VALUE_REAL)
			v.real /= 1000;
	}
	return v;
}

void
field_set(
    json_t *object, const struct field *f, const void *record, int64_t now_ms)
{
	struct value v = field_get(f, record, now_ms);
	bool name = f->kind <= KIND_NAME;

	mq_json_set(object, f->name,
	    v.type == VALUE_TEXT && name ? mq_json_name(v.text) :
		v.type == VALUE_TEXT	 ? mq_json_text(v.text) :
		v.type == VALUE_REAL	 ? json_real(v.real) :
		v.type == VALUE_INTEGER	 ? json_integer(v.n) :
		v.type == VALUE_FLAG	 ? json_boolean(v.n > 0) :
		f->optional		 ? NULL :
					   json_null());
}

json_t *
fields_json(const struct field *f, const void *record, int64_t now_ms)
{
	json_t *v = json_object();

	for (; f->kind != KIND_END; f++)
		if (f->name != NULL)
			field_set(v, f, record, now_ms);
	return v;
}

json_t *
fields_list(const struct field *f, const void *records, size_t size, int count,
    int64_t now_ms)
{
	json_t *list = json_array();
	const char *record = records;

	for (; count > 0; count--, record += size)
		json_array_append_new(list, fields_json(f, record, now_ms));
	return list;
}
