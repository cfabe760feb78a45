/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "stats.h"

#include <sys/ioctl.h>

#include <langinfo.h>
#include <locale.h>
#include <wchar.h>

struct view
text_view(void)
{
	const char *no = getenv("NO_COLOR");
	struct view view = {0};
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return view;
	setlocale(LC_CTYPE, "");
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
		view.width = size.ws_col;
		view.height = size.ws_row;
	}
	view.colour =
	    progress_can_draw(STDOUT_FILENO) && (no == NULL || no[0] == '\0');
	return view;
}

bool
text_is_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

static const char *
ellipsis_text(void)
{
	return text_is_utf8() ? "\xe2\x80\xa6" : "~";
}

/* Returns the bytes of the character at s; sets its columns. */
static size_t
read_character(const char *s, mbstate_t *state, int *columns)
{
	wchar_t c;
	size_t n = mbrtowc(&c, s, MB_CUR_MAX, state);

	/* Visible text has only printable characters; anything else counts as one
	 * column. */
	if (n == 0 || n > MB_CUR_MAX || (*columns = wcwidth(c)) < 0) {
		*state = (mbstate_t){0};
		*columns = 1;
		return 1;
	}
	return n;
}

int
text_width(const char *s)
{
	mbstate_t state = {0};
	int width = 0, columns;

	for (; *s != '\0'; width += columns)
		if (*s >= ' ' && *s <= '~') {
			s++;
			columns = 1;
		} else {
			s += read_character(s, &state, &columns);
		}
	return width;
}

int
text_cut(struct mq_buf *out, const char *s, int room)
{
	mbstate_t state = {0};
	int width = 0, columns;
	size_t n, len = 0;

	if (text_width(s) <= room) {
		mq_buf_addstr(out, s);
		return text_width(s);
	}
	while (s[len] != '\0') {
		n = read_character(s + len, &state, &columns);
		if (width + columns > room - 1)
			break;
		width += columns;
		len += n;
	}
	mq_buf_add(out, s, len);
	mq_buf_addstr(out, ellipsis_text());
	return width + 1;
}

char *
text_clipped_front(const char *name, int room)
{
	char *visible = mq_visible(name, strlen(name)), *end = visible, *cut;
	mbstate_t state = {0};
	int width = text_width(visible), columns;

	if (width <= room)
		return visible;
	for (; width > room - 1; width -= columns)
		end += read_character(end, &state, &columns);
	cut = mq_xasprintf("%s%s", ellipsis_text(), end);
	free(visible);
	return cut;
}

void
text_line(const char *name, const char *text)
{
	char *shown;

	if (text == NULL)
		return;
	shown = mq_visible(text, strlen(text));
	printf("%-12s%s\n", name, shown);
	free(shown);
}

char *
text_clipped(const char *p, size_t n, int columns)
{
	/* A character has at most four bytes, so text behind this number of bytes
	 * cannot be seen. */
	size_t most = (size_t)columns * 4 + 4;
	struct mq_buf out = {0};
	char *text = mq_visible(p, n < most ? n : most);

	text_cut(&out, text, columns);
	free(text);
	return mq_buf_str(&out);
}

static char *
escape_html(char *to, const char *p, size_t n, uint32_t odd)
{
	(void)n;
	return odd != 0 ? to + sprintf(to, "\\u%04x", (unsigned)odd) :
			  to + sprintf(to, "&#%d;", *p);
}

void
text_html(const char *visible, struct mq_buf *out)
{
	const struct mq_view page = {mq_utf8_odd, "&<>\"", escape_html};
	char *text = mq_show(&page, visible, strlen(visible));

	mq_buf_addstr(out, text);
	free(text);
}

void
text_age(char out[TEXT_AGE], double seconds)
{
	long long s = (long long)seconds;
	int unit = s < 60 ? 1 : s < 3600 ? 60 : s < 86400 ? 3600 : 86400;

	snprintf(out, TEXT_AGE, "%lld%c", s / unit,
	    unit == 1	     ? 's' :
		unit == 60   ? 'm' :
		unit == 3600 ? 'h' :
			       'd');
}
