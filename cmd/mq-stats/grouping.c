#include "stats.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "message/history.h"

/* Groups at most; the messages of all others are only counted. */
#define REASONS_MAX 1000
/* Characters that make a word with a number an id: hexadecimal digits, or any letters
 * and digits. */
#define HEX_MIN	   8
#define ID_MIN	   20
#define UUID_BYTES 36

static const char digits[] = "0123456789";
static const char hex[] = "0123456789abcdefABCDEF";
static const char letters[] =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static bool
is_uuid(const char *p)
{
	static const size_t parts[] = {8, 4, 4, 4, 12};
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strspn(p, hex) != parts[i])
			return false;
		p += parts[i];
		if (i < 4 && *p++ != '-')
			return false;
	}
	return true;
}

/* How many bytes at p, where a word begins, are an id; 0: none. */
static size_t
id_length(const char *p)
{
	size_t n = strspn(p, letters);
	bool numbered = strcspn(p, digits) < n;

	if (is_uuid(p))
		return UUID_BYTES;
	if (!numbered || strspn(p, digits) == n)
		return 0;
	if (n > 2 && p[0] == '0' && p[1] == 'x' && strspn(p + 2, hex) == n - 2)
		return n;
	return (n >= HEX_MIN && strspn(p, hex) == n) || n >= ID_MIN ? n : 0;
}

/* Whether the number at p stays: an exit status, or that of a signal. */
static bool
number_stays(const char *reason, const char *p)
{
	static const char *const words[] = {"status ", "signal "};
	size_t i, n;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		n = strlen(words[i]);
		if ((size_t)(p - reason) >= n &&
		    memcmp(p - n, words[i], n) == 0)
			return true;
	}
	return false;
}

/* Appends n bytes, if there is room; returns p, for the loop. */
static const char *
add_text(char *out, size_t *len, const char *with, size_t n, const char *p)
{
	if (*len + n <= REASON_BYTES) {
		memcpy(out + *len, with, n);
		*len += n;
	}
	return p;
}

void
reason_fold(const char *reason, char out[REASON_BYTES + 1])
{
	const char *p = reason != NULL ? reason : "";
	size_t len = 0, n;
	bool begins = true;

	while (*p != '\0' && len < REASON_BYTES) {
		if (begins && (n = id_length(p)) > 0)
			p = add_text(out, &len, "ID", 2, p + n);
		else if ((n = strspn(p, digits)) > 0 &&
		    !number_stays(reason, p))
			p = add_text(out, &len, "N", 1, p + n);
		else
			p = add_text(
			    out, &len, p, n > 0 ? n : 1, p + (n > 0 ? n : 1));
		begins = strchr(letters, p[-1]) == NULL;
	}
	out[len] = '\0';
}

/* Where the text is in the list, or belongs. */
static int
place_of(const struct reasons *r, const char *text, bool *there)
{
	int low = 0, high = r->count, middle, order;

	*there = false;
	while (low < high) {
		middle = low + (high - low) / 2;
		order = strcmp(text, r->list[middle].text);
		if (order == 0) {
			*there = true;
			return middle;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static struct reason *
insert_reason(struct reasons *r, int at, const char *text)
{
	struct reason *one;

	if (r->list == NULL)
		r->list = mq_xcalloc(REASONS_MAX, sizeof(*r->list));
	one = &r->list[at];
	memmove(one + 1, one, (size_t)(r->count - at) * sizeof(*one));
	*one = (struct reason){.text = mq_xstrdup(text)};
	r->count++;
	return one;
}

void
reasons_add(
    struct reasons *r, const char *reason, int64_t at_ms, const char *id)
{
	char text[REASON_BYTES + 1];
	struct reason *one;
	bool there;
	int at;

	reason_fold(reason, text);
	at = place_of(r, text, &there);
	if (!there && r->count == REASONS_MAX) {
		r->others++;
		return;
	}
	one = there ? &r->list[at] : insert_reason(r, at, text);
	one->count++;
	if (at_ms > 0 && (one->oldest_ms == 0 || at_ms < one->oldest_ms))
		one->oldest_ms = at_ms;
	if (one->newest != NULL && at_ms < one->newest_ms)
		return;
	one->newest_ms = at_ms;
	free(one->newest);
	free(one->id);
	one->newest = mq_xstrndup(reason != NULL ? reason : "", REASON_BYTES);
	one->id = id != NULL ? mq_xstrdup(id) : NULL;
}

static int
by_count(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	if (x->newest_ms != y->newest_ms)
		return x->newest_ms < y->newest_ms ? 1 : -1;
	return strcmp(x->text, y->text);
}

void
reasons_sort(struct reasons *r)
{
	if (r->count > 0)
		qsort(r->list, (size_t)r->count, sizeof(*r->list), by_count);
}

void
reasons_free(struct reasons *r)
{
	int i;

	for (i = 0; i < r->count; i++) {
		free(r->list[i].text);
		free(r->list[i].newest);
		free(r->list[i].id);
	}
	free(r->list);
	*r = (struct reasons){0};
}

void
rejections_add(struct rejections *r, const struct mq_item *item,
    enum mq_state state, long place)
{
	struct message s;
	struct rejected *one;

	if (r->all == NULL)
		r->all = mq_xcalloc(REJECTED_MAX + MQ_STATES * OTHERS_PER_STATE,
		    sizeof(*r->all));
	one = &r->all[r->count++];
	message_unpack(&s, item, state);
	*one = (struct rejected){
	    .id = s.id != NULL ? mq_xstrdup(s.id) : NULL,
	    .reason =
		s.reason != NULL ? mq_xstrndup(s.reason, REASON_BYTES) : NULL,
	    .state = state == MQ_REJECTED ? NULL : mq_state_name(state),
	    .at_ms = s.since_ms,
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
