/* Texts and tables that a terminal, or a person, can stand. */
#include <sys/ioctl.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "exit.h"
#include "json.h"
#include "say.h"
#include "stats-look.h"
#include "xalloc.h"

char *
show_visible(const char *p, size_t n)
{
	char *text = mq_visible(p, n);

	if (text == NULL)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	return text;
}

/* The columns of the character at s, and its bytes in *len. */
static int
step(const char *s, size_t *len)
{
	mbstate_t state = {0};
	wchar_t wide;
	size_t n = mbrtowc(&wide, s, strlen(s), &state);
	int width;

	*len = 1;
	if (n == (size_t)-1 || n == (size_t)-2 || n == 0)
		return 1;
	*len = n;
	width = wcwidth(wide);
	return width < 0 ? 1 : width;
}

int
show_columns(const char *visible)
{
	int columns = 0;
	size_t len;

	for (; *visible != '\0'; visible += len)
		columns += step(visible, &len);
	return columns;
}

static void
cut(char *text, int columns)
{
	static const char dots[] = "...";
	int room = columns - (int)strlen(dots), used = 0;
	size_t at = 0, len;

	for (; text[at] != '\0'; at += len) {
		used += step(text + at, &len);
		if (used > room)
			break;
	}
	strcpy(text + at, dots);
}

char *
show_clipped(const char *p, size_t n, int columns)
{
	/* A column takes at least one byte, and at most four of them make up a
	 * character: what is behind those cannot be seen. */
	size_t most = (size_t)columns * 4 + 4;
	char *text;

	text = show_visible(p, n < most ? n : most);
	if (n > most || show_columns(text) > columns) {
		text = mq_xreallocarray(text, strlen(text) + 4, 1);
		cut(text, columns);
	}
	return text;
}

int
show_terminal(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == -1 || size.ws_col == 0)
		return 80;
	return size.ws_col;
}

void
show_age(char out[24], int64_t now_ms, int64_t since_ms)
{
	long long s = (now_ms - since_ms) / 1000;

	if (s < 0)
		s = 0;
	if (since_ms == 0)
		strcpy(out, "-");
	else if (s < 120)
		snprintf(out, 24, "%llds", s);
	else if (s < 120 * 60)
		snprintf(out, 24, "%lldm", s / 60);
	else if (s < 48 * 3600)
		snprintf(out, 24, "%lldh", s / 3600);
	else
		snprintf(out, 24, "%lldd", s / 86400);
}

void
show_time(char out[40], int64_t unix_ms)
{
	time_t t = (time_t)(unix_ms / 1000);
	struct tm tm;
	size_t n;

	out[0] = '\0';
	if (localtime_r(&t, &tm) == NULL)
		return;
	n = strftime(out, 39, "%Y-%m-%dT%H:%M:%S%z", &tm);
	/* +0100 becomes +01:00. */
	if (n >= 5) {
		memmove(out + n - 1, out + n - 2, 3);
		out[n - 2] = ':';
	}
}

void
show_json(const char *p, size_t n)
{
	size_t i, len;
	uint32_t c;

	for (i = 0; i < n; i += len) {
		len = show_char(p + i, n - i, &c);
		if (len == 0 || c < 0x7f || !show_odd(c)) {
			len = len == 0 ? 1 : len;
			fwrite(p + i, 1, len, stdout);
		} else if (c < 0x10000) {
			printf("\\u%04x", (unsigned)c);
		} else {
			c -= 0x10000;
			printf("\\u%04x\\u%04x", (unsigned)(0xd800 + (c >> 10)),
			    (unsigned)(0xdc00 + (c & 0x3ff)));
		}
	}
}

size_t
show_char(const char *p, size_t n, uint32_t *c)
{
	size_t len = mq_utf8_len(p, n), i;

	if (len == 0)
		return 0;
	*c = (unsigned char)p[0];
	if (len > 1)
		*c &= 0xffu >> (len + 1);
	for (i = 1; i < len; i++)
		*c = *c << 6 | ((unsigned char)p[i] & 0x3f);
	return len;
}

bool
show_odd(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} odd[] = {{0, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x61c, 0x61c},
	    {0x115f, 0x1160}, {0x180e, 0x180e}, {0x200b, 0x200f},
	    {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
	    {0xe000, 0xf8ff}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0},
	    {0xfff0, 0xfffb}, {0xe0000, 0x10ffff}};
	size_t i;

	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		if (c >= odd[i].first && c <= odd[i].last)
			return true;
	return (c & 0xfffe) == 0xfffe;
}

static void
print_row(char *const *cells, const int *width, int columns, const char *right)
{
	int j, pad;

	for (j = 0; j < columns; j++) {
		pad = width[j] - show_columns(cells[j]);
		if (right[j] == 'r')
			printf("%*s", pad, "");
		fputs(cells[j], stdout);
		if (right[j] != 'r' && j + 1 < columns)
			printf("%*s", pad, "");
		fputs(j + 1 < columns ? "  " : "\n", stdout);
	}
}

/* What is left of a terminal's line for the last column. */
static int
room_for_last(const int *width, int columns)
{
	int room = show_terminal(), j;

	if (room == 0)
		return INT_MAX;
	for (j = 0; j + 1 < columns; j++)
		room -= width[j] + 2;
	return room < 10 ? 10 : room;
}

void
show_table(char **cells, int rows, int columns, const char *right)
{
	int *width = mq_xcalloc((size_t)columns, sizeof(*width));
	int i, n, room;
	char *last;

	for (i = 0; i < rows * columns; i++) {
		n = show_columns(cells[i]);
		if (n > width[i % columns])
			width[i % columns] = n;
	}
	room = room_for_last(width, columns);
	for (i = 0; i < rows; i++) {
		last = cells[(i + 1) * columns - 1];
		if (show_columns(last) > room)
			cut(last, room);
		print_row(cells + i * columns, width, columns, right);
	}
	for (i = 0; i < rows * columns; i++)
		free(cells[i]);
	free(width);
}
