#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define GAP	  2
#define NARROWEST 8 /* no text is cut to less, nor to less than its title */

static const char *const codes[] = {
    [STYLE_RED] = "\033[31m", [STYLE_YELLOW] = "\033[33m"};

static void
add_cell(struct table *t, const char *text, int width, enum style s)
{
	if (t->used == t->cap) {
		t->cap = t->cap * 2 + 64;
		t->cells =
		    mq_xreallocarray(t->cells, t->cap, sizeof(*t->cells));
	}
	t->cells[t->used++] = (struct cell){t->text.len, width, s, -1};
	mq_buf_add(&t->text, text, strlen(text) + 1);
}

void
table_name(struct table *t, const char *name, enum style style)
{
	char *visible = text_visible(name, strlen(name));

	add_cell(t, visible, text_width(visible), style);
	free(visible);
}

void
table_text(struct table *t, const char *text, enum style style)
{
	add_cell(t, text, (int)strlen(text), style);
}

/* By hand: most of what there is to print are numbers. */
void
table_number(struct table *t, long long n, enum style style)
{
	char text[24], *p = text + sizeof(text) - 1;
	unsigned long long rest =
	    n < 0 ? 0 - (unsigned long long)n : (unsigned long long)n;

	*p = '\0';
	do
		*--p = (char)('0' + rest % 10);
	while ((rest /= 10) > 0);
	if (n < 0)
		*--p = '-';
	add_cell(t, p, (int)(text + sizeof(text) - 1 - p), style);
}

void
table_age(struct table *t, int64_t now_ms, int64_t since_ms)
{
	char text[TEXT_AGE] = "?";

	if (since_ms >= 0)
		text_age_since(text, now_ms, since_ms);
	table_text(t, text, STYLE_PLAIN);
	if (since_ms > 0)
		t->cells[t->used - 1].age_s =
		    now_ms > since_ms ? (double)(now_ms - since_ms) / 1000 : 0;
}

size_t
table_rows(const struct table *t)
{
	return t->used / (size_t)t->count - t->total - t->rest;
}

bool
table_has(const struct table *t, int column)
{
	bool has = !t->columns[column].optional;
	size_t i;

	for (i = (size_t)column; i < t->used && !has; i += (size_t)t->count)
		has = t->cells[i].width > 0;
	return has;
}

void
table_free(struct table *t)
{
	mq_buf_free(&t->text);
	free(t->cells);
	t->cells = NULL;
	t->used = t->cap = 0;
}

/* How wide each column is; 0: it is left out. */
static void
measure_columns(const struct table *t, int *width)
{
	size_t i;
	int j;

	for (j = 0; j < t->count; j++)
		width[j] = t->columns[j].optional ?
		    0 :
		    (int)strlen(t->columns[j].title);
	for (i = 0; i < t->used; i++) {
		j = (int)(i % (size_t)t->count);
		if (t->cells[i].width > width[j])
			width[j] = t->cells[i].width;
	}
	for (j = 0; j < t->count; j++)
		if (width[j] > 0 && width[j] < (int)strlen(t->columns[j].title))
			width[j] = (int)strlen(t->columns[j].title);
}

/* Takes from the widest texts until everything fits. */
static void
narrow_columns(const struct table *t, int room, int *width)
{
	int total, widest, least, j;

	for (;;) {
		total = -GAP;
		widest = -1;
		for (j = 0; j < t->count; j++) {
			total += width[j] > 0 ? width[j] + GAP : 0;
			least = (int)strlen(t->columns[j].title);
			if (least < NARROWEST)
				least = NARROWEST;
			if (t->columns[j].text && width[j] > least &&
			    (widest == -1 || width[j] > width[widest]))
				widest = j;
		}
		if (total <= room || widest == -1)
			return;
		width[widest]--;
	}
}

static void
pad_cell(struct mq_buf *out, int n)
{
	if (n <= 0)
		return;
	memset(mq_buf_reserve(out, (size_t)n), ' ', (size_t)n);
	out->len += (size_t)n;
}

/* Returns how many columns it takes. */
static int
write_cell(const struct table *t, const struct view *view,
    const struct cell *cell, int width, struct mq_buf *out)
{
	const char *text = t->text.data + cell->at;
	bool coloured = view->colour && cell->style != STYLE_PLAIN;
	int used = cell->width;

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

/* One line.  Blanks are only written when something follows them. */
static void
write_row(const struct table *t, const struct view *view, const int *width,
    const struct cell *row, struct mq_buf *out)
{
	int j, used, owed = 0;

	for (j = 0; j < t->count; j++) {
		if (width[j] == 0)
			continue;
		if (row[j].width == 0) {
			owed += width[j] + GAP;
			continue;
		}
		pad_cell(out,
		    owed + (t->columns[j].text ? 0 : width[j] - row[j].width));
		used = write_cell(t, view, &row[j], width[j], out);
		owed = GAP + (t->columns[j].text ? width[j] - used : 0);
	}
	mq_buf_add(out, "\n", 1);
}

static void
write_head(const struct table *t, const struct view *view, const int *width,
    struct mq_buf *out)
{
	int j, len, owed = 0;

	if (view->colour)
		mq_buf_addstr(out, "\033[1m");
	for (j = 0; j < t->count; j++) {
		if (width[j] == 0)
			continue;
		len = (int)strlen(t->columns[j].title);
		pad_cell(out, owed + (t->columns[j].text ? 0 : width[j] - len));
		mq_buf_addstr(out, t->columns[j].title);
		owed = GAP + (t->columns[j].text ? width[j] - len : 0);
	}
	mq_buf_addstr(out, view->colour ? "\033[0m\n" : "\n");
}

/* How many rows before the total there is room for. */
static size_t
room_for_rows(const struct table *t, const struct view *view)
{
	size_t rows = t->used / (size_t)t->count - t->total;
	int room = view->height - 1 - t->total;

	if (view->height == 0 || room >= (int)rows)
		return rows;
	return room > 1 ? (size_t)room - 1 : 0;
}

void
table_write(const struct table *t, const struct view *view, struct mq_buf *out)
{
	size_t rows = t->used / (size_t)t->count - t->total;
	size_t shown = room_for_rows(t, view), i;
	int *width = mq_xcalloc((size_t)t->count, sizeof(*width));

	measure_columns(t, width);
	if (view->width > 0)
		narrow_columns(t, view->width, width);
	write_head(t, view, width, out);
	for (i = 0; i < shown; i++)
		write_row(t, view, width, t->cells + i * (size_t)t->count, out);
	if (shown < rows)
		mq_buf_printf(out, "(%zu more)\n", rows - shown);
	if (t->total)
		write_row(
		    t, view, width, t->cells + rows * (size_t)t->count, out);
	free(width);
}

void
table_print(struct table *t)
{
	struct view view = text_view();
	struct mq_buf out = {0};

	table_write(t, &view, &out);
	fwrite(out.data, 1, out.len, stdout);
	mq_buf_free(&out);
	table_free(t);
}
