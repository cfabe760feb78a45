#include "stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

struct row {
	const char *name; /* NULL: the value counts */
	double value;
	int place;
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
	int by_name = x->name != NULL ? strcmp(x->name, y->name) : 0;

	if (by_name != 0)
		return by_name;
	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->place - y->place;
}

static bool
may_have_messages(const struct mq_queue_stats *q)
{
	return q->ready != 0 || q->delayed != 0 || q->unacked != 0 ||
	    q->rejected != 0;
}

int *
order_rows(const struct model *m, int *count)
{
	const struct order *o = &m->order;
	struct row *rows =
	    mq_xcalloc((size_t)m->stats.count + 1, sizeof(*rows));
	int *places = mq_xcalloc((size_t)m->stats.count + 1, sizeof(*places));
	const struct mq_queue_stats *q;
	bool by_name = o->key != NULL && o->key->kind == KIND_QUEUE;
	int i, n = 0;

	for (i = 0; i < m->stats.count; i++) {
		q = &m->stats.queues[i];
		if (!o->nonempty || may_have_messages(q))
			rows[n++] =
			    (struct row){.name = by_name ? q->name : NULL,
				.value = o->key == NULL || by_name ?
				    0 :
				    sort_value(o->key, q, m->stats.now_ms),
				.place = i};
	}
	if (o->key != NULL)
		qsort(rows, (size_t)n, sizeof(*rows), compare_rows);
	for (i = 0; i < n; i++)
		places[o->reverse ? n - 1 - i : i] = rows[i].place;
	free(rows);
	*count = n;
	return places;
}
