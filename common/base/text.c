/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xalloc.h"

/* --- UTF-8 -------------------------------------------------------------------- */

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

size_t
mq_utf8_odd(const char *p, size_t n, uint32_t *odd)
{
	static const struct {
		uint32_t first, last;
	} all[] = {{0x7f, 0x9f}, {0xad, 0xad}, {0x61c, 0x61c}, {0x115f, 0x1160},
	    {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},
	    {0x2060, 0x206f}, {0x3164, 0x3164}, {0xe000, 0xf8ff},
	    {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
	    {0xe0000, 0x10ffff}};
	size_t len = mq_utf8_len(p, n), i;
	uint32_t c;

	*odd = 0;
	if (len == 0)
		return 1;
	c = (unsigned char)p[0];
	if (c < 0x7f)
		return 1;
	if (len > 1)
		c &= 0xffu >> (len + 1);
	for (i = 1; i < len; i++)
		c = c << 6 | ((unsigned char)p[i] & 0x3f);
	if ((c & 0xfffe) == 0xfffe)
		*odd = c;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (c >= all[i].first && c <= all[i].last)
			*odd = c;
	return len;
}

static size_t
look_name(const char *p, size_t n, uint32_t *odd)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	size_t len = mq_utf8_len(p, n);

	*odd = len == 0 ||
	    (n >= 4 && p[0] == '\\' && p[1] == 'x' &&
		memchr(digits, p[2], sizeof(digits) - 1) != NULL &&
		memchr(digits, p[3], sizeof(digits) - 1) != NULL);
	return len == 0 ? 1 : len;
}

static char *
escape_name(char *to, const char *p, size_t n, uint32_t odd)
{
	(void)n;
	(void)odd;
	return to + sprintf(to, "\\x%02x", (unsigned char)*p);
}

const struct mq_view mq_name = {look_name, "", escape_name};

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

int64_t
mq_number(const char *s, size_t n, int64_t max)
{
	int64_t v = 0;
	size_t i;
	int digit;

	for (i = 0; i < n; i++) {
		digit = s[i] - '0';
		if (digit < 0 || digit > 9)
			return -1;
		v = v > (INT64_MAX - digit) / 10 ? INT64_MAX : v * 10 + digit;
	}
	return n == 0 ? -1 : v < max ? v : max;
}

char *
mq_digits(char *to, size_t n)
{
	char digits[MQ_DIGITS], *p = digits + sizeof(digits);

	do
		*--p = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	return mempcpy(to, p, (size_t)(digits + sizeof(digits) - p));
}

/* --- base64 ------------------------------------------------------------------- */

static const char digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
mq_base64_encode(struct mq_buf *out, const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	char *o = mq_buf_reserve(out, n / 3 * 4 + 4);
	uint32_t bits;
	size_t i;

	for (i = 0; i < n; i += 3) {
		bits = (uint32_t)p[i] << 16;
		if (i + 1 < n)
			bits |= (uint32_t)p[i + 1] << 8;
		if (i + 2 < n)
			bits |= p[i + 2];
		*o++ = digits[bits >> 18];
		*o++ = digits[bits >> 12 & 63];
		*o++ = i + 1 < n ? digits[bits >> 6 & 63] : '=';
		*o++ = i + 2 < n ? digits[bits & 63] : '=';
	}
	out->len = (size_t)(o - out->data);
}

int
mq_base64_decode(struct mq_buf *out, const char *s, size_t n)
{
	size_t i, pad = 0;
	const char *digit;
	uint32_t bits = 0;
	char *o;

	if (n % 4 != 0)
		return -1;
	if (n > 0 && s[n - 1] == '=')
		pad = s[n - 2] == '=' ? 2 : 1;
	o = mq_buf_reserve(out, n / 4 * 3 + 1);
	for (i = 0; i < n; i++) {
		digit = i < n - pad ? strchr(digits, s[i]) : digits;
		if (digit == NULL || *digit == '\0')
			return -1;
		bits = bits << 6 | (uint32_t)(digit - digits);
		if (i % 4 != 3)
			continue;
		*o++ = (char)(bits >> 16);
		*o++ = (char)(bits >> 8);
		*o++ = (char)bits;
	}
	/* An encoder leaves the bits behind the last byte zero. */
	if ((bits & ((1u << 8 * pad) - 1)) != 0)
		return -1;
	out->len += n / 4 * 3 - pad;
	return 0;
}

/* --- URLs --------------------------------------------------------------------- */

const char *
mq_percent_decode(const char *s, size_t n, char **out)
{
	size_t i, len = 0;
	char hex[3] = "", byte;

	if (n == 0)
		return NULL;
	*out = mq_xcalloc(n + 1, 1);
	for (i = 0; i < n; i++) {
		if (s[i] != '%') {
			(*out)[len++] = s[i];
			continue;
		}
		if (n - i > 2)
			memcpy(hex, s + i + 1, 2);
		if (n - i <= 2 || strspn(hex, "0123456789abcdefABCDEF") < 2)
			return "% must be followed by two hex digits";
		byte = (char)strtoul(hex, NULL, 16);
		if (byte == 0)
			return "%00 is not allowed";
		(*out)[len++] = byte;
		i += 2;
	}
	return NULL;
}

char *
mq_percent_encode(const char *s, const char *special)
{
	char *out = mq_xcalloc(strlen(s) + 1, 3);
	size_t n = 0;
	unsigned char c;

	for (; *s != '\0'; s++) {
		c = (unsigned char)*s;
		if (c > ' ' && c != 127 && strchr(special, c) == NULL)
			out[n++] = *s;
		else
			n += (size_t)sprintf(out + n, "%%%02X", c);
	}
	return out;
}

void
mq_password_find(const char *s, size_t *start, size_t *len)
{
	const char *p = s, *at, *colon;
	size_t n;

	*start = *len = 0;
	while ((p = strstr(p, "://")) != NULL) {
		p += 3;
		n = strcspn(p, "/");
		colon = memchr(p, ':', n);
		at = memrchr(p, '@', n);
		/* Without a port before it, the slash is the password's. */
		if (at == NULL && colon != NULL &&
		    colon[1 + strspn(colon + 1, "0123456789")] != '/')
			at = memrchr(p, '@', strcspn(p, "? \t\n"));
		if (colon == NULL || at == NULL || at < colon)
			continue;
		*start = (size_t)(colon + 1 - s);
		*len = (size_t)(at - colon - 1);
		return;
	}
}

void
mq_password_hide(char *s)
{
	size_t start, len, shown;

	mq_password_find(s, &start, &len);
	shown = len < 3 ? len : 3;
	memset(s + start, '*', shown);
	memmove(
	    s + start + shown, s + start + len, strlen(s + start + len) + 1);
}
