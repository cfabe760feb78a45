#include "stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

struct row {
	const struct mq_queue_stats *q;
	bool by_name;
	double value;
};

/* What is not there is below 0, and what is not known below that. */
static double
sort_value(
    const struct field *f, const struct mq_queue_stats *q, int64_t now_ms)
{
	struct value v = field_get(f, q, now_ms);

	return v.type == VALUE_NONE ? -1 :
	    v.type == VALUE_UNKNOWN ? -2 :
				      v.real;
}

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

static bool
may_have_messages(const struct mq_queue_stats *q)
{
	return q->ready != 0 || q->delayed != 0 || q->unacked != 0 ||
	    q->rejected != 0;
}

const struct mq_queue_stats **
order_rows(const struct model *m, int *count)
{
	const struct order *o = &m->order;
	size_t n = (size_t)m->stats.count, kept = 0, i;
	struct row *rows = mq_xcalloc(n + 1, sizeof(*rows));
	const struct mq_queue_stats **sorted =
	    mq_xcalloc(n + 1, sizeof(*sorted));
	const struct mq_queue_stats *q = m->stats.queues;

	for (i = 0; i < n; i++, q++)
		if (!o->nonempty || may_have_messages(q))
			rows[kept++] = (struct row){.q = q,
			    .by_name =
				o->key != NULL && o->key->kind == KIND_QUEUE,
			    .value = o->key != NULL ?
				sort_value(o->key, q, m->stats.now_ms) :
				0};
	if (o->key != NULL)
		qsort(rows, kept, sizeof(*rows), compare_rows);
	for (i = 0; i < kept; i++)
		sorted[o->reverse ? kept - 1 - i : i] = rows[i].q;
	free(rows);
	*count = (int)kept;
	return sorted;
}

int
order_marked(const struct model *m, const struct mq_queue_stats **rows, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (strcmp(rows[i]->name, m->order.marked) == 0)
			return i;
	return 0;
}
