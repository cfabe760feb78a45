#include "layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.h"

/* Nothing that is counted in less time makes a rate, unless it is known that
 * there was nothing before. */
#define WINDOW_S 10.0
#define MINUTE_S 60.0

/* The fields that are asked for, in this order; the buckets follow. */
enum {
	PUBLISHED,
	DONE,
	FAILED,
	NOW_S,
	NOW_IN,
	NOW_OUT,
	THEN_S,
	THEN_IN,
	THEN_OUT,
	SOME,
	RUNS = SOME,
	EXPIRED,
	RETRIED,
	CRASHED,
	LEASE_LOST,
	RUN_MS,
	BUCKETS,
	ALL = BUCKETS + MQ_BUCKETS
};

static const char *const names[BUCKETS] = {"published", "done", "failed",
    "now_s", "now_in", "now_out", "then_s", "then_in", "then_out", "runs",
    "expired", "retried", "crashed", "lease_lost", "run_ms"};

void
mq_counts_ask(struct mq_command *c, int wanted)
{
	int i;

	for (i = 0; i < (wanted & MQ_STATS_COUNTS ? BUCKETS : SOME); i++)
		mq_command_str(c, names[i]);
	if (!(wanted & MQ_STATS_COUNTS))
		return;
	for (i = 0; i < MQ_BUCKETS; i++)
		mq_command_fmt(c, "run_%d", i);
}

/* A time in which something was counted, evenly as far as anybody knows. */
struct span {
	double from, to;
	long long n;
};

/* How much of it was in the last minute. */
static double
recent_count(const struct span *s, double now)
{
	double from = s->from > now - MINUTE_S ? s->from : now - MINUTE_S;

	if (s->to <= s->from)
		return s->to >= from ? (double)s->n : 0;
	return s->to > from ?
	    (double)s->n * (s->to - from) / (s->to - s->from) :
	    0;
}

/* Over the last minute.  When nothing was counted in the minute before this one,
 * over the time since, but at least WINDOW_S. */
static double
rate_per_s(const struct span *then, const struct span *this, double now)
{
	double s = now - this->from;

	if (then->n < 0 || this->n < 0)
		return -1;
	if (s > MINUTE_S || then->to > now - MINUTE_S)
		s = MINUTE_S;
	else if (s < WINDOW_S)
		s = WINDOW_S;
	return (recent_count(then, now) + recent_count(this, now)) / s;
}

/*
 * A minute that counted something began at now_s, the one before it at then_s.
 * Publishers count without beginning one.
 */
static void
set_rates(const long long *v, int64_t now_ms, struct mq_queue_stats *q)
{
	double now = (double)now_ms / 1000, then_s = (double)v[THEN_S];
	double now_s = (double)v[NOW_S];
	struct span then = {
	    then_s, then_s + MINUTE_S, v[NOW_OUT] - v[THEN_OUT]};
	struct span this = {
	    now_s, now_s + MINUTE_S, v[DONE] + v[FAILED] - v[NOW_OUT]};
	bool first = v[THEN_S] >= v[NOW_S];
	bool gap = first || now_s - then_s > 2 * MINUTE_S;
	/* The counts came before now_s: by a second, or by a day. */
	bool undated = gap && v[NOW_IN] > (first ? 0 : v[THEN_IN]);

	if (v[NOW_S] <= 0 || now_s > now + 1 ||
	    (first && now - now_s < WINDOW_S))
		return;
	if (first)
		then = (struct span){0};
	if (this.to > now)
		this.to = now;
	q->out_s = rate_per_s(&then, &this, now);
	then.n = first ? 0 : v[NOW_IN] - v[THEN_IN];
	then.to = gap ? 0 : now_s;
	this.n = v[PUBLISHED] - v[NOW_IN];
	this.to = now;
	/* Nobody has counted any, or nobody knows when they came. */
	if (v[PUBLISHED] > 0 &&
	    (this.n == 0 ? !undated || now - now_s >= MINUTE_S :
			   now - now_s < 2 * MINUTE_S))
		q->in_s = rate_per_s(&then, &this, now);
}

int
mq_counts_take(
    const redisReply *reply, int64_t now_ms, struct mq_queue_stats *q)
{
	/* Other programs may have written any number; sums of these do not overflow. */
	const long long max = 1LL << 53;
	struct mq_counts *c = &q->counts;
	long long v[ALL] = {0};
	size_t i;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements > ALL)
		return -1;
	for (i = 0; i < reply->elements; i++)
		if (reply->element[i]->type == REDIS_REPLY_STRING) {
			v[i] = strtoll(reply->element[i]->str, NULL, 10);
			v[i] = v[i] > max ? max : v[i] < -max ? -max : v[i];
			q->counted = true;
		}
	*c = (struct mq_counts){.published = v[PUBLISHED],
	    .runs = v[RUNS],
	    .done = v[DONE],
	    .failed = v[FAILED],
	    .expired = v[EXPIRED],
	    .retried = v[RETRIED],
	    .crashed = v[CRASHED],
	    .lease_lost = v[LEASE_LOST],
	    .run_ms = v[RUN_MS]};
	memcpy(c->bucket, v + BUCKETS, sizeof(c->bucket));
	set_rates(v, now_ms, q);
	return 0;
}

static void
add_count(struct mq_command *c, const char *field, long long n)
{
	if (n == 0)
		return;
	mq_command_str(c, field);
	mq_command_int(c, n);
}

void
mq_side_count(const struct mq_side *side, struct mq_command *c,
    const char *queue, const struct mq_counts *n)
{
	char bucket[16];
	int i;

	mq_command_script(c, &mq_script_count);
	side->key(c, queue, side->counters);
	if (side->exists != NULL)
		side->key(c, queue, side->exists);
	add_count(c, "published", n->published);
	add_count(c, "runs", n->runs);
	add_count(c, "done", n->done);
	add_count(c, "failed", n->failed);
	add_count(c, "expired", n->expired);
	add_count(c, "retried", n->retried);
	add_count(c, "crashed", n->crashed);
	add_count(c, "lease_lost", n->lease_lost);
	add_count(c, "run_ms", n->run_ms);
	for (i = 0; i < MQ_BUCKETS; i++) {
		snprintf(bucket, sizeof(bucket), "run_%d", i);
		add_count(c, bucket, n->bucket[i]);
	}
}
