#include "layout.h"

#include <stdlib.h>

#include "base/xalloc.h"

struct mq_walk *
mq_walk_of(struct mq_scan *scan)
{
	if (scan->walk == NULL)
		scan->walk = mq_xcalloc(1, sizeof(*scan->walk));
	return scan->walk;
}

void
mq_walk_reserve(struct mq_scan *scan, size_t n)
{
	if (n <= scan->walk->cap)
		return;
	scan->items = mq_xreallocarray(scan->items, n, sizeof(*scan->items));
	scan->walk->cap = n;
}

void
mq_walk_drop_slice(struct mq_scan *scan)
{
	freeReplyObject(scan->walk->reply);
	scan->walk->reply = NULL;
}

void
mq_scan_free(struct mq_scan *scan)
{
	struct mq_walk *w = scan->walk;

	if (w == NULL)
		return;
	if (w->held != NULL)
		mq_names_free(w->held);
	free(w->held);
	freeReplyObject(w->connections);
	mq_walk_drop_slice(scan);
	mq_buf_free(&w->anchor);
	mq_buf_free(&w->turned);
	free(w);
	free(scan->items);
	*scan = (struct mq_scan){0};
}
