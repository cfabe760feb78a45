/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "stats.h"

void
collect_queues(struct collector *c, struct stats_options *o)
{
	c->layout = o->shared.layout;
	mq_option_queues(&o->shared, &c->server, o->queues, o->count);
	c->queues = (const char *const *)o->queues;
	c->count = o->count;
}

static void
add_wrong(struct model *m, struct mq_names *keys)
{
	char text[700];
	size_t i;

	mq_names_sort(keys);
	for (i = 0; i < keys->n; i++) {
		snprintf(text, sizeof(text), "%s: the key holds another type",
		    keys->list[i].name);
		mq_names_add(&m->lacks, text, NULL);
	}
}

void
collect_lacks(struct collector *c, struct model *m)
{
	const char *why;
	int i;

	mq_names_free(&m->lacks);
	for (i = 0; (why = mq_partial_lost(&c->redis, i)) != NULL; i++)
		mq_names_add(&m->lacks, why, NULL);
	m->lost = i;
	add_wrong(m, &m->stats.wrong);
	add_wrong(m, &m->runs.wrong);
}

/* Seconds to wait for a failover: statistics are not worth more. */
#define FAILOVER_S 5

int
collect_open(struct collector *c)
{
	c->server.failover_s = FAILOVER_S;
	return mq_redis_lost(&c->redis) ? mq_redis_open(&c->redis, &c->server) :
					  0;
}

static double
rate_of(long long from, long long to, double seconds)
{
	return to < from ? -1 : (double)(to - from) / seconds;
}

/* Computes rates since the previous look, and keeps the past unless the new look has
 * one. */
static void
take_over(struct mq_stats *old, struct mq_stats *new)
{
	double seconds = (double)(new->now_ms - old->now_ms) / 1000;
	struct mq_queue_stats *o = NULL, *q;
	int i, k;

	for (i = 0; i < new->count; i++) {
		q = &new->queues[i];
		/* The search starts at the queue's previous place, where most queues
		 * still are. */
		for (k = 0; k < old->count; k++) {
			o = &old->queues[(i + k) % old->count];
			if (strcmp(o->name, q->name) == 0)
				break;
		}
		if (k >= old->count)
			continue;
		if (!new->past) {
			memcpy(q->past, o->past, sizeof(q->past));
			memset(o->past, 0, sizeof(o->past));
		}
		q->grows = q->ready > o->ready;
		if (seconds <= 0 || !q->counted || !o->counted)
			continue;
		if (q->counts.published > 0)
			q->in_s = rate_of(
			    o->counts.published, q->counts.published, seconds);
		q->out_s = rate_of(o->counts.done + o->counts.failed,
		    q->counts.done + q->counts.failed, seconds);
	}
}

int
collect_try(struct collector *c, int wanted, struct model *m)
{
	struct mq_stats stats = {0};
	const char *why;
	long long left = -2; /* ms, of a pause of all; -2: none */
	char *any;
	int i, rv = collect_open(c);

	m->server = c->server.name;
	m->error[0] = '\0';
	if (rv == 0)
		rv = c->layout->stats(
		    &c->redis, c->queues, c->count, wanted, &stats);
	if (rv == 0) {
		any = mq_layout_queue(c->layout, c->server.url.ns, "any", &why);
		rv = mq_queue_pause_left(&c->redis, c->layout, any, &left);
		free(any);
	}
	for (i = 0; i < stats.count && left != -2; i++) {
		stats.queues[i].all_paused = true;
		if (left > 0)
			stats.queues[i].all_paused_ms = stats.now_ms + left;
	}
	if (rv == 0 && stats.count <= c->past)
		rv = mq_past_ask(&c->redis, c->layout, &stats);
	if (rv == -1) {
		mq_stats_free(&stats);
		strlcpy(m->error, c->redis.error, sizeof(m->error));
		mq_redis_close(&c->redis);
		return -1;
	}
	take_over(&m->stats, &stats);
	mq_stats_free(&m->stats);
	m->stats = stats;
	collect_lacks(c, m);
	return 0;
}

void
collect_stats(struct collector *c, int wanted, struct model *m)
{
	mq_option_must(&c->redis, collect_try(c, wanted, m));
}

void
collect_elsewhere(struct collector *c, struct model *m)
{
	const struct mq_queue_stats *q = m->stats.queues;
	char *hint;

	for (; q < m->stats.queues + m->stats.count; q++) {
		hint = q->known ? NULL :
				  mq_known_hint(&c->redis, c->layout, q->name);
		mq_names_add(&m->elsewhere, hint, NULL);
		free(hint);
	}
}

/* Batches that are shown, and queues that are asked, at most. */
#define BATCHES_MAX 100

void
collect_batches(struct collector *c, struct model *m)
{
	const struct mq_queue_stats *q = m->stats.queues;
	int left = c->layout->has & MQ_HAS_BATCHES ? BATCHES_MAX : 0, i;
	const struct mq_name *of;
	struct batch *b;
	bool known;

	for (i = 0; i < m->stats.count && left > 0; i++) {
		if (q[i].ready + q[i].delayed + q[i].unacked <= 0)
			continue;
		left--;
		if (mq_queue_open_batches(
			&c->redis, c->layout, q[i].name, &m->batch_names) == -1)
			left = 0;
	}
	m->batches = mq_xcalloc(BATCHES_MAX, sizeof(*m->batches));
	of = m->batch_names.list;
	for (; of < m->batch_names.list + m->batch_names.n &&
	     m->batch_count < BATCHES_MAX;
	     of++) {
		b = &m->batches[m->batch_count];
		*b = (struct batch){of->queue, of->name, {0}};
		if (mq_queue_batch(&c->redis, c->layout, b->queue, b->name,
			&known, b->counts) == -1)
			break;
		m->batch_count += b->counts[MQ_BATCH_OPEN] > 0;
	}
}

int
collect_runs_try(struct collector *c, struct model *m)
{
	struct mq_runs *all = &m->runs, others = {0};
	int i, k, kept = 0;

	mq_runs_free(all);
	if (collect_open(c) == -1 || c->layout->running(&c->redis, all) == -1) {
		strlcpy(m->error, c->redis.error, sizeof(m->error));
		mq_redis_close(&c->redis);
		return -1;
	}
	others.runs = mq_xcalloc((size_t)all->count + 1, sizeof(*all->runs));
	for (i = 0; i < all->count; i++) {
		k = 0;
		while (k < c->count &&
		    strcmp(c->queues[k], all->runs[i].queue) != 0)
			k++;
		if (k < c->count || c->count == 0)
			all->runs[kept++] = all->runs[i];
		else
			others.runs[others.count++] = all->runs[i];
	}
	all->count = kept;
	mq_runs_free(&others);
	return 0;
}

void
collect_runs(struct collector *c, struct model *m)
{
	mq_option_must(&c->redis, collect_runs_try(c, m));
}
