/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "stats.h"

#define COLUMNS		    80 /* least width of a line, also without a terminal */
#define FIXED_COLUMNS	    (MQ_ID_LEN + 2 + 4 + 2 + 8 + 2)
#define PAYLOAD_COLUMNS_MIN 10
#define EXTRA_COLUMNS_MAX   40

struct list {
	struct listing out;
	const struct list_options *options;
	int64_t now_ms; /* the server's clock, unix ms */
	int columns;	/* width of a line */
	int extra_max;	/* widest that the state's own column may be */
	int extra;	/* width of the state's own column */
};

/* --- any list ---------------------------------------------------------------- */

void
listing_begin(struct listing *l, const struct stats_options *o)
{
	*l = (struct listing){.options = o,
	    .json = o->format == FORMAT_JSON,
	    .terminal = isatty(STDOUT_FILENO),
	    .people =
		o->format != FORMAT_JSON && o->list.framing == MQ_FRAME_WHOLE,
	    .limit = o->order.limit};
	if (l->limit == -1 && (o->list.newest || (l->terminal && l->people)))
		l->limit = SCREENFUL;
}

bool
listing_takes(struct listing *l, bool *more)
{
	bool skips = l->skipped < l->options->list.offset;
	bool full = !skips && l->shown == l->limit;

	l->skipped += skips;
	l->more |= full;
	*more = !full && !ferror(stdout);
	return !skips && *more;
}

void
listing_frame(struct listing *l, const char *id, const struct mq_envelope *e,
    json_t *facts, bool whole)
{
	enum mq_framing framing =
	    l->json ? MQ_FRAME_JSONL : l->options->list.framing;
	struct mq_frame_meta meta = {
	    .id = id, .queue = l->options->queues[0], .more = facts};
	struct mq_buf out = {0};
	size_t n;
	char *text;

	if (framing == MQ_FRAME_JSONL && !whole) {
		mq_json_dump(facts, &out);
		mq_buf_add(&out, "\n", 1);
	} else {
		mq_frame_write(&out, framing, e, &meta);
	}
	n = out.len;
	if (l->json)
		fputs(l->shown == 0 ? "[" : ",\n", stdout);
	if (framing == MQ_FRAME_JSONL) {
		output_json(out.data, n - l->json);
	} else if (!l->terminal) {
		fwrite(out.data, 1, n, stdout);
	} else {
		n -= framing == MQ_FRAME_LINES || framing == MQ_FRAME_NULL;
		text = mq_visible(n > 0 ? out.data : "", n);
		puts(text);
		free(text);
	}
	json_decref(facts);
	mq_buf_free(&out);
}

void
listing_end(const struct listing *l, const char *what)
{
	const struct stats_options *o = l->options;

	if (l->json)
		fputs(l->shown == 0 ? "[]\n" : "]\n", stdout);
	if (l->more && l->people && l->shown > 0 && o->order.limit == -1 &&
	    !o->shared.quiet && !ferror(stdout))
		mq_say("%s: only %ld %s messages shown; use --limit or "
		       "--offset for more",
		    o->queues[0], l->shown, what);
}

long
list_skip(const struct listing *l, long long count, long *wanted)
{
	const struct list_options *o = &l->options->list;

	*wanted = l->limit != -1 && l->limit < LONG_MAX / 4 &&
		o->offset < LONG_MAX / 4 ?
	    l->limit + o->offset :
	    LONG_MAX / 2;
	return mq_filter_given(&o->filter) || count <= *wanted ?
	    0 :
	    (long)(count - *wanted);
}

/* Drops the oldest n copies. */
static void
drop_items(struct mq_scan *kept, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		free((char *)kept->items[i].element);
		free((char *)kept->items[i].connection);
	}
	kept->count -= n;
	if (kept->count > 0)
		memmove(kept->items, kept->items + n,
		    (size_t)kept->count * sizeof(*kept->items));
}

static void
keep_item(
    struct mq_scan *last, int *cap, long wanted, const struct mq_item *item)
{
	struct mq_item *copy;

	/* If there are twice as many copies as wanted, the older half goes. */
	if (last->count > 0 && last->count / 2 >= wanted)
		drop_items(last, last->count - (int)wanted);
	if (last->count == *cap) {
		*cap = *cap * 2 + 64;
		last->items = mq_xreallocarray(
		    last->items, (size_t)*cap, sizeof(*last->items));
	}
	copy = &last->items[last->count++];
	*copy = *item;
	copy->element =
	    memcpy(mq_xcalloc(item->len + 1, 1), item->element, item->len);
	copy->connection = mq_xstrdup(item->connection);
}

void
list_newest(struct mq_search *search, long wanted, struct mq_scan *last)
{
	const struct mq_item *item;
	int cap = 0;

	while ((item = mq_search_next(search)) != NULL)
		keep_item(last, &cap, wanted, item);
}

void
list_free(struct mq_scan *last)
{
	drop_items(last, last->count);
	free(last->items);
}

/* --- messages of a place ------------------------------------------------------ */

/* Returns the text of the column that only this state has, which the caller frees;
 * NULL: no such column. */
static char *
extra_text(const struct list *l, const struct message *s)
{
	const struct mq_item *item = s->item;
	char due[TEXT_AGE];

	switch (s->state) {
	case MQ_DELAYED:
		if (item->in_line)
			return mq_xstrdup("turn");
		if (item->follows)
			return mq_xstrdup("batch");
		if (item->tick > 0)
			return mq_xasprintf("tick %lld", (long long)item->tick);
		if (item->due_ms <= l->now_ms)
			return mq_xstrdup("now");
		text_age(due, (double)(item->due_ms - l->now_ms) / 1000);
		return mq_xstrdup(due);
	case MQ_UNACKED:
		return item->connection == NULL ?
		    mq_xstrdup("-") :
		    text_clipped_front(item->connection, l->extra_max);
	case MQ_REJECTED:
		return s->reason == NULL ?
		    mq_xstrdup("-") :
		    text_clipped(s->reason, strlen(s->reason), l->extra_max);
	default:
		return NULL;
	}
}

static void
print_line(const struct list *l, const char *id, const char *age,
    const char *attempts, const char *extra, const char *payload)
{
	printf("%-*s  %4s  %8s  ", MQ_ID_LEN, id, age, attempts);
	if (extra != NULL)
		printf(
		    "%s%*s  ", extra, MAX(0, l->extra - text_width(extra)), "");
	printf("%s\n", payload);
}

static void
print_row(const struct list *l, const struct message *s)
{
	int room = l->columns - FIXED_COLUMNS, width;
	const char *id = s->id != NULL ? s->id : "-";
	int64_t passed_ms = l->now_ms - s->since_ms;
	char age[TEXT_AGE] = "-", attempts[24];
	char *extra = extra_text(l, s), *payload;

	/* An id is never cut: commands need all of it. */
	room -= MAX(0, (int)strlen(id) - MQ_ID_LEN);
	if (extra != NULL) {
		width = text_width(extra);
		room -= MAX(width, l->extra) + 2;
	}
	payload = text_clipped(s->envelope.payload, s->envelope.payload_len,
	    MAX(room, PAYLOAD_COLUMNS_MIN));
	if (s->since_ms != 0)
		text_age(age, (double)MAX(passed_ms, 0) / 1000);
	snprintf(attempts, sizeof(attempts), "%ld", s->attempts);
	print_line(l, id, age, attempts, extra, payload);
	free(extra);
	free(payload);
}

/* Prints the head; the first slice of messages decides the width of the extra
 * column. */
static void
print_list_head(struct list *l, const struct mq_scan *slice)
{
	static const char *const titles[MQ_STATES] = {[MQ_DELAYED] = "DUE",
	    [MQ_UNACKED] = "CONNECTION",
	    [MQ_REJECTED] = "REASON"};
	const char *title = titles[l->options->state];
	struct message s;
	char *extra;
	int n, i;

	if (title != NULL)
		l->extra = MAX(l->extra, (int)strlen(title));
	for (i = 0; title != NULL && i < slice->count; i++) {
		message_unpack(&s, &slice->items[i], l->options->state);
		extra = extra_text(l, &s);
		n = text_width(extra);
		l->extra = MAX(l->extra, n);
		free(extra);
		mq_envelope_free(&s.envelope);
	}
	print_line(l, "ID", "AGE", "ATTEMPTS", title, "PAYLOAD");
}

/* Returns false when no other message is to be looked at. */
static bool
print_item(
    struct list *l, const struct mq_scan *slice, const struct mq_item *item)
{
	struct listing *out = &l->out;
	struct message s;
	bool more;

	if (!listing_takes(out, &more))
		return more;
	if (out->shown == 0 && out->people)
		print_list_head(l, slice);
	message_unpack(&s, item, l->options->state);
	if (out->people)
		print_row(l, &s);
	else
		listing_frame(out, s.id, &s.envelope, message_facts(&s), true);
	mq_envelope_free(&s.envelope);
	out->shown++;
	return more;
}

/* Measures columns; returns the number of messages that the walk skips.  *wanted: with --newest, how
 * many are needed at least. */
static long
begin_list(struct list *l, const struct mq_stats *stats, long *wanted)
{
	const struct list_options *o = l->options;
	const struct mq_connection_stats *c = stats->connections;
	const struct mq_connection_stats *end = c + stats->connection_count;
	bool any = !mq_filter_given(&o->filter);
	char *name;
	long skip;
	int width;

	width = text_view().width;
	l->columns = MAX(width, COLUMNS);
	l->extra_max = MIN(EXTRA_COLUMNS_MAX,
	    l->columns - FIXED_COLUMNS - 2 - PAYLOAD_COLUMNS_MIN);
	/* The first slice has messages of one connection only; the column must fit
	 * all. */
	for (; c < end; c++) {
		if (c->count == 0 || c->consumed[0].unacked == 0)
			continue;
		name = text_clipped_front(c->name, l->extra_max);
		width = text_width(name);
		l->extra = MAX(l->extra, width);
		free(name);
	}
	if (!o->newest) {
		/* Without a filter, the server itself can skip messages. */
		l->out.skipped = any && o->state != MQ_UNACKED ? o->offset : 0;
		return l->out.skipped;
	}
	/* The newest messages are the last of the walk: skip those before, as far as
	 * their number is certain. */
	skip = list_skip(&l->out,
	    o->state == MQ_REJECTED ? stats->queues[0].rejected : 0, wanted);
	l->out.more = skip > 0;
	return skip;
}

bool
list_print(struct collector *c, const struct stats_options *o,
    const struct model *m, long *seen)
{
	struct list l = {.options = &o->list, .now_ms = m->stats.now_ms};
	struct mq_search search = {c->layout, &c->redis, &o->list.filter,
	    .scan = {{.queue = o->queues[0], .state = o->list.state},
		.needle = o->list.filter.id}};
	struct mq_scan last = {0};
	const struct mq_item *item;
	bool more = m->stats.queues[0].known;
	long wanted = 0;
	int i;

	listing_begin(&l.out, o);
	search.scan.skip = begin_list(&l, &m->stats, &wanted);
	if (more && o->list.newest)
		list_newest(&search, wanted, &last);
	while (
	    more && !o->list.newest && (item = mq_search_next(&search)) != NULL)
		more = print_item(&l, &search.scan, item);
	*seen = search.scan.seen;
	mq_scan_free(&search.scan);
	for (i = last.count - 1; i >= 0 && more; i--)
		more = print_item(&l, &last, &last.items[i]);
	list_free(&last);
	listing_end(&l.out, mq_state_name(o->list.state));
	return l.out.shown > 0;
}
