/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "stats.h"

#define GAP	  2
#define NARROWEST 8 /* columns that the widest texts are cut to at least */
/* Columns of a text that usually tell it apart from others. */
#define TELLING 20
/* Columns of a sparkline: at least those of its title, at most one for each minute. */
#define SPARK_MIN 9
#define SPARK_MAX 60

static const char *const codes[] = {[STYLE_RED] = "\033[31m",
    [STYLE_YELLOW] = "\033[33m",
    [STYLE_GROWS] = "\033[33m"};
static const char *const classes[] = {[STYLE_PLAIN] = "",
    [STYLE_RED] = "bad",
    [STYLE_YELLOW] = "warn",
    [STYLE_GROWS] = ""};

void
table_begin(struct table *t, const struct field *first,
    const struct field *second, int64_t now_ms)
{
	const struct field *f;

	*t = (struct table){.now_ms = now_ms};
	for (f = first; f->kind != KIND_END; f++)
		if (f->title != NULL)
			t->columns[t->count++] = f;
	t->first = t->count;
	for (f = second; f != NULL && f->kind != KIND_END; f++)
		if (f->title != NULL)
			t->columns[t->count++] = f;
}

static void
add_cell(struct table *t, const char *text, int width, enum style s)
{
	if (t->used == t->cap) {
		t->cap = t->cap * 2 + 64;
		t->cells =
		    mq_xreallocarray(t->cells, t->cap, sizeof(*t->cells));
	}
	t->cells[t->used++] = (struct cell){t->text.len, width, s};
	mq_buf_add(&t->text, text, strlen(text) + 1);
}

static void
add_text(struct table *t, const char *text, enum style style)
{
	add_cell(t, text, (int)strlen(text), style);
}

static void
add_left(const struct table *t, struct mq_buf *text, int64_t until_ms)
{
	char left[TEXT_AGE];

	if (until_ms <= 0)
		return;
	text_age(left, (double)(until_ms - t->now_ms) / 1000);
	mq_buf_printf(text, " for %s", left);
}

/* A queue has a note if a message has waited, and nothing was done, for an hour. */
static bool
is_old(const struct table *t, int64_t ms)
{
	return ms > 0 && t->now_ms - ms >= 3600L * 1000;
}

static void
add_note(struct table *t, const struct mq_queue_stats *q)
{
	struct mq_buf text = {0};
	char age[TEXT_AGE];

	if (q->paused_ms != 0)
		mq_buf_addstr(&text, "paused");
	add_left(t, &text, q->paused_ms);
	if (q->all_paused)
		mq_buf_printf(
		    &text, "%sall queues paused", text.len > 0 ? ", " : "");
	if (q->all_paused)
		add_left(t, &text, q->all_paused_ms);
	if (q->slots_shared > 0)
		mq_buf_printf(&text, "%s%lld of %lld run",
		    text.len > 0 ? ", " : "", q->slots_taken, q->slots_shared);
	if (q->dead_consumers > 0)
		mq_buf_printf(&text, "%s%lld dead consumer%s",
		    text.len > 0 ? ", " : "", q->dead_consumers,
		    q->dead_consumers == 1 ? "" : "s");
	if (q->leaving > 0)
		mq_buf_printf(&text, "%s%lld on the way to another queue",
		    text.len > 0 ? ", " : "", q->leaving);
	if (q->paused_ms == 0 && !q->all_paused && is_old(t, q->oldest_ms) &&
	    is_old(t, q->done_ms)) {
		text_age(age, (double)(t->now_ms - q->done_ms) / 1000);
		mq_buf_printf(&text, "%snothing done for %s",
		    text.len > 0 ? ", " : "", age);
	}
	add_text(t, mq_buf_str(&text), STYLE_YELLOW);
	mq_buf_free(&text);
}

/* Adds levels of ready messages, one for each minute of an hour.  A note also holds
 * for the next minute, as a round of cleaning may be late, but no longer. */
static void
add_spark(struct table *t, const struct mq_queue_stats *q)
{
	const struct mq_past *p = &q->past[MQ_MINUTES];
	long long most[SPARK_MAX] = {0}, top = 1, at_s;
	char text[SPARK_MAX + 1] = "";
	int i, k = 0;

	for (i = 0; i < SPARK_MAX; i++) {
		at_s = t->now_ms / 1000 - 60LL * (SPARK_MAX - 1 - i);
		most[i] = -1;
		for (; k < p->count && p->notes[k].n[MQ_NOTED_AT_S] <= at_s;
		     k++)
			most[i] = MAX(most[i], p->notes[k].n[MQ_NOTED_READY]);
		if (most[i] == -1 && k > 0 && k < p->count &&
		    p->notes[k].n[MQ_NOTED_AT_S] -
			    p->notes[k - 1].n[MQ_NOTED_AT_S] <
			120)
			most[i] = p->notes[k - 1].n[MQ_NOTED_READY];
		if (i == SPARK_MAX - 1)
			most[i] = q->ready;
		top = MAX(top, most[i]);
	}
	for (i = 0; i < SPARK_MAX && p->count > 0; i++)
		text[i] = most[i] < 0 ?
		    ' ' :
		    most[i] == 0 ?
		    '0' :
		    (char)('1' + (double)(most[i] - 1) * 7 / top);
	add_text(t, text, STYLE_SPARK);
}

/* Adds the text of a run, behind a bar if the text begins with a percentage. */
static void
add_said(struct table *t, const struct mq_run *run)
{
	char *visible = mq_visible(run->text, strlen(run->text)), *cell;
	int full = run->percent / 10;

	cell = mq_xasprintf("[%.*s%.*s] %s", full, "##########", 10 - full,
	    "..........", visible);
	if (run->percent >= 0)
		add_cell(t, cell, text_width(cell), STYLE_PLAIN);
	else
		add_cell(t, visible, text_width(visible), STYLE_PLAIN);
	free(cell);
	free(visible);
}

/* Adds a cell; "-": no value; "?": unknown. */
static void
add_field(struct table *t, const struct field *f, const void *record)
{
	const struct mq_queue_stats *q = record;
	struct value v = field_get(f, record, t->now_ms);
	enum style style = STYLE_PLAIN;
	char text[32] = "", *end = text + sizeof(text) - 1, *p = end, *visible;
	long long rest = v.n;

	if (v.type == VALUE_NONE) {
		add_text(t, f->sparse ? "" : "-", style);
	} else if (v.type == VALUE_UNKNOWN) {
		add_text(t, "?", f->kind == KIND_AGE ? style : STYLE_YELLOW);
	} else if (v.type == VALUE_TEXT) {
		if (f->kind == KIND_QUEUE &&
		    (q->paused_ms != 0 || q->all_paused))
			style = STYLE_YELLOW;
		visible = mq_visible(v.text, strlen(v.text));
		add_cell(t, visible, text_width(visible), style);
		free(visible);
	} else if (v.type == VALUE_FLAG) {
		add_text(
		    t, v.n > 0 ? "live" : "dead", v.n > 0 ? style : STYLE_RED);
	} else if (f->kind == KIND_AGE) {
		text_age(text, v.real);
		add_text(t, text, style);
	} else if (v.type == VALUE_REAL) {
		/* Values from 10 on need no decimal. */
		snprintf(text, sizeof(text), v.real < 9.95 ? "%.1f" : "%.0f",
		    v.real < 0.05 ? 0 : v.real);
		add_text(t, text, style);
	} else {
		/* Most cells are numbers, and printf() is slow. */
		do
			*--p = (char)('0' + llabs(rest % 10));
		while ((rest /= 10) != 0);
		if (v.n < 0)
			*--p = '-';
		add_cell(t, p, (int)(end - p),
		    f->red && v.n > 0 ? STYLE_RED : style);
	}
	if (f->grows && q->grows)
		t->cells[t->used - 1].style = STYLE_GROWS;
}

void
table_add(struct table *t, const void *first, const void *second)
{
	const struct field *f;
	const void *record;
	int j;

	for (j = 0; j < t->count; j++) {
		f = t->columns[j];
		record = j < t->first ? first : second;
		if (record == NULL)
			add_text(t, f->sparse ? "" : "-", STYLE_PLAIN);
		else if (f->kind == KIND_NOTE)
			add_note(t, record);
		else if (f->kind == KIND_SPARK)
			add_spark(t, record);
		else if (f->kind == KIND_SAID)
			add_said(t, record);
		else
			add_field(t, f, record);
	}
}

size_t
table_rows(const struct table *t)
{
	return t->used / (size_t)t->count - t->total - t->rest;
}

void
table_free(struct table *t)
{
	mq_buf_free(&t->text);
	free(t->cells);
}

/* --- widths -------------------------------------------------------------- */

static bool
is_text(const struct table *t, int column)
{
	return t->columns[column]->kind <= KIND_TEXTS;
}

static int
title_width(const struct table *t, int column)
{
	return (int)strlen(t->columns[column]->title);
}

/* Returns the width of all columns if texts have at most this number of columns. */
static int
total_width(const struct table *t, const int *width, int most)
{
	int total = -GAP, n, j;

	for (j = 0; j < t->count; j++) {
		n = is_text(t, j) ? MIN(width[j], most) : width[j];
		total += n > 0 ? n + GAP : 0;
	}
	return total;
}

/* Sets the width of each column; 0: left out.  room 0: no limit. */
static void
fit_columns(const struct table *t, int room, int *width)
{
	const struct field *const *columns = t->columns;
	int j, n, spare, widest, left;
	size_t i;

	for (j = 0; j < t->count; j++)
		width[j] = columns[j]->sparse ? 0 : title_width(t, j);
	for (i = 0; i < t->used; i++) {
		j = (int)(i % (size_t)t->count);
		n = t->cells[i].width;
		if (n > 0)
			width[j] = MAX(MAX(n, title_width(t, j)), width[j]);
	}
	/* A sparkline gets the room that other columns leave; without a limit, none. */
	for (j = 0; j < t->count; j++) {
		if (columns[j]->kind != KIND_SPARK || width[j] == 0)
			continue;
		width[j] = 0;
		left = room - GAP - total_width(t, width, INT_MAX);
		if (left >= SPARK_MIN)
			width[j] = MIN(left, SPARK_MAX);
	}
	if (room == 0)
		return;
	/* Spare columns are left out until the others fit with texts of TELLING
	 * columns. */
	for (spare = 1;
	     spare <= SPARE_MAX && total_width(t, width, TELLING) > room;
	     spare++)
		for (j = 0; j < t->count; j++)
			if (columns[j]->spare == spare)
				width[j] = 0;
	/* The widest texts are cut until everything fits. */
	while (total_width(t, width, INT_MAX) > room) {
		widest = -1;
		for (j = 0; j < t->count; j++) {
			if (is_text(t, j) && !columns[j]->id &&
			    width[j] > MAX(title_width(t, j), NARROWEST) &&
			    (widest == -1 || width[j] > width[widest]))
				widest = j;
		}
		if (widest == -1)
			return;
		width[widest]--;
	}
}

/* --- lines --------------------------------------------------------------- */

/* Writes a cell; returns the number of columns written. */
static int
write_cell(const struct table *t, const struct view *view,
    const struct cell *cell, int width, struct mq_buf *out)
{
	static const char plain[] = "_.:-=+*#";
	const char *text = t->text.data + cell->at;
	bool coloured = view->colour && cell->style != STYLE_PLAIN;
	int used = cell->width, i, k;
	char most;

	/* A column shows the highest of the levels that fall on it. */
	for (i = 0; cell->style == STYLE_SPARK && i < width; i++) {
		most = ' ';
		for (k = i * SPARK_MAX / width; k < (i + 1) * SPARK_MAX / width;
		     k++)
			most = MAX(most, text[k]);
		if (most == ' ')
			mq_buf_add(out, " ", 1);
		else if (text_is_utf8()) /* U+2581 and so on */
			mq_buf_printf(out, "\xe2\x96%c", most - '0' + 0x81);
		else
			mq_buf_add(out, &plain[most - '0'], 1);
	}
	if (cell->style == STYLE_SPARK)
		return width;
	/* Isolated, a right-to-left name does not reverse the numbers behind it. */
	if (view->html) {
		mq_buf_printf(out, "<bdi class=\"%s\">", classes[cell->style]);
		text_html(text, out);
		mq_buf_addstr(out, "</bdi>");
		return used;
	}
	if (coloured)
		mq_buf_addstr(out, codes[cell->style]);
	if (used > width)
		used = text_cut(out, text, width);
	else
		mq_buf_addstr(out, text);
	if (coloured)
		mq_buf_addstr(out, "\033[0m");
	return used;
}

/* Writes a row (NULL: the titles) in a style ("": none).  Trailing blanks are left
 * out. */
static void
write_row(const struct table *t, const struct view *view, const int *width,
    const struct cell *row, const char *style, struct mq_buf *out)
{
	int j, n, blanks, owed = 0;

	mq_buf_addstr(out, style);
	for (j = 0; j < t->count; j++) {
		if (width[j] == 0)
			continue;
		n = row != NULL ? row[j].width : title_width(t, j);
		if (n == 0) {
			owed += width[j] + GAP;
			continue;
		}
		blanks =
		    owed + (is_text(t, j) || n > width[j] ? 0 : width[j] - n);
		if (blanks > 0)
			memset(mq_buf_reserve(out, (size_t)blanks), ' ',
			    (size_t)blanks);
		out->len += (size_t)blanks;
		if (row != NULL)
			n = write_cell(t, view, &row[j], width[j], out);
		else
			mq_buf_addstr(out, t->columns[j]->title);
		owed = GAP + (is_text(t, j) ? width[j] - n : 0);
		if (row != NULL && row[j].style == STYLE_GROWS) {
			mq_buf_add(out, "+", 1);
			owed--;
		}
	}
	mq_buf_addstr(out, *style != '\0' ? "\033[0m\n" : "\n");
}

void
table_write(const struct table *t, const struct view *view, struct mq_buf *out)
{
	static const struct view plain;
	size_t rows = t->used / (size_t)t->count - t->total, shown = rows, i;
	int width[COLUMNS_MAX] = {0};
	int room = view->height - 1 - t->total;
	const struct cell *row = t->cells;
	bool marked;

	fit_columns(t, view->width, width);
	write_row(t, view, width, NULL, view->colour ? "\033[1m" : "", out);
	if (view->height > 0 && room < (int)rows)
		shown = room > 1 ? (size_t)room - 1 : 0;
	for (i = 0; i < shown; i++, row += t->count) {
		/* The marked row is reversed and without colours, as a colour's end
		 * would end the reversal. */
		marked = (int)i == t->marked - 1;
		write_row(t, marked ? &plain : view, width, row,
		    marked ? "\033[7m" : "", out);
	}
	if (shown < rows)
		mq_buf_printf(out, "(%zu more)\n", rows - shown);
	if (t->total)
		write_row(t, view, width, t->cells + rows * (size_t)t->count,
		    "", out);
}

void
table_print(struct table *t)
{
	struct view view = text_view();
	struct mq_buf out = {0};

	view.height = 0;
	table_write(t, &view, &out);
	fwrite(out.data, 1, out.len, stdout);
	mq_buf_free(&out);
	table_free(t);
}
