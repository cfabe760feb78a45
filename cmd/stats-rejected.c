#include "stats-rejected.h"

#include <stdlib.h>
#include <string.h>

#include "exit.h"
#include "history.h"
#include "say.h"
#include "xalloc.h"

/* What is kept of a reason: groups are told apart by so much of it. */
#define REASON_MAX 300

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
		s.reason != NULL ? mq_xstrndup(s.reason, REASON_MAX) : NULL,
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

/* Equal reasons beside each other, none first; in each, the newest first. */
static int
by_reason(const void *a, const void *b)
{
	const struct rejected *x = *(const struct rejected *const *)a;
	const struct rejected *y = *(const struct rejected *const *)b;
	int order;

	if (x->reason == NULL || y->reason == NULL)
		order = (x->reason != NULL) - (y->reason != NULL);
	else
		order = strcmp(x->reason, y->reason);
	return order != 0 ? order : by_place(x, y);
}

static int
by_count(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return by_place(x->newest, y->newest);
}

static bool
same_reason(const struct rejected *x, const struct rejected *y)
{
	if (x->reason == NULL || y->reason == NULL)
		return x->reason == y->reason;
	return strcmp(x->reason, y->reason) == 0;
}

static void
group(struct rejections *r)
{
	const struct rejected **sorted =
	    mq_xcalloc((size_t)r->count + 1, sizeof(*sorted));
	struct reason *last = NULL;
	int i;

	for (i = 0; i < r->count; i++)
		sorted[i] = &r->all[i];
	qsort(sorted, (size_t)r->count, sizeof(*sorted), by_reason);
	r->reasons = mq_xcalloc((size_t)r->count + 1, sizeof(*r->reasons));
	for (i = 0; i < r->count; i++) {
		if (last == NULL || !same_reason(last->newest, sorted[i])) {
			last = &r->reasons[r->reason_count++];
			last->newest = sorted[i];
		}
		last->count++;
	}
	free(sorted);
	qsort(
	    r->reasons, (size_t)r->reason_count, sizeof(*r->reasons), by_count);
}

void
rejections_read(struct look *look, const char *queue, long long total,
    size_t *bytes, struct rejections *r)
{
	long from = (long)total, max;

	*r = (struct rejections){
	    .all = mq_xcalloc(REJECTED_MAX, sizeof(*r->all))};
	while (from > 0 && r->count + STRIDE <= REJECTED_MAX && *bytes > 0) {
		max = from < STRIDE ? from : STRIDE;
		from -= max;
		stride(look, queue, from, max, bytes, r);
	}
	r->cut = r->count < total;
	qsort(r->all, (size_t)r->count, sizeof(*r->all), by_place);
	group(r);
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
	free(r->reasons);
	*r = (struct rejections){0};
}
