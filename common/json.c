#include "json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exit.h"
#include "say.h"
#include "xalloc.h"

void
mq_json_must(bool ok)
{
	if (!ok)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
}

json_t *
mq_json_load(const char *p, size_t n)
{
	json_error_t error;
	json_t *v;

	v = json_loadb(p, n, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
	/* jansson has a text for each mistake, but not for each malloc. */
	if (v == NULL)
		mq_json_must(error.text[0] != '\0' &&
		    json_error_code(&error) != json_error_out_of_memory);
	return v;
}

static int
dump(const char *p, size_t n, void *out)
{
	mq_buf_add(out, p, n);
	return 0;
}

void
mq_json_dump(const json_t *v, struct mq_buf *out)
{
	mq_json_must(json_dump_callback(
			 v, dump, out, JSON_COMPACT | JSON_ENCODE_ANY) == 0);
}

json_t *
mq_json_text(const char *s)
{
	size_t i, len, n = strlen(s);
	json_t *v = json_string(s);
	char *copy;

	if (v != NULL)
		return v;
	copy = mq_xstrdup(s);
	for (i = 0; i < n; i += len) {
		len = mq_utf8_len(copy + i, n - i);
		if (len == 0) {
			copy[i] = '?';
			len = 1;
		}
	}
	v = json_string(copy);
	free(copy);
	mq_json_must(v != NULL);
	return v;
}

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
