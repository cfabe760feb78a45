/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Functions of layouts for stats: see stats.h and layout.h. */
#include "layout.h"

#include "base/text.h"

/* --- counts -------------------------------------------------------------- */

/* The shortest time, in seconds, that makes a rate; a shorter one does if nothing was
 * counted before it. */
#define WINDOW_S 10.0
#define MINUTE_S 60.0

/* The fields of the counters, in the order in which they are asked for: those before SOME
 * always, as rates need them; then the others; then the buckets. */
enum { PUBLISHED, DONE, FAILED };
enum { NOW_S = FAILED + 1, NOW_IN, NOW_OUT, THEN_S, THEN_IN, THEN_OUT };
enum { DONE_S = THEN_OUT + 1, SOME };
enum {
	RUNS = SOME,
	EXPIRED,
	RETRIED,
	CRASHED,
	LEASE_LOST,
	REPLACED,
	RUN_MS,
	DROPPED,
	BUCKETS
};
enum { ALL = BUCKETS + MQ_BUCKETS };

static const char *const fields[BUCKETS] = {"published", "done", "failed",
    "now_s", "now_in", "now_out", "then_s", "then_in", "then_out", "done_s",
    "runs", "expired", "retried", "crashed", "lease_lost", "replaced", "run_ms",
    "dropped"};

void
mq_counts_ask(struct mq_command *c, int wanted)
{
	int i;

	for (i = 0; i < (wanted & MQ_STATS_COUNTS ? ALL : SOME); i++)
		if (i < BUCKETS)
			mq_command_str(c, fields[i]);
		else
			mq_command_fmt(c, "run_%d", i - BUCKETS);
}

/* A span of unix time, in seconds, over which a count is taken to be spread evenly. */
struct span {
	double from, to;
	long long n;
};

/* The part of a span's count that falls into the last minute. */
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

/* The rate over the last minute.  If nothing was counted in the minute before this one, the
 * rate is over the time since then, but at least over WINDOW_S. */
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

/* A minute that counted something began at now_s, the one before it at then_s.
 * Publishers count without beginning one. */
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
	/* The first counts came at some time before now_s: a second, or a day. */
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
	/* No rate is known if nothing was ever published, or at an unknown time. */
	if (v[PUBLISHED] > 0 &&
	    (this.n == 0 ? !undated || now - now_s >= MINUTE_S :
			   now - now_s < 2 * MINUTE_S))
		q->in_s = rate_per_s(&then, &this, now);
}

int
mq_counts_parse(const redisReply *reply, size_t from, int64_t now_ms,
    struct mq_queue_stats *q)
{
	/* Other programs may have written any number; sums of these do not overflow. */
	const long long max = 1LL << 53;
	struct mq_counts *c = &q->counts;
	long long v[ALL] = {0};
	const redisReply *e;
	size_t i;

	if (reply->elements < from || reply->elements - from > ALL)
		return -1;
	for (i = 0; from + i < reply->elements; i++) {
		e = reply->element[from + i];
		if (e->type == REDIS_REPLY_STRING) {
			v[i] = strtoll(e->str, NULL, 10);
			v[i] = v[i] > max ? max : v[i] < -max ? -max : v[i];
			q->counted = true;
		}
	}
	*c = (struct mq_counts){.published = v[PUBLISHED],
	    .runs = v[RUNS],
	    .done = v[DONE],
	    .failed = v[FAILED],
	    .expired = v[EXPIRED],
	    .retried = v[RETRIED],
	    .crashed = v[CRASHED],
	    .lease_lost = v[LEASE_LOST],
	    .replaced = v[REPLACED],
	    .run_ms = v[RUN_MS],
	    .dropped = v[DROPPED]};
	memcpy(c->bucket, v + BUCKETS, sizeof(c->bucket));
	/* Older programs count without the time. */
	q->done_ms = v[DONE_S] > 0 ? v[DONE_S] * 1000 : v[DONE] > 0 ? -1 : 0;
	set_rates(v, now_ms, q);
	return 0;
}

void
mq_extra_count(const struct mq_extra_keys *extra, struct mq_command *c,
    const char *queue, const struct mq_counts *n)
{
	/* The order is that of struct mq_counts. */
	static const char *const names[] = {"published", "runs", "done",
	    "failed", "expired", "retried", "crashed", "lease_lost", "replaced",
	    "run_ms", "dropped"};
	const size_t count = sizeof(names) / sizeof(names[0]);
	long long v[sizeof(*n) / sizeof(long long)];
	char bucket[16];
	size_t i;

	memcpy(v, n, sizeof(v));
	mq_command_script(c, &mq_script_count);
	extra->key(c, queue, "counters");
	if (extra->exists != NULL)
		extra->key(c, queue, extra->exists);
	for (i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		snprintf(bucket, sizeof(bucket), "run_%zu", i - count);
		if (v[i] != 0)
			mq_command_add(
			    c, "%s %lld", i < count ? names[i] : bucket, v[i]);
	}
}

/* --- rows ---------------------------------------------------------------- */

/* The name is the first member of each. */
static int
by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

void
mq_rows_list(
    struct mq_names *names, const redisReply *list, struct mq_names *odd)
{
	const redisReply *name;
	size_t i;

	for (i = 0; i < list->elements; i++) {
		name = list->element[i];
		if (strlen(name->str) == (size_t)name->len)
			mq_names_add(names, name->str, NULL);
		else
			mq_names_add_odd(odd, name->str, name->len);
	}
}

void
mq_rows_make(struct mq_stats *out, struct mq_names *names, bool known)
{
	size_t i;

	/* Names are far cheaper to sort than rows. */
	if (names->n > 0)
		qsort(names->list, names->n, sizeof(*names->list), by_name);
	out->queues = mq_xcalloc(names->n + 1, sizeof(*out->queues));
	out->count = (int)names->n;
	for (i = 0; i < names->n; i++)
		out->queues[i] =
		    (struct mq_queue_stats){.name = names->list[i].name,
			.known = known,
			.in_s = -1,
			.out_s = -1,
			.slots_taken = -1,
			.slots_shared = -1};
	free(names->list);
	*names = (struct mq_names){0};
}

void
mq_rows_unknown(struct mq_queue_stats *q)
{
	q->ready = q->delayed = q->unacked = q->rejected = -1;
	q->consumers = q->dead_consumers = q->connections = -1;
	q->in_line = q->oldest_ms = q->done_ms = -1;
	q->counted = false;
}

struct mq_queue_stats *
mq_rows_find(const struct mq_stats *stats, const char *name)
{
	struct mq_queue_stats key = {.name = (char *)(uintptr_t)name};

	return bsearch(
	    &key, stats->queues, (size_t)stats->count, sizeof(key), by_name);
}

void
mq_rows_order(struct mq_stats *out, const char *const *names, int count)
{
	struct mq_queue_stats *rows = mq_xcalloc((size_t)count, sizeof(*rows));
	const struct mq_queue_stats *row;
	int i;

	for (i = 0; i < count; i++) {
		row = mq_rows_find(out, names[i]);
		if (row != NULL)
			rows[i] = *row;
		rows[i].name = mq_xstrdup(names[i]);
	}
	for (i = 0; i < count; i++)
		free(out->queues[i].name);
	free(out->queues);
	out->queues = rows;
}

/* --- connections --------------------------------------------------------- */

void
mq_rows_connections(struct mq_stats *out, const redisReply *names,
    const struct mq_names *others)
{
	struct mq_names all = {0};
	size_t i;

	mq_rows_list(&all, names, &out->odd);
	for (i = 0; others != NULL && i < others->n; i++)
		mq_names_add(&all, others->list[i].name, NULL);
	mq_names_sort(&all);
	out->connections = mq_xcalloc(all.n + 1, sizeof(*out->connections));
	for (i = 0; i < all.n; i++)
		out->connections[out->connection_count++].name =
		    all.list[i].name;
	free(all.list);
}

void
mq_links_add(struct mq_links *l, struct mq_connection_stats *c,
    const char *queue, long long consumers)
{
	if (mq_rows_find(l->out, queue) == NULL && (l->named || !l->wanted))
		return;
	c->consumed[c->count++] = (struct mq_consumed){
	    .queue = mq_xstrdup(queue), .consumers = consumers};
	l->n++;
}

void
mq_links_about(struct mq_connection_stats *c, redisReply *const facts[3])
{
	const redisReply *host = facts[0], *pid = facts[1];

	c->by_receipt = facts[2]->type == REDIS_REPLY_STRING;
	if (host->type == REDIS_REPLY_STRING && host->str[0] != '\0')
		c->host = mq_xstrdup(host->str);
	if (pid->type == REDIS_REPLY_STRING)
		c->pid = strtol(pid->str, NULL, 10);
	if (c->pid < 0)
		c->pid = 0;
}

void
mq_links_list(struct mq_links *l)
{
	struct mq_connection_stats *c = l->out->connections;
	struct mq_consumed *queue;
	struct mq_queue_stats *row;
	int i, n = l->out->connection_count;

	l->list = mq_xcalloc(l->n + 1, sizeof(*l->list));
	l->n = 0;
	for (; n > 0; n--, c++) {
		if (c->count > 0)
			qsort(c->consumed, (size_t)c->count,
			    sizeof(*c->consumed), by_name);
		for (i = 0; i < c->count; i++) {
			queue = &c->consumed[i];
			row = mq_rows_find(l->out, queue->queue);
			l->list[l->n++] = (struct mq_consuming){c, queue, row};
			if (row != NULL && c->ttl_ms > 0)
				row->connections++;
		}
	}
}

static void
free_connection(struct mq_connection_stats *c)
{
	int i;

	for (i = 0; i < c->count; i++) {
		free(c->consumed[i].queue);
		free(c->consumed[i].node);
	}
	free(c->consumed);
	free(c->name);
	free(c->node);
	free(c->host);
}

void
mq_links_end(struct mq_links *l)
{
	struct mq_connection_stats *c = l->out->connections;
	struct mq_queue_stats *q = l->out->queues;
	int i, n = l->out->connection_count;

	free(l->list);
	for (i = 0; i < l->out->count; i++, q++)
		if (q->wrong) {
			mq_rows_unknown(q);
			/* If no step has named the key, the queue is named. */
			if (l->out->wrong.n == 0)
				mq_names_add(&l->out->wrong, q->name, NULL);
		}
	if (!l->named && l->wanted)
		return;
	l->out->connection_count = 0;
	for (i = 0; i < n; i++)
		if (l->wanted && c[i].count > 0)
			c[l->out->connection_count++] = c[i];
		else
			free_connection(&c[i]);
}

void
mq_stats_free(struct mq_stats *stats)
{
	int i, k;

	for (i = 0; i < stats->count; i++) {
		free(stats->queues[i].name);
		free(stats->queues[i].node);
		for (k = 0; k < MQ_PASTS; k++)
			free(stats->queues[i].past[k].notes);
	}
	free(stats->queues);
	for (i = 0; i < stats->connection_count; i++)
		free_connection(&stats->connections[i]);
	free(stats->connections);
	mq_names_free(&stats->cluster);
	mq_names_free(&stats->odd);
	mq_names_free(&stats->wrong);
	*stats = (struct mq_stats){0};
}

/* --- past ---------------------------------------------------------------- */

/* The hashes with the past: a note is of unit_s seconds, and each has count notes. */
static const struct {
	const char *key;
	long long unit_s, count;
} spans[MQ_PASTS] = {
    [MQ_MINUTES] = {"minutes", 60, 60}, [MQ_HOURS] = {"hours", 3600, 48}};

struct pass {
	const struct mq_extra_keys *extra;
	struct mq_stats *stats;
};

/* A note is its numbers as text; later versions may add some behind. */
static void
ask_to_note(void *arg, size_t i, struct mq_command *c)
{
	const struct pass *p = arg;
	const struct mq_queue_stats *q = &p->stats->queues[i];
	long long now_s = p->stats->now_ms / 1000, age_s = q->oldest_ms;
	int k;

	if (age_s > 0)
		age_s = age_s / 1000 < now_s ? now_s - age_s / 1000 : 0;
	mq_command_script(c, &mq_script_note);
	for (k = 0; k < MQ_PASTS; k++)
		p->extra->key(c, q->name, spans[k].key);
	mq_command_fmt(c, "%lld %lld %lld %lld %lld %lld %lld %lld %lld", now_s,
	    q->ready, q->delayed, q->unacked, q->rejected, q->consumers, age_s,
	    q->counted ? q->counts.published : -1,
	    q->counted ? q->counts.done + q->counts.failed : -1);
	for (k = 0; k < MQ_PASTS; k++) {
		mq_command_add(c, "%lld %lld",
		    now_s / spans[k].unit_s % spans[k].count,
		    (spans[k].count + 2) * spans[k].unit_s);
	}
}

void
mq_past_note(struct mq_redis *r, const struct mq_layout *layout,
    const char *const *queues, int count)
{
	struct mq_stats stats;
	struct pass p = {layout->extra, &stats};
	struct mq_queue_stats *q, row;
	int i, n = 0;

	if (layout->stats(r, queues, count, MQ_STATS_FEW, &stats) == -1)
		return;
	for (i = 0; i < stats.count; i++) {
		q = &stats.queues[i];
		/* A queue without messages and counts may be a mere name, one of
		 * thousands. */
		if (q->scattered ||
		    (!q->counted && q->ready <= 0 && q->delayed <= 0 &&
			q->unacked <= 0 && q->rejected <= 0))
			continue;
		row = stats.queues[n];
		stats.queues[n++] = *q;
		*q = row;
	}
	(void)mq_ask_each(r, (size_t)n, ask_to_note, NULL, &p);
	mq_stats_free(&stats);
}

static void
ask_past(void *arg, size_t i, struct mq_command *c)
{
	const struct pass *p = arg;

	mq_command_plain(c, "HVALS");
	p->extra->key(
	    c, p->stats->queues[i / MQ_PASTS].name, spans[i % MQ_PASTS].key);
}

static int
by_time(const void *a, const void *b)
{
	const struct mq_note *x = a, *y = b;

	return x->n[MQ_NOTED_AT_S] < y->n[MQ_NOTED_AT_S] ? -1 : 1;
}

/* A user without the right to read the past gets none. */
static int
parse_past(void *arg, size_t i, redisReply *reply)
{
	struct mq_stats *stats = ((const struct pass *)arg)->stats;
	struct mq_past *out = &stats->queues[i / MQ_PASTS].past[i % MQ_PASTS];
	long long unit_s = spans[i % MQ_PASTS].unit_s, *n;
	long long begun_s =
	    stats->now_ms / 1000 - spans[i % MQ_PASTS].count * unit_s;
	const char *text;
	size_t k, m, len;

	if (!mq_reply_is(reply, ""))
		return 0;
	out->notes = mq_xcalloc(reply->elements + 1, sizeof(*out->notes));
	for (k = 0; k < reply->elements; k++) {
		text = reply->element[k]->str;
		n = out->notes[out->count].n;
		for (m = 0; m < MQ_NOTED; m++) {
			len = strcspn(text, " ");
			n[m] = mq_number(text, len, 1LL << 53);
			text += len + (text[len] == ' ');
		}
		/* Skips notes left from an earlier turn of the hash, or ahead of the
		 * clock. */
		out->count += n[MQ_NOTED_AT_S] > begun_s &&
		    n[MQ_NOTED_AT_S] <= stats->now_ms / 1000 + unit_s;
	}
	qsort(out->notes, (size_t)out->count, sizeof(*out->notes), by_time);
	return 0;
}

int
mq_past_ask(
    struct mq_redis *r, const struct mq_layout *layout, struct mq_stats *stats)
{
	struct pass p = {layout->extra, stats};

	stats->past = true;
	return mq_ask_each(
	    r, (size_t)stats->count * MQ_PASTS, ask_past, parse_past, &p);
}
