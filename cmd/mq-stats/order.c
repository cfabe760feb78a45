#include "stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

struct row {
	const char *name; /* NULL: the value counts */
	double value;
	int place;
};

bool
order_key_parse(const char *name, enum order_key *key)
{
	static const char *const names[ORDER_KEYS] = {"", "name", "ready",
	    "delayed", "unacked", "rejected", "consumers", "age", "in", "out"};
	enum order_key k;

	for (k = ORDER_NAME; k < ORDER_KEYS; k++)
		if (strcmp(name, names[k]) == 0) {
			*key = k;
			return true;
		}
	return false;
}

/* What is not known is below 0. */
static double
sort_value(const struct model *m, const struct mq_queue_stats *q)
{
	switch (m->order.key) {
	case ORDER_READY:
		return (double)q->ready;
	case ORDER_DELAYED:
		return (double)q->delayed;
	case ORDER_UNACKED:
		return (double)q->unacked;
	case ORDER_REJECTED:
		return (double)q->rejected;
	case ORDER_CONSUMERS:
		return (double)q->consumers;
	case ORDER_AGE:
		return q->oldest_ms > 0 ? model_age_s(m, q->oldest_ms) :
					  (double)q->oldest_ms - 1;
	case ORDER_IN:
		return q->in_s;
	case ORDER_OUT:
		return q->out_s;
	default:
		return 0;
	}
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
	int i, n = 0;

	for (i = 0; i < m->stats.count; i++) {
		q = &m->stats.queues[i];
		if (!o->nonempty || may_have_messages(q))
			rows[n++] = (struct row){
			    .name = o->key == ORDER_NAME ? q->name : NULL,
			    .value = sort_value(m, q),
			    .place = i};
	}
	if (o->key != ORDER_NONE)
		qsort(rows, (size_t)n, sizeof(*rows), compare_rows);
	for (i = 0; i < n; i++)
		places[o->reverse ? n - 1 - i : i] = rows[i].place;
	free(rows);
	*count = n;
	return places;
}
