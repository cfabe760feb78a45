#include "rejected.h"

#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "message/history.h"

/* The newest ones are at the far end of a walk; it is gone to in strides from
 * there, so that the newest are seen even when they are too large for more. */
#define STRIDE 100

static void
add(struct rejections *r, const struct mq_item *item, long place)
{
	struct shown s;
	struct rejected *one = &r->all[r->count++];

	show_open(&s, item, MQ_REJECTED);
	*one = (struct rejected){
	    .id = s.id != NULL ? mq_xstrdup(s.id) : NULL,
	    .reason =
		s.reason != NULL ? mq_xstrndup(s.reason, REASON_BYTES) : NULL,
	    .at_ms = mq_history_last_ms(&s.envelope),
	    .attempts = s.attempts,
	    .place = place,
	};
	show_close(&s);
}

/* Reads from a place on. */
static void
stride(struct look *look, const char *queue, long from, long max, size_t *bytes,
    struct rejections *r)
{
	struct mq_scan scan = {
	    .place = {.queue = queue, .state = MQ_REJECTED},
	    .skip = from,
	};
	long n = 0;
	int i;

	while (!scan.end && n<max && * bytes> 0) {
		if (look->layout->scan(look->redis, &scan) == -1)
			mq_die(look->redis->status, "%s", look->redis->error);
		for (i = 0; i < scan.count && n < max; i++, n++) {
			add(r, &scan.items[i], from + n);
			*bytes -= scan.items[i].len < *bytes ?
			    scan.items[i].len :
			    *bytes;
		}
	}
	mq_scan_free(&scan);
}

static int
by_place(const void *a, const void *b)
{
	const struct rejected *x = a, *y = b;

	return x->place < y->place ? 1 : x->place > y->place ? -1 : 0;
}

void
rejections_read(struct look *look, const char *queue, long long total,
    size_t *bytes, struct rejections *r)
{
	long from = (long)total, max;
	int i;

	*r = (struct rejections){
	    .all = mq_xcalloc(REJECTED_MAX, sizeof(*r->all))};
	while (from > 0 && r->count + STRIDE <= REJECTED_MAX && *bytes > 0) {
		max = from < STRIDE ? from : STRIDE;
		from -= max;
		stride(look, queue, from, max, bytes, r);
	}
	r->cut = r->count < total;
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
