/*
 * Which queues may have more to claim.  The server tells us (CLIENT TRACKING)
 * as soon as anything that a claim has looked at has changed, and a timer when
 * a delayed message falls due.  The tick looks at all once a second, for
 * servers that do not allow the tracking.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "consume.h"

/* Timers may be so much early. */
#define EARLY_S 0.001

struct named {
	const char *name;
	size_t len;
	struct queue *q;
};

static int
compare(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	size_t n = x->len < y->len ? x->len : y->len;
	int order = memcmp(x->name, y->name, n);

	return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

void
changed_init(struct consumer *c)
{
	size_t i, n = (size_t)c->opt->queue_count;
	const char *name;

	c->by_name = mq_xcalloc(n, sizeof(*c->by_name));
	for (i = 0; i < n; i++) {
		name = c->opt->queues[i];
		c->by_name[i] =
		    (struct named){name, strlen(name), &c->queues[i]};
	}
	qsort(c->by_name, n, sizeof(*c->by_name), compare);
	changed_all(c);
}

void
changed_all(struct consumer *c)
{
	int i;

	for (i = 0; i < c->opt->queue_count; i++)
		c->queues[i].more = true;
}

bool
changed_key(struct consumer *c, const char *key, size_t len)
{
	struct named wanted = {0}, *found;

	if (!c->layout->key_queue(key, len, &wanted.name, &wanted.len))
		return false;
	found = bsearch(&wanted, c->by_name, (size_t)c->opt->queue_count,
	    sizeof(*c->by_name), compare);
	if (found == NULL)
		return false;
	found->q->more = true;
	return true;
}

void
changed_due(struct consumer *c)
{
	double now = mq_clock_steady_s() + EARLY_S;
	struct queue *q;
	int i;

	for (i = 0; i < c->opt->queue_count; i++) {
		q = &c->queues[i];
		if (q->due != 0 && q->due <= now)
			q->more = true;
	}
}

void
changed_end(struct consumer *c)
{
	free(c->by_name);
}
