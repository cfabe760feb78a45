#include "rejections.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "message.h"
#include "message/history.h"

void
rejections_add(struct rejections *r, const struct mq_item *item, long place)
{
	struct message s;
	struct rejected *one;

	if (r->all == NULL)
		r->all = mq_xcalloc(REJECTED_MAX, sizeof(*r->all));
	one = &r->all[r->count++];
	message_unpack(&s, item, MQ_REJECTED);
	*one = (struct rejected){
	    .id = s.id != NULL ? mq_xstrdup(s.id) : NULL,
	    .reason =
		s.reason != NULL ? mq_xstrndup(s.reason, REASON_BYTES) : NULL,
	    .at_ms = mq_history_last_ms(&s.envelope),
	    .attempts = s.attempts,
	    .place = place,
	};
	message_free(&s);
}

static int
by_place(const void *a, const void *b)
{
	const struct rejected *x = a, *y = b;

	return x->place < y->place ? 1 : x->place > y->place ? -1 : 0;
}

void
rejections_group(struct rejections *r, long long total)
{
	int i;

	r->cut = r->count < total;
	if (r->count > 0)
		qsort(r->all, (size_t)r->count, sizeof(*r->all), by_place);
	/* The newest goes last: among messages without a time, that one counts. */
	for (i = r->count - 1; i >= 0; i--)
		reasons_add(&r->reasons, r->all[i].reason, r->all[i].at_ms,
		    r->all[i].id);
	reasons_sort(&r->reasons);
}

void
rejections_free(struct rejections *r)
{
	int i;

	for (i = 0; i < r->count; i++) {
		free(r->all[i].id);
		free(r->all[i].reason);
	}
	free(r->all);
	reasons_free(&r->reasons);
	*r = (struct rejections){0};
}
