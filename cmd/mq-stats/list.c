/*
 * --list: the messages in one state of one queue, slice by slice, so that a
 * queue of any length passes through little memory.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "message/headers.h"
#include "message/json.h"
#include "shared/options.h"
#include "stats.h"

#define SCREENFUL	    20
#define COLUMNS		    80 /* at least, and where there is no terminal */
#define FIXED_COLUMNS	    (MQ_ID_LEN + 2 + 4 + 2 + 8 + 2)
#define PAYLOAD_COLUMNS_MIN 10
#define EXTRA_COLUMNS_MAX   40

struct lister {
	struct look *look;
	const struct list *list;
	const char *queue;
	int64_t now_ms;
	long limit; /* -1: none */
	long seen, skipped, shown;
	bool terminal;
	int columns;   /* of a line */
	int extra_max; /* of the column that the state adds */
	int extra;     /* as wide as it is */
	struct mq_buf out;
};

static char *
connection_text(const struct lister *l, const char *name)
{
	char *text = show_visible(name, strlen(name)), *end;

	end = stats_cut_front(text, l->extra_max);
	free(text);
	return end;
}

/* The column that only this state has; NULL: none.  The caller frees. */
static char *
extra_text(
    const struct lister *l, const struct mq_item *item, const struct shown *s)
{
	char due[24];

	switch (l->list->state) {
	case MQ_DELAYED:
		if (item->in_line)
			return mq_xstrdup("turn");
		if (item->tick > 0)
			return mq_xasprintf("tick %lld", (long long)item->tick);
		if (item->due_ms <= l->now_ms)
			return mq_xstrdup("now");
		show_age(due, item->due_ms, l->now_ms);
		return mq_xstrdup(due);
	case MQ_UNACKED:
		return item->connection == NULL ?
		    mq_xstrdup("-") :
		    connection_text(l, item->connection);
	case MQ_REJECTED:
		return s->reason == NULL ?
		    mq_xstrdup("-") :
		    show_clipped(s->reason, strlen(s->reason), l->extra_max);
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
print_line(const struct lister *l, const char *id, const char *age,
    const char *attempts, const char *extra, const char *payload)
{
	printf("%-*s  %4s  %8s  ", MQ_ID_LEN, id, age, attempts);
	if (extra != NULL)
		printf("%s%*s  ", extra,
		    l->extra > stats_width(extra) ?
			l->extra - stats_width(extra) :
			0,
		    "");
	printf("%s\n", payload);
}

static void
print_human(
    const struct lister *l, const struct mq_item *item, const struct shown *s)
{
	int room = l->columns - FIXED_COLUMNS, width;
	const char *id = s->id != NULL ? s->id : "-";
	char age[24], attempts[24], *extra = extra_text(l, item, s), *payload;

	/* All of an id is needed to do something with its message. */
	if (strlen(id) > MQ_ID_LEN)
		room -= (int)strlen(id) - MQ_ID_LEN;
	if (extra != NULL) {
		/* The column is as wide as the first slice needs. */
		width = stats_width(extra);
		room -= (width > l->extra ? width : l->extra) + 2;
	}
	payload = show_clipped(s->envelope.payload, s->envelope.payload_len,
	    room > PAYLOAD_COLUMNS_MIN ? room : PAYLOAD_COLUMNS_MIN);
	show_age(age, l->now_ms, s->since_ms);
	snprintf(attempts, sizeof(attempts), "%ld", s->attempts);
	print_line(l, id, age, attempts, extra, payload);
	free(extra);
	free(payload);
}

/* The head, and how wide the extra column is to be, by the first slice. */
static void
print_head(struct lister *l, const struct mq_scan *scan)
{
	const char *title = extra_title(l->list->state);
	struct shown s;
	char *extra;
	int i, n;

	if (title != NULL && l->extra < (int)strlen(title))
		l->extra = (int)strlen(title);
	for (i = 0; title != NULL && i < scan->count; i++) {
		show_open(&s, &scan->items[i], l->list->state);
		extra = extra_text(l, &scan->items[i], &s);
		n = stats_width(extra);
		l->extra = n > l->extra ? n : l->extra;
		free(extra);
		show_close(&s);
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
		show_json(frame->data, frame->len);
		return;
	}
	if (framing == MQ_FRAME_LINES || framing == MQ_FRAME_NULL)
		n--;
	text = show_visible(n > 0 ? frame->data : "", n);
	puts(text);
	free(text);
}

static void
print_framed(
    struct lister *l, const struct mq_item *item, const struct shown *s)
{
	enum mq_framing framing =
	    l->look->json ? MQ_FRAME_JSONL : l->list->framing;
	struct mq_frame_meta meta = {.id = s->id, .queue = l->queue};

	if (framing == MQ_FRAME_JSONL)
		meta.more = show_facts(s, item, l->list->state);
	mq_buf_clear(&l->out);
	mq_frame_write(&l->out, framing, &s->envelope, &meta);
	json_decref(meta.more);
	if (l->look->json) {
		fputs(l->shown == 0 ? "[" : ",\n", stdout);
		show_json(l->out.data, l->out.len - 1);
	} else if (l->terminal || framing == MQ_FRAME_JSONL) {
		print_safe(&l->out, framing);
	} else {
		fwrite(l->out.data, 1, l->out.len, stdout);
	}
}

static bool
human(const struct lister *l)
{
	return !l->look->json && !l->list->framed;
}

/* Whether there is room for more. */
static bool
print_slice(struct lister *l, const struct mq_scan *scan)
{
	const struct mq_item *item = scan->items;
	struct shown s;
	int i;

	for (i = 0; i < scan->count; i++, item++) {
		if (!mq_filter_match(
			&l->list->filter, item->element, item->len))
			continue;
		if (l->skipped < l->list->offset) {
			l->skipped++;
			continue;
		}
		if (l->shown == l->limit)
			return false;
		if (l->shown == 0 && human(l))
			print_head(l, scan);
		show_open(&s, item, l->list->state);
		if (human(l))
			print_human(l, item, &s);
		else
			print_framed(l, item, &s);
		show_close(&s);
		l->shown++;
	}
	return !ferror(stdout);
}

static void
walk(struct lister *l)
{
	struct mq_scan scan = {
	    .place = {.queue = l->queue, .state = l->list->state},
	};
	bool more = true;

	/* The server can count by itself as long as any message will do. */
	if (!mq_filter_given(&l->list->filter) && l->list->state != MQ_UNACKED)
		scan.skip = l->skipped = l->list->offset;
	while (more && !scan.end) {
		if (l->look->layout->scan(l->look->redis, &scan) == -1)
			mq_die(l->look->redis->status, "%s",
			    l->look->redis->error);
		more = print_slice(l, &scan);
	}
	l->seen = scan.seen;
	if (!more && human(l) && l->list->limit == -1 && !l->look->quiet &&
	    !ferror(stdout))
		mq_say("%s: more than these %ld are %s (--limit, --offset)",
		    l->queue, l->shown, mq_state_name(l->list->state));
	mq_scan_free(&scan);
}

static int
finish(const struct lister *l, bool known)
{
	if (l->look->json)
		fputs(l->shown == 0 ? "[]\n" : "]\n", stdout);
	if (l->shown > 0)
		return MQ_EXIT_OK;
	if (!known)
		return MQ_EXIT_NO;
	if (!l->look->quiet && l->seen == 0)
		mq_say("%s: no message is %s", l->queue,
		    mq_state_name(l->list->state));
	else if (!l->look->quiet)
		mq_say("%s: none of %ld %s message%s matched", l->queue,
		    l->seen, mq_state_name(l->list->state),
		    l->seen == 1 ? "" : "s");
	return MQ_EXIT_NO;
}

/* How wide the names of connections are, which come one after the other. */
static void
measure_connections(struct lister *l, const struct mq_stats *stats)
{
	char *name;
	int i, n;

	for (i = 0; i < stats->connection_count; i++) {
		if (stats->connections[i].count == 0 ||
		    stats->connections[i].consumed[0].unacked == 0)
			continue;
		name = connection_text(l, stats->connections[i].name);
		n = stats_width(name);
		l->extra = n > l->extra ? n : l->extra;
		free(name);
	}
}

/* A line is as wide as the terminal, but never narrower than COLUMNS. */
static void
measure_line(struct lister *l)
{
	l->columns = stats_view_stdout().width;
	if (l->columns < COLUMNS)
		l->columns = COLUMNS;
	l->extra_max = l->columns - FIXED_COLUMNS - 2 - PAYLOAD_COLUMNS_MIN;
	if (l->extra_max > EXTRA_COLUMNS_MAX)
		l->extra_max = EXTRA_COLUMNS_MAX;
}

int
look_list(struct look *look, const struct list *list)
{
	struct lister l = {.look = look,
	    .list = list,
	    .queue = look->queues[0],
	    .limit = list->limit,
	    .terminal = isatty(STDOUT_FILENO)};
	struct mq_stats stats;
	int status;

	if (look->layout->stats(look->redis, look->queues, 1,
		list->state == MQ_UNACKED ? MQ_STATS_CONNECTIONS : 0,
		&stats) == -1)
		mq_die(look->redis->status, "%s", look->redis->error);
	l.now_ms = stats.now_ms;
	measure_line(&l);
	measure_connections(&l, &stats);
	if (l.limit == -1 && l.terminal && human(&l))
		l.limit = SCREENFUL;
	if (stats.queues[0].known)
		walk(&l);
	else
		mq_option_unknown(look->redis, look->layout, l.queue);
	status = finish(&l, stats.queues[0].known);
	mq_stats_free(&stats);
	mq_buf_free(&l.out);
	return status;
}
