#include "utf8.h"

#include <stdint.h>

size_t
mq_utf8_len(const char *s, size_t n)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = (const unsigned char *)s;
	size_t len, i;
	uint32_t c;

	if (n == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc0 || p[0] >= 0xf8 || len > n)
		return 0;
	c = p[0] & (0xffu >> (len + 1));
	for (i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return len;
}

bool
mq_utf8(const char *s, size_t n)
{
	size_t i, len = 1;

	for (i = 0; i < n && len > 0; i += len)
		len =
		    (unsigned char)s[i] < 0x80 ? 1 : mq_utf8_len(s + i, n - i);
	return len > 0;
}

long long
mq_utf16_units(const char *p, size_t n)
{
	long long units = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		units += ((unsigned char)p[i] & 0xc0) != 0x80;
		units += ((unsigned char)p[i] & 0xf8) == 0xf0;
	}
	return units;
}
