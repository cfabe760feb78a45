/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Reasons of rejected messages, in groups: those that differ only in numbers and ids are
 * one.
 */
#include "stats.h"

#include <ctype.h>

/* Most groups of a queue; messages of further groups are only counted. */
#define REASONS_MAX 1000
/* Least lengths of words with a digit that count as ids, in characters: hexadecimal
 * digits only, or any letters and digits. */
#define HEX_MIN	   8
#define ID_MIN	   20
#define UUID_BYTES 36
/* Rejected messages that are read of a queue, and messages of each other state. */
#define REJECTED_MAX	 1000
#define OTHERS_PER_STATE 5
/* Rows of a queue in the tables. */
#define REASONS_PER_QUEUE 10
#define NEWEST_PER_QUEUE  5
/* Rejected messages are read backwards in strides of this number, as a walk ends
 * with the newest: these are read even if they alone take all of PAGE_BYTES. */
#define STRIDE 100
/* Bytes of rejected messages that are read for a page. */
#define PAGE_BYTES ((size_t)64 * 1024 * 1024)

/* --- text ---------------------------------------------------------------- */

static const char digits[] = "0123456789";
static const char hex[] = "0123456789abcdefABCDEF";
static const char letters[] =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* Returns the length of an id at p, where a word begins, in bytes; 0: no id. */
static size_t
id_length(const char *p)
{
	size_t n = strspn(p, letters), i = 0;
	bool numbered = strcspn(p, digits) < n;

	while (i < UUID_BYTES &&
	    (i == 8 || i == 13 || i == 18 || i == 23 ?
		    p[i] == '-' :
		    isxdigit((unsigned char)p[i])))
		i++;
	if (i == UUID_BYTES && !isxdigit((unsigned char)p[i]))
		return UUID_BYTES;
	if (!numbered || strspn(p, digits) == n)
		return 0;
	if (n > 2 && p[0] == '0' && p[1] == 'x' && strspn(p + 2, hex) == n - 2)
		return n;
	return (n >= HEX_MIN && strspn(p, hex) == n) || n >= ID_MIN ? n : 0;
}

void
reason_fold(const char *reason, char out[REASON_BYTES + 1])
{
	const char *p = reason != NULL ? reason : "", *with;
	size_t len = 0, n, size;
	bool begins = true, stays;

	for (; *p != '\0' && len < REASON_BYTES; p += n) {
		with = p;
		/* Exit statuses and numbers of signals keep their digits. */
		stays = p - reason >= 7 &&
		    (strncmp(p - 7, "status ", 7) == 0 ||
			strncmp(p - 7, "signal ", 7) == 0);
		if (begins && (n = id_length(p)) > 0) {
			with = "ID";
			size = 2;
		} else if ((n = strspn(p, digits)) > 0 && !stays) {
			with = "N";
			size = 1;
		} else {
			size = n = n > 0 ? n : 1;
		}
		if (len + size <= REASON_BYTES) {
			memcpy(out + len, with, size);
			len += size;
		}
		begins = strchr(letters, p[n - 1]) == NULL;
	}
	out[len] = '\0';
}

/* --- groups -------------------------------------------------------------- */

/* Counts a message; reason and id may be NULL, at_ms 0.  A message that is not older
 * than the newest of its group takes its place. */
static void
add_reason(struct reasons *r, const char *reason, int64_t at_ms, const char *id)
{
	char text[REASON_BYTES + 1];
	struct reason *one;
	int at = 0, end = r->count, middle;
	bool there;

	if (r->list == NULL)
		r->list = mq_xcalloc(REASONS_MAX, sizeof(*r->list));
	reason_fold(reason, text);
	/* Find the place of the group in the sorted list. */
	while (at < end) {
		middle = at + (end - at) / 2;
		if (strcmp(r->list[middle].text, text) < 0)
			at = middle + 1;
		else
			end = middle;
	}
	one = &r->list[at];
	there = at < r->count && strcmp(one->text, text) == 0;
	if (!there && r->count == REASONS_MAX) {
		r->others++;
		return;
	}
	if (!there) {
		memmove(one + 1, one, (size_t)(r->count - at) * sizeof(*one));
		*one = (struct reason){.text = mq_xstrdup(text)};
		r->count++;
	}
	one->count++;
	if (at_ms > 0 && (one->oldest_ms == 0 || at_ms < one->oldest_ms))
		one->oldest_ms = at_ms;
	if (one->newest != NULL && at_ms < one->newest_ms)
		return;
	one->newest_ms = at_ms;
	free(one->newest);
	free(one->id);
	one->newest = mq_xstrndup(reason != NULL ? reason : "", REASON_BYTES);
	one->id = mq_xstrdup(id);
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

/* Sorts groups, the most frequent first.  No message can be counted afterwards. */
static void
sort_reasons(struct reasons *r)
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
}

/* --- rejected messages ----------------------------------------------------- */

/* Reads up to n more messages of a place, behind the first ones, while the byte
 * budget lasts. */
static void
add_messages(struct collector *c, struct rejections *r,
    const struct mq_place *place, long from, long n, size_t *bytes)
{
	struct mq_search search = {
	    c->layout, &c->redis, NULL, .scan = {*place, .skip = from}};
	const struct mq_item *item;
	struct message m;

	if (r->all == NULL)
		r->all = mq_xcalloc(REJECTED_MAX + MQ_STATES * OTHERS_PER_STATE,
		    sizeof(*r->all));
	while (n-- > 0 && (item = mq_search_next(&search)) != NULL) {
		message_unpack(&m, item, place->state);
		r->all[r->count++] = (struct rejected){
		    .id = mq_xstrdup(m.id),
		    .reason = m.reason != NULL ?
			mq_xstrndup(m.reason, REASON_BYTES) :
			NULL,
		    .state = place->state == MQ_REJECTED ?
			NULL :
			mq_state_name(place->state),
		    .at_ms = m.since_ms,
		    .attempts = m.attempts,
		};
		mq_envelope_free(&m.envelope);
		*bytes -= MIN(item->len, *bytes);
		/* Messages of a slice that has arrived cost nothing more. */
		if (*bytes == 0 && search.at == search.scan.count)
			break;
	}
	mq_scan_free(&search.scan);
}

void
rejected_collect(struct collector *c, struct model *m)
{
	struct mq_place place = {.state = MQ_REJECTED};
	size_t bytes = PAGE_BYTES;
	const struct mq_queue_stats *q;
	struct rejections *r;
	struct rejected newer;
	long from, n;
	int i, k, first;

	m->rejected =
	    mq_xcalloc((size_t)m->stats.count + 1, sizeof(*m->rejected));
	for (i = 0; i < m->stats.count; i++) {
		q = &m->stats.queues[i];
		r = &m->rejected[i];
		place.queue = q->name;
		from = (long)q->rejected;
		while (from > 0 && r->count + STRIDE <= REJECTED_MAX &&
		    bytes > 0) {
			n = MIN(from, STRIDE);
			from -= n;
			first = r->count;
			add_messages(c, r, &place, from, n, &bytes);
			for (k = r->count - 1; first < k; first++, k--) {
				newer = r->all[k];
				r->all[k] = r->all[first];
				r->all[first] = newer;
			}
		}
		r->cut = r->count < q->rejected;
		/* Count the newest last: it wins among messages without a time. */
		for (k = r->count - 1; k >= 0; k--)
			add_reason(&r->reasons, r->all[k].reason,
			    r->all[k].at_ms, r->all[k].id);
		sort_reasons(&r->reasons);
	}
}

int
rejected_one(struct collector *c, const char *queue, struct model *m)
{
	struct collector all = {.queues = c->queues, .count = c->count};
	struct mq_place place = {.queue = queue};
	size_t bytes = PAGE_BYTES;
	int rv;

	c->queues = &queue;
	c->count = 1;
	rv = collect_try(c, 0, m);
	c->queues = all.queues;
	c->count = all.count;
	if (rv == -1)
		return -1;
	rejected_collect(c, m);
	for (; place.state < MQ_STATES; place.state++)
		if (place.state != MQ_REJECTED)
			add_messages(c, m->rejected, &place, 0,
			    OTHERS_PER_STATE, &bytes);
	return 0;
}

/* --- tables -------------------------------------------------------------- */

static const struct field queue_name[] = {
    {NULL, KIND_NAME, FIELD_OF(mq_queue_stats, name), .title = "QUEUE"},
    {0},
};

static const struct field reason_fields[] = {
    {"reason", KIND_REASON, FIELD_OF(reason, text)},
    {"count", KIND_NUMBER, FIELD_OF(reason, count), .title = "COUNT"},
    {"oldest_ms", KIND_SOME, FIELD_OF(reason, oldest_ms)},
    {NULL, KIND_AGE, FIELD_OF(reason, oldest_ms), .title = "OLDEST"},
    {"newest_ms", KIND_SOME, FIELD_OF(reason, newest_ms)},
    {NULL, KIND_AGE, FIELD_OF(reason, newest_ms), .title = "NEWEST"},
    {NULL, KIND_REASON, FIELD_OF(reason, text), .title = "REASON"},
    {"newest_reason", KIND_REASON, FIELD_OF(reason, newest)},
    {"newest_id", KIND_REASON, FIELD_OF(reason, id)},
    {0},
};

static const struct field rejected_fields[] = {
    {NULL, KIND_TEXT, FIELD_OF(rejected, state), .title = "STATE",
	.sparse = true},
    {"id", KIND_TEXT, FIELD_OF(rejected, id), .title = "ID", .id = true},
    {"since_ms", KIND_SOME, FIELD_OF(rejected, at_ms)},
    {NULL, KIND_AGE, FIELD_OF(rejected, at_ms), .title = "AGE"},
    {"attempts", KIND_NUMBER, FIELD_OF(rejected, attempts),
	.title = "ATTEMPTS"},
    {"reason", KIND_TEXT, FIELD_OF(rejected, reason), .title = "REASON"},
    {0},
};

/* Adds rows of the first reasons of a queue (NULL: a table without queues), and a
 * row for the messages of other reasons, if any. */
static void
add_reasons(struct table *t, const struct mq_queue_stats *q,
    const struct reasons *r, int shown, long others)
{
	char name[] = "(other reasons)";
	struct reason rest = {.text = name, .count = others};
	const struct reason *one;
	int i;

	for (i = 0; i < shown + (others > 0); i++) {
		one = i < shown ? &r->list[i] : &rest;
		table_add(t, q != NULL ? (const void *)q : one,
		    q != NULL ? one : NULL);
	}
}

/* Returns the number of messages whose reason has no row. */
static long
count_others(const struct reasons *r)
{
	long others = r->others;
	int i;

	for (i = REASONS_PER_QUEUE; i < r->count; i++)
		others += r->list[i].count;
	return others;
}

void
reasons_fill(const struct model *m, struct table *t)
{
	const struct reasons *r;
	int i;

	table_begin(t, queue_name, reason_fields, m->stats.now_ms);
	for (i = 0; i < m->stats.count; i++) {
		r = &m->rejected[i].reasons;
		add_reasons(t, &m->stats.queues[i], r,
		    MIN(r->count, REASONS_PER_QUEUE), count_others(r));
	}
}

void
rejected_fill(const struct model *m, struct table *t)
{
	const struct rejected *one;
	int i, k;

	table_begin(t, queue_name, rejected_fields, m->stats.now_ms);
	for (i = 0; i < m->stats.count; i++)
		for (k = 0; k < m->rejected[i].count; k++) {
			one = &m->rejected[i].all[k];
			if (k < NEWEST_PER_QUEUE || one->state != NULL)
				table_add(t, &m->stats.queues[i], one);
		}
}

json_t *
reasons_json(const struct reasons *r, const char *queue, int shown)
{
	return json_pack("{so so sI}", "queue", mq_json_name(queue), "reasons",
	    fields_list(reason_fields, r->list, sizeof(*r->list), shown, 0),
	    "others", (json_int_t)r->others);
}

json_t *
rejected_json(const struct model *m)
{
	json_t *list = json_array(), *v;
	const struct rejections *r = m->rejected;
	int i;

	for (i = 0; i < m->stats.count; i++, r++) {
		if (r->count == 0)
			continue;
		v = reasons_json(&r->reasons, m->stats.queues[i].name,
		    MIN(r->reasons.count, REASONS_PER_QUEUE));
		mq_json_set(
		    v, "others", json_integer(count_others(&r->reasons)));
		mq_json_set(v, "newest",
		    fields_list(rejected_fields, r->all, sizeof(*r->all),
			MIN(r->count, NEWEST_PER_QUEUE), 0));
		json_array_append_new(list, v);
	}
	return list;
}

bool
reasons_print(struct collector *c, const struct stats_options *o,
    const struct model *m, long *seen)
{
	struct mq_search search = {c->layout, &c->redis, &o->list.filter,
	    .scan = {.place = {.queue = o->queues[0], .state = MQ_REJECTED}}};
	struct reasons all = {0}, *r = &all;
	const struct mq_item *item;
	struct message s;
	struct table t;
	int shown;

	while ((item = mq_search_next(&search)) != NULL) {
		message_unpack(&s, item, MQ_REJECTED);
		add_reason(r, s.reason, s.since_ms, s.id);
		mq_envelope_free(&s.envelope);
	}
	*seen = search.scan.seen;
	mq_scan_free(&search.scan);
	sort_reasons(r);
	shown = r->count;
	if (o->order.limit != -1)
		shown = (int)MIN(o->order.limit, shown);
	if (o->format == FORMAT_JSON) {
		output_json_line(reasons_json(r, o->queues[0], shown));
	} else if (r->count > 0) {
		table_begin(&t, reason_fields, NULL, m->stats.now_ms);
		add_reasons(
		    &t, NULL, r, shown, shown == r->count ? r->others : 0);
		table_print(&t);
	}
	reasons_free(r);
	return r->count > 0;
}
