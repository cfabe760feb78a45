#include "base64.h"

#include <stdint.h>
#include <string.h>

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

/* Four digits, the last pad of them '=', to three bytes. */
static int
decode_group(const char *s, size_t pad, char *o)
{
	const char *digit;
	uint32_t bits = 0;
	size_t i;

	for (i = 0; i < 4; i++) {
		digit = i < 4 - pad ? memchr(digits, s[i], 64) : digits;
		if (digit == NULL)
			return -1;
		bits = bits << 6 | (uint32_t)(digit - digits);
	}
	o[0] = (char)(bits >> 16);
	o[1] = (char)(bits >> 8);
	o[2] = (char)bits;
	/* An encoder leaves the bits behind the last byte zero. */
	return (bits & ((1u << 8 * pad) - 1)) == 0 ? 0 : -1;
}

int
mq_base64_decode(struct mq_buf *out, const char *s, size_t n)
{
	size_t i, pad = 0;
	char *o;

	if (n % 4 != 0)
		return -1;
	if (n > 0 && s[n - 1] == '=')
		pad = s[n - 2] == '=' ? 2 : 1;
	o = mq_buf_reserve(out, n / 4 * 3 + 1);
	for (i = 0; i < n; i += 4, o += 3)
		if (decode_group(s + i, i + 4 == n ? pad : 0, o) == -1)
			return -1;
	out->len += n / 4 * 3 - pad;
	return 0;
}
