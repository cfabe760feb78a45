#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "xalloc.h"

void
mq_names_add(struct mq_names *l, const char *name, const char *queue)
{
	if (l->n == l->cap) {
		l->cap = l->cap == 0 ? 16 : l->cap * 2;
		l->list = mq_xreallocarray(l->list, l->cap, sizeof(*l->list));
	}
	l->list[l->n++] = (struct mq_name){.name = mq_xstrdup(name),
	    .queue = queue == NULL ? NULL : mq_xstrdup(queue)};
}

static int
by_both(const void *a, const void *b)
{
	const struct mq_name *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order != 0 || x->queue == NULL || y->queue == NULL)
		return order;
	return strcmp(x->queue, y->queue);
}

static void
free_name(struct mq_name *name)
{
	free(name->name);
	free(name->queue);
}

void
mq_names_sort(struct mq_names *l)
{
	size_t i, kept = 0;

	if (l->n == 0)
		return;
	qsort(l->list, l->n, sizeof(*l->list), by_both);
	for (i = 1; i < l->n; i++)
		if (by_both(&l->list[kept], &l->list[i]) == 0)
			free_name(&l->list[i]);
		else
			l->list[++kept] = l->list[i];
	l->n = kept + 1;
}

/* The index of the first entry that does not sort before this name. */
static size_t
find_name(const struct mq_names *l, const char *name)
{
	size_t low = 0, high = l->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (strcmp(l->list[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool
mq_names_have(const struct mq_names *l, const char *name)
{
	size_t i = find_name(l, name);

	return i < l->n && strcmp(l->list[i].name, name) == 0;
}

const struct mq_name *
mq_names_find(const struct mq_names *l, const char *name, size_t *count)
{
	size_t first = find_name(l, name), n = 0;

	while (first + n < l->n && strcmp(l->list[first + n].name, name) == 0)
		n++;
	*count = n;
	return n > 0 ? &l->list[first] : NULL;
}

void
mq_names_free(struct mq_names *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		free_name(&l->list[i]);
	free(l->list);
	*l = (struct mq_names){0};
}
