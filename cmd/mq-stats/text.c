/* Texts that a terminal, or a person, can stand. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/exit.h"
#include "base/say.h"
#include "message/json.h"
#include "stats.h"

char *
show_visible(const char *p, size_t n)
{
	char *text = mq_visible(p, n);

	if (text == NULL)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	return text;
}

void
show_line(const char *name, const char *text)
{
	char *shown;

	if (text == NULL)
		return;
	shown = show_visible(text, strlen(text));
	printf("%-12s%s\n", name, shown);
	free(shown);
}

char *
show_clipped(const char *p, size_t n, int columns)
{
	/* A column takes at least one byte, and at most four of them make up a
	 * character: what is behind those cannot be seen. */
	size_t most = (size_t)columns * 4 + 4;
	struct mq_buf out = {0};
	char *text = show_visible(p, n < most ? n : most);

	stats_cut(&out, text, columns);
	free(text);
	(void)mq_buf_str(&out);
	return out.data;
}

void
show_age(char out[24], int64_t now_ms, int64_t since_ms)
{
	if (since_ms == 0)
		strlcpy(out, "-", 24);
	else
		stats_age_text(out, 24,
		    now_ms > since_ms ? (double)(now_ms - since_ms) / 1000 : 0);
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
