#include "stats.h"

#define COLUMNS		    80 /* least width of a line, also without a terminal */
#define FIXED_COLUMNS	    (MQ_ID_LEN + 2 + 4 + 2 + 8 + 2)
#define PAYLOAD_COLUMNS_MIN 10
#define EXTRA_COLUMNS_MAX   40

struct list {
	const struct list_options *options;
	struct mq_place place;
	int64_t now_ms; /* the server's clock, unix ms */
	bool json, terminal;
	bool people; /* a table for people */
	long limit;  /* -1: none */
	long skipped, shown;
	bool more;     /* more messages matched than the limit */
	int columns;   /* width of a line */
	int extra_max; /* widest that the state's own column may be */
	int extra;     /* width of the state's own column */
	/* With --newest: copies of the last messages of the walk. */
	struct mq_scan last;
	long wanted; /* copies that are needed; more may be kept */
	int cap;
};

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

void
list_print_framed(
    const struct mq_buf *out, enum mq_framing framing, bool terminal)
{
	size_t n = out->len;
	char *text;

	if (framing == MQ_FRAME_JSONL) {
		output_json(out->data, n);
	} else if (!terminal) {
		fwrite(out->data, 1, n, stdout);
	} else {
		n -= framing == MQ_FRAME_LINES || framing == MQ_FRAME_NULL;
		text = mq_visible(n > 0 ? out->data : "", n);
		puts(text);
		free(text);
	}
}

static void
print_framed(const struct list *l, const struct message *s)
{
	enum mq_framing framing =
	    l->json ? MQ_FRAME_JSONL : l->options->framing;
	struct mq_frame_meta meta = {.id = s->id, .queue = l->place.queue};
	struct mq_buf out = {0};

	if (framing == MQ_FRAME_JSONL)
		meta.more = message_facts(s);
	mq_frame_write(&out, framing, &s->envelope, &meta);
	json_decref(meta.more);
	if (l->json) {
		fputs(l->shown == 0 ? "[" : ",\n", stdout);
		output_json(out.data, out.len - 1);
	} else {
		list_print_framed(&out, framing, l->terminal);
	}
	mq_buf_free(&out);
}

static bool
print_item(
    struct list *l, const struct mq_scan *slice, const struct mq_item *item)
{
	struct message s;

	if (l->skipped < l->options->offset) {
		l->skipped++;
		return true;
	}
	l->more |= l->shown == l->limit;
	if (l->shown == l->limit)
		return false;
	if (l->shown == 0 && l->people)
		print_list_head(l, slice);
	message_unpack(&s, item, l->options->state);
	if (l->people)
		print_row(l, &s);
	else
		print_framed(l, &s);
	mq_envelope_free(&s.envelope);
	l->shown++;
	return !ferror(stdout);
}

static void
keep_item(struct list *l, const struct mq_item *item)
{
	struct mq_scan *last = &l->last;
	struct mq_item *copy;

	/* If there are twice as many copies as wanted, the older half goes. */
	if (last->count > 0 && last->count / 2 >= l->wanted)
		drop_items(last, last->count - (int)l->wanted);
	if (last->count == l->cap) {
		l->cap = l->cap * 2 + 64;
		last->items = mq_xreallocarray(
		    last->items, (size_t)l->cap, sizeof(*last->items));
	}
	copy = &last->items[last->count++];
	*copy = *item;
	copy->element =
	    memcpy(mq_xcalloc(item->len + 1, 1), item->element, item->len);
	copy->connection = mq_xstrdup(item->connection);
}

/* Measures columns; returns the number of messages that the walk skips. */
static long
begin_list(struct list *l, const struct mq_stats *stats)
{
	const struct list_options *o = l->options;
	const struct mq_connection_stats *c = stats->connections;
	const struct mq_connection_stats *end = c + stats->connection_count;
	long long rejected = stats->queues[0].rejected;
	bool any = !mq_filter_given(&o->filter);
	char *name;
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
	if (l->limit == -1 && (o->newest || (l->terminal && l->people)))
		l->limit = SCREENFUL;
	if (!o->newest) {
		/* Without a filter, the server itself can skip messages. */
		l->skipped = any && o->state != MQ_UNACKED ? o->offset : 0;
		return l->skipped;
	}
	/* The newest messages are the last of the walk: skip those before, as far as
	 * their number is certain. */
	l->wanted = l->limit < LONG_MAX / 4 && o->offset < LONG_MAX / 4 ?
	    l->limit + o->offset :
	    LONG_MAX / 2;
	l->more = o->state == MQ_REJECTED && any && rejected > l->wanted;
	return l->more ? (long)(rejected - l->wanted) : 0;
}

bool
list_print(struct collector *c, const struct stats_options *o,
    const struct model *m, long *seen)
{
	struct list l = {.options = &o->list,
	    .place = {.queue = o->queues[0], .state = o->list.state},
	    .now_ms = m->stats.now_ms,
	    .json = o->format == FORMAT_JSON,
	    .people =
		o->format != FORMAT_JSON && o->list.framing == MQ_FRAME_WHOLE,
	    .terminal = isatty(STDOUT_FILENO),
	    .limit = o->order.limit};
	struct mq_search search = {c->layout, &c->redis, &o->list.filter,
	    .scan = {l.place, .needle = o->list.filter.id,
		.skip = begin_list(&l, &m->stats)}};
	const struct mq_item *item;
	bool more = m->stats.queues[0].known;
	int i;

	while (more && (item = mq_search_next(&search)) != NULL)
		if (o->list.newest)
			keep_item(&l, item);
		else
			more = print_item(&l, &search.scan, item);
	*seen = search.scan.seen;
	mq_scan_free(&search.scan);
	for (i = l.last.count - 1; i >= 0 && more; i--)
		more = print_item(&l, &l.last, &l.last.items[i]);
	drop_items(&l.last, l.last.count);
	free(l.last.items);
	if (l.more && l.people && o->order.limit == -1 && !o->shared.quiet &&
	    !ferror(stdout))
		mq_say(
		    "%s: only %ld %s messages shown; use --limit or --offset "
		    "for more",
		    o->queues[0], l.shown, mq_state_name(o->list.state));
	if (l.json)
		fputs(l.shown == 0 ? "[]\n" : "]\n", stdout);
	return l.shown > 0;
}
