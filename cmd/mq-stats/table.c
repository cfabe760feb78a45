/*
 * mq-stats: tables.
 */
#include "stats.h"

#include <sys/ioctl.h>

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"

#define GAP	  2
#define NARROWEST 8 /* no text is cut to less, nor to less than its title */

static const char *const codes[] = {
    [STATS_RED] = "\033[31m", [STATS_YELLOW] = "\033[33m"};

struct stats_view
stats_view_stdout(void)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
	struct stats_view view = {0};
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return view;
	setlocale(LC_CTYPE, "");
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		view.width = size.ws_col;
	view.colour = term != NULL && term[0] != '\0' &&
	    strcmp(term, "dumb") != 0 && (no == NULL || no[0] == '\0');
	return view;
}

static const char *
ellipsis(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? "\xe2\x80\xa6" :
							    "~";
}

/* The character at s, its bytes and columns. */
static size_t
character(const char *s, mbstate_t *state, int *columns)
{
	wchar_t c;
	size_t n = mbrtowc(&c, s, MB_CUR_MAX, state);

	if (n == (size_t)-1 || n == (size_t)-2) {
		*state = (mbstate_t){0};
		*columns = 1;
		return 1;
	}
	*columns = wcwidth(c);
	if (*columns < 0)
		*columns = 1;
	return n > 0 ? n : 1;
}

int
stats_width(const char *s)
{
	mbstate_t state = {0};
	int width = 0, columns;

	for (; *s != '\0'; width += columns)
		if (*s >= ' ' && *s <= '~') {
			s++;
			columns = 1;
		} else {
			s += character(s, &state, &columns);
		}
	return width;
}

int
stats_cut(struct mq_buf *out, const char *s, int room)
{
	mbstate_t state = {0};
	int width = 0, columns;
	size_t n, len = 0;

	if (stats_width(s) <= room) {
		mq_buf_addstr(out, s);
		return stats_width(s);
	}
	while (s[len] != '\0') {
		n = character(s + len, &state, &columns);
		if (width + columns > room - 1)
			break;
		width += columns;
		len += n;
	}
	mq_buf_add(out, s, len);
	mq_buf_addstr(out, ellipsis());
	return width + 1;
}

char *
stats_cut_front(const char *s, int room)
{
	mbstate_t state = {0};
	int width = stats_width(s), columns;

	if (width <= room)
		return mq_xstrdup(s);
	for (; width > room - 1; width -= columns)
		s += character(s, &state, &columns);
	return mq_xasprintf("%s%s", ellipsis(), s);
}

static void
add_cell(struct stats_table *t, const char *text, int width, enum stats_style s)
{
	if (t->used == t->cap) {
		t->cap = t->cap * 2 + 64;
		t->cells =
		    mq_xreallocarray(t->cells, t->cap, sizeof(*t->cells));
	}
	t->cells[t->used++] = (struct stats_cell){t->text.len, width, s};
	mq_buf_add(&t->text, text, strlen(text) + 1);
}

void
stats_table_name(
    struct stats_table *t, const char *name, enum stats_style style)
{
	char *visible = mq_visible(name, strlen(name));

	if (visible == NULL)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	add_cell(t, visible, stats_width(visible), style);
	free(visible);
}

void
stats_table_text(
    struct stats_table *t, const char *text, enum stats_style style)
{
	add_cell(t, text, (int)strlen(text), style);
}

/* By hand: most of what there is to print are numbers. */
void
stats_table_number(struct stats_table *t, long long n, enum stats_style style)
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
stats_table_free(struct stats_table *t)
{
	mq_buf_free(&t->text);
	free(t->cells);
	t->cells = NULL;
	t->used = t->cap = 0;
}

/* How wide each column is; 0: it is left out. */
static void
measure(const struct stats_table *t, int *width)
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
narrow(const struct stats_table *t, int room, int *width)
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
pad(struct mq_buf *out, int n)
{
	if (n <= 0)
		return;
	memset(mq_buf_reserve(out, (size_t)n), ' ', (size_t)n);
	out->len += (size_t)n;
}

/* Returns how many columns it takes. */
static int
write_cell(const struct stats_table *t, const struct stats_view *view,
    const struct stats_cell *cell, int width, struct mq_buf *out)
{
	const char *text = t->text.data + cell->at;
	bool coloured = view->colour && cell->style != STATS_PLAIN;
	int used = cell->width;

	if (coloured)
		mq_buf_addstr(out, codes[cell->style]);
	if (used > width)
		used = stats_cut(out, text, width);
	else
		mq_buf_addstr(out, text);
	if (coloured)
		mq_buf_addstr(out, "\033[0m");
	return used;
}

/* One line.  Blanks are only written when something follows them. */
static void
write_row(const struct stats_table *t, const struct stats_view *view,
    const int *width, const struct stats_cell *row, struct mq_buf *out)
{
	int j, used, owed = 0;

	for (j = 0; j < t->count; j++) {
		if (width[j] == 0)
			continue;
		if (row[j].width == 0) {
			owed += width[j] + GAP;
			continue;
		}
		pad(out,
		    owed + (t->columns[j].text ? 0 : width[j] - row[j].width));
		used = write_cell(t, view, &row[j], width[j], out);
		owed = GAP + (t->columns[j].text ? width[j] - used : 0);
	}
	mq_buf_add(out, "\n", 1);
}

static void
write_head(const struct stats_table *t, const struct stats_view *view,
    const int *width, struct mq_buf *out)
{
	int j, len, owed = 0;

	if (view->colour)
		mq_buf_addstr(out, "\033[1m");
	for (j = 0; j < t->count; j++) {
		if (width[j] == 0)
			continue;
		len = (int)strlen(t->columns[j].title);
		pad(out, owed + (t->columns[j].text ? 0 : width[j] - len));
		mq_buf_addstr(out, t->columns[j].title);
		owed = GAP + (t->columns[j].text ? width[j] - len : 0);
	}
	mq_buf_addstr(out, view->colour ? "\033[0m\n" : "\n");
}

/* How many rows before the total there is room for. */
static size_t
room_for(const struct stats_table *t, const struct stats_view *view)
{
	size_t rows = t->used / (size_t)t->count - t->total;
	int room = view->height - 1 - t->total;

	if (view->height == 0 || room >= (int)rows)
		return rows;
	return room > 1 ? (size_t)room - 1 : 0;
}

void
stats_table_write(const struct stats_table *t, const struct stats_view *view,
    struct mq_buf *out)
{
	size_t rows = t->used / (size_t)t->count - t->total;
	size_t shown = room_for(t, view), i;
	int *width = mq_xcalloc((size_t)t->count, sizeof(*width));

	measure(t, width);
	if (view->width > 0)
		narrow(t, view->width, width);
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
