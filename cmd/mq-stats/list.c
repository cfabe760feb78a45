#include "stats.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/say.h"
#include "base/xalloc.h"
#include "message/headers.h"

/* --- newest -------------------------------------------------------------- */

static void
free_items(struct mq_item *items, long n)
{
	for (; n > 0; n--, items++) {
		free((char *)items->element);
		free((char *)items->connection);
	}
}

/* The older half goes when there are twice as many as wanted. */
static void
make_room(struct newest *k)
{
	if (k->count / 2 >= k->wanted) {
		free_items(k->items, k->count - k->wanted);
		memmove(k->items, k->items + k->count - k->wanted,
		    (size_t)k->wanted * sizeof(*k->items));
		k->count = k->wanted;
	}
	if (k->count == k->cap) {
		k->cap = k->cap * 2 + 64;
		k->items = mq_xreallocarray(
		    k->items, (size_t)k->cap, sizeof(*k->items));
	}
}

/* Keeps a copy. */
static void
newest_keep(struct newest *k, const struct mq_item *item)
{
	struct mq_item *copy;

	make_room(k);
	copy = &k->items[k->count++];
	*copy = *item;
	copy->element =
	    memcpy(mq_xcalloc(item->len + 1, 1), item->element, item->len);
	if (item->connection != NULL)
		copy->connection = mq_xstrdup(item->connection);
}

/* Turns them round: the newest one comes first. */
static void
newest_reverse(struct newest *k)
{
	struct mq_item item;
	long i, j;

	for (i = 0, j = k->count - 1; i < j; i++, j--) {
		item = k->items[i];
		k->items[i] = k->items[j];
		k->items[j] = item;
	}
}

static void
newest_free(struct newest *k)
{
	free_items(k->items, k->count);
	free(k->items);
	*k = (struct newest){0};
}

/* --- list ---------------------------------------------------------------- */

#define SCREENFUL	    20
#define COLUMNS		    80 /* at least, and where there is no terminal */
#define FIXED_COLUMNS	    (MQ_ID_LEN + 2 + 4 + 2 + 8 + 2)
#define PAYLOAD_COLUMNS_MIN 10
#define EXTRA_COLUMNS_MAX   40

static char *
connection_text(const struct list *l, const char *name)
{
	char *text = text_visible(name, strlen(name)), *end;

	end = text_cut_front(text, l->extra_max);
	free(text);
	return end;
}

/* The column that only this state has; NULL: none.  The caller frees. */
static char *
extra_text(
    const struct list *l, const struct mq_item *item, const struct message *s)
{
	char due[TEXT_AGE];

	switch (l->options->state) {
	case MQ_DELAYED:
		if (item->in_line)
			return mq_xstrdup("turn");
		if (item->tick > 0)
			return mq_xasprintf("tick %lld", (long long)item->tick);
		if (item->due_ms <= l->model->stats.now_ms)
			return mq_xstrdup("now");
		text_age_since(due, item->due_ms, l->model->stats.now_ms);
		return mq_xstrdup(due);
	case MQ_UNACKED:
		return item->connection == NULL ?
		    mq_xstrdup("-") :
		    connection_text(l, item->connection);
	case MQ_REJECTED:
		return s->reason == NULL ?
		    mq_xstrdup("-") :
		    text_clipped(s->reason, strlen(s->reason), l->extra_max);
	default:
		return NULL;
	}
}

static const char *
extra_title(enum mq_state state)
{
	static const char *const titles[MQ_STATES] = {[MQ_DELAYED] = "DUE",
	    [MQ_UNACKED] = "CONNECTION",
	    [MQ_REJECTED] = "REASON"};

	return titles[state];
}

static void
print_line(const struct list *l, const char *id, const char *age,
    const char *attempts, const char *extra, const char *payload)
{
	printf("%-*s  %4s  %8s  ", MQ_ID_LEN, id, age, attempts);
	if (extra != NULL)
		printf("%s%*s  ", extra,
		    l->extra > text_width(extra) ?
			l->extra - text_width(extra) :
			0,
		    "");
	printf("%s\n", payload);
}

static void
print_row(
    const struct list *l, const struct mq_item *item, const struct message *s)
{
	int room = l->columns - FIXED_COLUMNS, width;
	const char *id = s->id != NULL ? s->id : "-";
	char age[TEXT_AGE], attempts[24], *extra = extra_text(l, item, s),
					  *payload;

	/* All of an id is needed to do something with its message. */
	if (strlen(id) > MQ_ID_LEN)
		room -= (int)strlen(id) - MQ_ID_LEN;
	if (extra != NULL) {
		/* The column is as wide as the first slice needs. */
		width = text_width(extra);
		room -= (width > l->extra ? width : l->extra) + 2;
	}
	payload = text_clipped(s->envelope.payload, s->envelope.payload_len,
	    room > PAYLOAD_COLUMNS_MIN ? room : PAYLOAD_COLUMNS_MIN);
	text_age_since(age, l->model->stats.now_ms, s->since_ms);
	snprintf(attempts, sizeof(attempts), "%ld", s->attempts);
	print_line(l, id, age, attempts, extra, payload);
	free(extra);
	free(payload);
}

/* The head, and how wide the extra column is to be, by the first slice. */
static void
print_list_head(struct list *l, const struct mq_item *item, int count)
{
	const char *title = extra_title(l->options->state);
	struct message s;
	char *extra;
	int n;

	if (title != NULL && l->extra < (int)strlen(title))
		l->extra = (int)strlen(title);
	for (; title != NULL && count > 0; count--, item++) {
		message_unpack(&s, item, l->options->state);
		extra = extra_text(l, item, &s);
		n = text_width(extra);
		l->extra = n > l->extra ? n : l->extra;
		free(extra);
		message_free(&s);
	}
	print_line(l, "ID", "AGE", "ATTEMPTS", title, "PAYLOAD");
}

/* A frame on a terminal: nothing that could drive it, on a line of its own. */
static void
print_safe(const struct mq_buf *frame, enum mq_framing framing)
{
	size_t n = frame->len;
	char *text;

	if (framing == MQ_FRAME_JSONL) {
		text_json(frame->data, frame->len);
		return;
	}
	if (framing == MQ_FRAME_LINES || framing == MQ_FRAME_NULL)
		n--;
	text = text_visible(n > 0 ? frame->data : "", n);
	puts(text);
	free(text);
}

static void
print_framed(
    struct list *l, const struct mq_item *item, const struct message *s)
{
	enum mq_framing framing =
	    l->json ? MQ_FRAME_JSONL : l->options->framing;
	struct mq_frame_meta meta = {.id = s->id, .queue = l->queue};

	if (framing == MQ_FRAME_JSONL)
		meta.more = message_facts(s, item, l->options->state);
	mq_buf_clear(&l->out);
	mq_frame_write(&l->out, framing, &s->envelope, &meta);
	json_decref(meta.more);
	if (l->json) {
		fputs(l->shown == 0 ? "[" : ",\n", stdout);
		text_json(l->out.data, l->out.len - 1);
	} else if (l->terminal || framing == MQ_FRAME_JSONL) {
		print_safe(&l->out, framing);
	} else {
		fwrite(l->out.data, 1, l->out.len, stdout);
	}
}

static bool
is_for_people(const struct list *l)
{
	return !l->json && l->options->framing == MQ_FRAME_WHOLE;
}

static void
print_item(struct list *l, const struct mq_item *item, enum mq_state state)
{
	struct message s;

	message_unpack(&s, item, state);
	if (is_for_people(l))
		print_row(l, item, &s);
	else
		print_framed(l, item, &s);
	message_free(&s);
	l->shown++;
}

static bool
print_slice(struct list *l, const struct mq_item *items, int count)
{
	const struct mq_item *item = items;

	for (; item < items + count; item++) {
		if (!mq_filter_match(
			&l->options->filter, item->element, item->len))
			continue;
		if (l->skipped < l->options->offset) {
			l->skipped++;
			continue;
		}
		if (l->shown == l->limit) {
			l->more = true;
			return false;
		}
		if (l->shown == 0 && is_for_people(l))
			print_list_head(l, items, count);
		print_item(l, item, l->options->state);
	}
	return !ferror(stdout);
}

static void
keep_slice(struct list *l, const struct mq_item *item, int count)
{
	for (; count > 0; count--, item++)
		if (mq_filter_match(
			&l->options->filter, item->element, item->len))
			newest_keep(&l->newest, item);
}

bool
list_slice(void *arg, const struct mq_item *items, int count)
{
	struct list *l = arg;

	if (!l->options->newest)
		return print_slice(l, items, count);
	keep_slice(l, items, count);
	return true;
}

/* How wide the names of connections are, which come one after the other. */
static void
measure_connections(struct list *l)
{
	const struct mq_stats *stats = &l->model->stats;
	char *name;
	int i, n;

	for (i = 0; i < stats->connection_count; i++) {
		if (stats->connections[i].count == 0 ||
		    stats->connections[i].consumed[0].unacked == 0)
			continue;
		name = connection_text(l, stats->connections[i].name);
		n = text_width(name);
		l->extra = n > l->extra ? n : l->extra;
		free(name);
	}
}

/* A line is as wide as the terminal, but never narrower than COLUMNS. */
static void
measure_line(struct list *l)
{
	l->columns = text_view().width;
	if (l->columns < COLUMNS)
		l->columns = COLUMNS;
	l->extra_max = l->columns - FIXED_COLUMNS - 2 - PAYLOAD_COLUMNS_MIN;
	if (l->extra_max > EXTRA_COLUMNS_MAX)
		l->extra_max = EXTRA_COLUMNS_MAX;
}

/* Those that are wanted are the last ones: how many come before, as far as that
 * is certain. */
static long
begin_newest(struct list *l)
{
	const struct list_options *o = l->options;
	long long n = l->model->stats.queues[0].rejected;

	if (l->limit == -1)
		l->limit = SCREENFUL;
	l->newest.wanted = l->limit < LONG_MAX / 4 && o->offset < LONG_MAX / 4 ?
	    l->limit + o->offset :
	    LONG_MAX / 2;
	if (o->state != MQ_REJECTED || mq_filter_given(&o->filter) ||
	    n <= l->newest.wanted)
		return 0;
	l->more = true;
	return (long)(n - l->newest.wanted);
}

long
list_begin(struct list *l)
{
	const struct list_options *o = l->options;

	l->limit = o->limit;
	l->terminal = isatty(STDOUT_FILENO);
	measure_line(l);
	measure_connections(l);
	if (l->limit == -1 && l->terminal && is_for_people(l))
		l->limit = SCREENFUL;
	if (o->newest)
		return begin_newest(l);
	/* The server can count by itself as long as any message will do. */
	if (!mq_filter_given(&o->filter) && o->state != MQ_UNACKED)
		l->skipped = o->offset;
	return l->skipped;
}

bool
list_end(struct list *l)
{
	newest_reverse(&l->newest);
	if (l->newest.count > 0)
		(void)print_slice(l, l->newest.items, (int)l->newest.count);
	newest_free(&l->newest);
	mq_buf_free(&l->out);
	if (l->more && is_for_people(l) && l->options->limit == -1 &&
	    !l->quiet && !ferror(stdout))
		mq_say(
		    "%s: only %ld %s messages shown; use --limit or --offset "
		    "for more",
		    l->queue, l->shown, mq_state_name(l->options->state));
	if (l->json)
		fputs(l->shown == 0 ? "[]\n" : "]\n", stdout);
	return l->shown > 0;
}
