#include "stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

static void
free_items(struct mq_item *items, long n)
{
	for (; n > 0; n--, items++) {
		free((char *)items->element);
		free((char *)items->connection);
	}
}

/* The older half goes when there are twice as many as wanted. */
static void
make_room(struct newest *k)
{
	if (k->count / 2 >= k->wanted) {
		free_items(k->items, k->count - k->wanted);
		memmove(k->items, k->items + k->count - k->wanted,
		    (size_t)k->wanted * sizeof(*k->items));
		k->count = k->wanted;
	}
	if (k->count == k->cap) {
		k->cap = k->cap * 2 + 64;
		k->items = mq_xreallocarray(
		    k->items, (size_t)k->cap, sizeof(*k->items));
	}
}

void
newest_keep(struct newest *k, const struct mq_item *item)
{
	struct mq_item *copy;

	make_room(k);
	copy = &k->items[k->count++];
	*copy = *item;
	copy->element =
	    memcpy(mq_xcalloc(item->len + 1, 1), item->element, item->len);
	if (item->connection != NULL)
		copy->connection = mq_xstrdup(item->connection);
}

void
newest_reverse(struct newest *k)
{
	struct mq_item item;
	long i, j;

	for (i = 0, j = k->count - 1; i < j; i++, j--) {
		item = k->items[i];
		k->items[i] = k->items[j];
		k->items[j] = item;
	}
}

void
newest_free(struct newest *k)
{
	free_items(k->items, k->count);
	free(k->items);
	*k = (struct newest){0};
}
