/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "stats.h"

/* --- order --------------------------------------------------------------- */

struct row {
	const struct mq_queue_stats *q;
	bool by_name;
	double value; /* -1: no value; -2: unknown */
};

static int
compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int by_name = x->by_name ? strcmp(x->q->name, y->q->name) : 0;

	if (by_name != 0)
		return by_name;
	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->q < y->q ? -1 : 1;
}

const struct mq_queue_stats **
order_rows(const struct model *m, int *count, int *marked)
{
	const struct order *o = &m->order;
	size_t n = (size_t)m->stats.count, kept = 0, i;
	struct row *rows = mq_xcalloc(n + 1, sizeof(*rows)), *row;
	const struct mq_queue_stats **sorted =
	    mq_xcalloc(n + 1, sizeof(*sorted));
	const struct mq_queue_stats *q = m->stats.queues;
	struct value v;

	for (i = 0; i < n; i++, q++) {
		if (o->nonempty && q->ready == 0 && q->delayed == 0 &&
		    q->unacked == 0 && q->rejected == 0)
			continue;
		row = &rows[kept++];
		row->q = q;
		if (o->key == NULL)
			continue;
		v = field_get(o->key, q, m->stats.now_ms);
		row->by_name = o->key->kind == KIND_QUEUE;
		row->value = v.type == VALUE_NONE ? -1 :
		    v.type == VALUE_UNKNOWN	  ? -2 :
						    v.real;
	}
	if (o->key != NULL)
		qsort(rows, kept, sizeof(*rows), compare_rows);
	for (i = 0; i < kept; i++)
		sorted[o->reverse ? kept - 1 - i : i] = rows[i].q;
	free(rows);
	*count = (int)kept;
	*marked = 0;
	for (i = kept; o->marked != NULL && i-- > 0;)
		if (strcmp(sorted[i]->name, o->marked) == 0)
			*marked = (int)i;
	return sorted;
}

/* --- sums ---------------------------------------------------------------- */

void
sum_add(struct mq_queue_stats *sum, const struct mq_queue_stats *q)
{
	const struct field *f;
	const void *from;
	void *to;
	long long *count, n;
	double *rate, r;
	int64_t *since, ms;

	for (f = queue_fields; f->kind != KIND_END; f++) {
		to = (char *)sum + f->at;
		from = (const char *)q + f->at;
		if (f->sum == SUM_NONE || (q->refuse && f->sum == SUM_OWN))
			continue;
		if (f->kind == KIND_COUNT) {
			/* One unknown number makes the sum unknown. */
			count = to;
			n = *(const long long *)from;
			*count = *count < 0 || n < 0 ? -1 : *count + n;
		} else if (f->kind == KIND_RATE) {
			rate = to;
			r = *(const double *)from;
			if (r >= 0)
				*rate = *rate < 0 ? r : *rate + r;
		} else {
			since = to;
			ms = *(const int64_t *)from;
			if (ms > 0 ? *since <= 0 || ms < *since :
				     ms != 0 && *since == 0)
				*since = ms;
		}
	}
}

struct mq_queue_stats
model_total(const struct model *m)
{
	const struct mq_queue_stats *all = m->stats.queues;
	struct mq_queue_stats sum = SUM_BEGIN;
	bool ascending = true; /* names so far are sorted and thus unique */
	int i, k;

	for (i = 0; i < m->stats.count; i++) {
		ascending = ascending &&
		    (i == 0 || strcmp(all[i - 1].name, all[i].name) < 0);
		k = ascending ? i : 0;
		while (k < i && strcmp(all[k].name, all[i].name) != 0)
			k++;
		if (k == i)
			sum_add(&sum, &all[i]);
	}
	if (m->stats.incomplete)
		sum.ready = sum.delayed = sum.unacked = sum.rejected =
		    sum.consumers = sum.dead_consumers = -1;
	if (sum.ready < 0) {
		sum.oldest_ms = -1;
		sum.in_s = sum.out_s = -1;
	}
	return sum;
}

/* --- tables -------------------------------------------------------------- */

/* height: as in struct view. */
static void
fill_queues(const struct model *m, int height, struct table *t)
{
	struct mq_queue_stats sum = SUM_BEGIN;
	char rest[32], total[] = "TOTAL";
	int i, n, room, lines, first = 0, marked;
	const struct mq_queue_stats **rows = order_rows(m, &n, &marked);

	table_begin(t, queue_fields, NULL, m->stats.now_ms);
	t->total = m->stats.count > 1;
	room = height - 1 - t->total;
	lines = m->order.limit > 0 ? (int)MIN(m->order.limit, n) : n;
	if (height > 0 && lines + (lines < n) > room)
		lines = MAX(room - 1, 0);
	t->rest = lines < n;
	if (m->order.marked != NULL && lines > 0)
		t->marked = marked + 1;
	/* The marked row must be among the rows that have a line. */
	if (t->marked > lines) {
		first = t->marked - lines;
		t->marked = lines;
	}
	for (i = 0; i < lines; i++)
		table_add(t, rows[first + i], NULL);
	if (t->rest) {
		for (i = lines; i < n; i++)
			sum_add(&sum, rows[(first + i) % n]);
		snprintf(rest, sizeof(rest), "%d more", n - lines);
		sum.name = rest;
		table_add(t, &sum, NULL);
	}
	free(rows);
	if (t->total) {
		sum = model_total(m);
		sum.name = total;
		table_add(t, &sum, NULL);
	}
}

void
tables_fill(
    const struct model *m, bool connections, int height, struct table *t)
{
	const struct mq_connection_stats *c;
	int row, i;

	if (!connections) {
		fill_queues(m, height, t);
		return;
	}
	table_begin(t, connection_fields, consumed_fields, 0);
	/* A connection has a row for each queue that it consumes, or one row without
	 * a queue. */
	for (row = 0; row < m->stats.connection_count; row++) {
		c = &m->stats.connections[row];
		for (i = 0; i == 0 || i < c->count; i++)
			table_add(t, c, c->count > 0 ? &c->consumed[i] : NULL);
	}
}

void
running_fill(const struct model *m, int64_t now_ms, struct table *t)
{
	int i;

	table_begin(t, run_fields, NULL, now_ms);
	for (i = 0; i < m->runs.count; i++)
		table_add(t, &m->runs.runs[i], NULL);
}

bool
model_report_missing(const struct model *m)
{
	const struct mq_queue_stats *q = m->stats.queues;
	bool known = true;
	int i;

	for (i = 0; i < m->stats.count; i++, q++)
		if (!q->known) {
			mq_say("%s: no such queue%s", q->name,
			    m->elsewhere.list[i].name);
			known = false;
		}
	return known;
}

void
model_report_lacks(const struct model *m)
{
	size_t i;

	for (i = 0; i < m->lacks.n; i++)
		mq_say("%s: %s", m->server, m->lacks.list[i].name);
}

void
model_free(struct model *m)
{
	struct rejections *r = m->rejected;
	int i, k;

	for (i = 0; r != NULL && i < m->stats.count; i++, r++) {
		for (k = 0; k < r->count; k++) {
			free(r->all[k].id);
			free(r->all[k].reason);
		}
		free(r->all);
		reasons_free(&r->reasons);
	}
	free(m->rejected);
	free(m->batches);
	mq_names_free(&m->batch_names);
	mq_names_free(&m->elsewhere);
	mq_names_free(&m->lacks);
	mq_runs_free(&m->runs);
	mq_stats_free(&m->stats);
}
