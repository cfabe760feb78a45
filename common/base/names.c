/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "xalloc.h"

void
mq_names_add(struct mq_names *l, const char *name, const char *queue)
{
	if (l->n == l->cap) {
		l->cap = l->cap == 0 ? 16 : l->cap * 2;
		l->list = mq_xreallocarray(l->list, l->cap, sizeof(*l->list));
	}
	l->list[l->n++] = (struct mq_name){
	    .name = mq_xstrdup(name), .queue = mq_xstrdup(queue)};
}

void
mq_names_add_odd(struct mq_names *l, const char *name, size_t n)
{
	struct mq_buf text = {0};

	for (; l != NULL && n > 0; n--, name++)
		mq_buf_add(&text, *name != '\0' ? name : "\xe2\x90\x80",
		    *name != '\0' ? 1 : 3);
	if (l != NULL)
		mq_names_add(l, mq_buf_str(&text), NULL);
	mq_buf_free(&text);
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

static int
by_name(const void *name, const void *entry)
{
	return strcmp(name, ((const struct mq_name *)entry)->name);
}

bool
mq_names_have(const struct mq_names *l, const char *name)
{
	return l->n > 0 &&
	    bsearch(name, l->list, l->n, sizeof(*l->list), by_name) != NULL;
}

const struct mq_name *
mq_names_find(const struct mq_names *l, const char *name, size_t *count)
{
	const struct mq_name *first, *end;

	*count = 0;
	if (!mq_names_have(l, name))
		return NULL;
	end = l->list + l->n;
	first = bsearch(name, l->list, l->n, sizeof(*l->list), by_name);
	while (first > l->list && by_name(name, first - 1) == 0)
		first--;
	while (first + *count < end && by_name(name, first + *count) == 0)
		++*count;
	return first;
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
