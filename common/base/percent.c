#include "percent.h"

#include <string.h>

#include "xalloc.h"

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

const char *
mq_percent_decode(const char *s, size_t n, char **out)
{
	size_t i, len = 0;
	int hi, lo;

	if (n == 0)
		return NULL;
	*out = mq_xcalloc(n + 1, 1);
	for (i = 0; i < n; i++) {
		if (s[i] != '%') {
			(*out)[len++] = s[i];
			continue;
		}
		hi = n - i > 2 ? hex_value(s[i + 1]) : -1;
		lo = hi != -1 ? hex_value(s[i + 2]) : -1;
		if (lo == -1)
			return "% must be followed by two hex digits";
		if (hi == 0 && lo == 0)
			return "%00 is not allowed";
		(*out)[len++] = (char)(hi * 16 + lo);
		i += 2;
	}
	return NULL;
}

char *
mq_percent_encode(const char *s, const char *special)
{
	static const char hex[] = "0123456789ABCDEF";
	char *out = mq_xcalloc(strlen(s) + 1, 3);
	size_t n = 0;
	unsigned char c;

	for (; *s != '\0'; s++) {
		c = (unsigned char)*s;
		if (c > ' ' && c != 127 && strchr(special, c) == NULL) {
			out[n++] = *s;
			continue;
		}
		out[n++] = '%';
		out[n++] = hex[c / 16];
		out[n++] = hex[c % 16];
	}
	return out;
}
