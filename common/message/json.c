/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "json.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"

/* --- rewriting for jansson ---------------------------------------------------- */

#define MARK	 "\xef\xb7\x90" /* U+FDD0, a noncharacter */
#define REPLACED "\xef\xbf\xbd" /* U+FFFD, replacement character */

static bool
is_name(const char *behind, const char *end)
{
	while (behind < end && *behind != '\0' &&
	    strchr(" \t\r\n", *behind) != NULL)
		behind++;
	return behind < end && *behind == ':';
}

/* The code of \uXXXX at p; -1: there is no such escape. */
static int
escaped_code(const char *p, const char *end)
{
	int i, c, code = 0;

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (i = 2; i < 6; i++) {
		c = p[i] | 0x20;
		if (p[i] >= '0' && p[i] <= '9')
			c = p[i] - '0';
		else if (c >= 'a' && c <= 'f')
			c -= 'a' - 10;
		else
			return -1;
		code = code << 4 | c;
	}
	return code;
}

/* Appends a character of a string as jansson accepts it; returns its length in bytes. */
static size_t
copy_char(
    struct mq_buf *out, const char *p, const char *end, bool name, bool lenient)
{
	int code = escaped_code(p, end), low;
	size_t n = code == -1 ? 2 : 6;

	if (*p != '\\') {
		n = mq_utf8_len(p, (size_t)(end - p));
		if (n == 0 && lenient)
			mq_buf_addstr(out, REPLACED);
		else
			mq_buf_add(out, p, n > 0 ? n : 1);
		if (name && n == 3 && memcmp(p, MARK, n) == 0)
			mq_buf_addstr(out, MARK);
		return n > 0 ? n : 1;
	}
	if (name && (code == 0 || code == 0xfdd0)) {
		mq_buf_addstr(out, code == 0 ? MARK "0" : MARK MARK);
		return n;
	}
	if (code >= 0xd800 && code <= 0xdfff) {
		low = code < 0xdc00 ? escaped_code(p + n, end) : -1;
		if (low >= 0xdc00 && low <= 0xdfff) {
			n += 6;
		} else if (lenient) {
			mq_buf_addstr(out, REPLACED);
			return n;
		}
	}
	if (n > (size_t)(end - p))
		n = (size_t)(end - p);
	mq_buf_add(out, p, n);
	return n;
}

/* Appends a character of a string as it was before copy_char(); returns its length in
 * bytes. */
static size_t
restore_char(struct mq_buf *out, const char *p, const char *end, bool name)
{
	size_t n = (size_t)(end - p);

	if (name && n >= 4 && memcmp(p, MARK "0", 4) == 0) {
		mq_buf_addstr(out, "\\u0000");
		return 4;
	}
	mq_buf_add(out, p, 1);
	if (!name || n < 6 || memcmp(p, MARK MARK, 6) != 0)
		return 1;
	mq_buf_add(out, p + 1, 2);
	return 6;
}

/* Appends a text whose strings are made fit for jansson, or restored. */
enum rewrite { STRICT, LENIENT, RESTORE };
static void
rewrite_text(const char *p, size_t n, enum rewrite how, struct mq_buf *out)
{
	const char *end = p + n, *behind;
	bool name;

	while (p < end) {
		behind = p + 1;
		name = false;
		if (*p == '"') {
			while (behind < end && *behind != '"')
				behind +=
				    *behind == '\\' && behind + 1 < end ? 2 : 1;
			behind += behind < end;
			name = is_name(behind, end);
		}
		mq_buf_add(out, p++, 1);
		/* The closing quote is copied like a character. */
		while (p < behind)
			p += how == RESTORE ?
			    restore_char(out, p, behind, name) :
			    copy_char(out, p, behind, name, how == LENIENT);
	}
}

/* --- values ---------------------------------------------------------------------- */

#define LOAD (JSON_ALLOW_NUL | JSON_DECODE_ANY)

/* Whether a MARK, or its escape, is in the text. */
static bool
is_marked(const char *p, const char *end)
{
	if (memmem(p, (size_t)(end - p), MARK, 3) != NULL)
		return true;
	while ((p = memchr(p, '\\', (size_t)(end - p))) != NULL)
		if (escaped_code(p++, end) == 0xfdd0)
			return true;
	return false;
}

json_t *
mq_json_load(const char *p, size_t n, bool lenient)
{
	struct mq_buf text = {0};
	json_t *v = is_marked(p, p + n) ? NULL : json_loadb(p, n, LOAD, NULL);

	/* jansson accepts nearly all texts as they are. */
	if (v != NULL)
		return v;
	rewrite_text(p, n, lenient ? LENIENT : STRICT, &text);
	v = json_loadb(mq_buf_str(&text), text.len, LOAD, NULL);
	mq_buf_free(&text);
	return v;
}

static int
dump_value(const char *p, size_t n, void *out)
{
	mq_buf_add(out, p, n);
	return 0;
}

void
mq_json_dump(const json_t *v, struct mq_buf *out)
{
	struct mq_buf text = {0};
	size_t from = out->len;

	/* Digits beyond 15 are only noise of binary fractions. */
	json_dump_callback(v, dump_value, out,
	    JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	if (memmem(out->data + from, out->len - from, MARK, 3) == NULL)
		return;
	mq_buf_add(&text, out->data + from, out->len - from);
	out->len = from;
	rewrite_text(text.data, text.len, RESTORE, out);
	mq_buf_free(&text);
}

/* --- text ------------------------------------------------------------------------- */

#define EACH(c) (UINT64_C(0x0101010101010101) * (c))

/*
 * Whether eight bytes are ASCII without escapes.  The highest bit of each result byte is set
 * if it is set in the byte, or if the byte is below a space, a quote or a backslash.  Only a
 * byte whose bit is set can borrow from the next.
 */
static bool
is_verbatim(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	v |= (v - EACH(' ')) | ((v ^ EACH('"')) - EACH(1)) |
	    ((v ^ EACH('\\')) - EACH(1));
	return (v & EACH(0x80)) == 0;
}

/* The end of the characters that a JSON string holds without an escape. */
static const char *
verbatim_end(const char *p, const char *end)
{
	size_t n;

	for (; p < end; p += n) {
		if (end - p >= 8 && is_verbatim(p))
			n = 8;
		else if ((unsigned char)*p < ' ' || *p == '"' || *p == '\\' ||
		    (n = mq_utf8_len(p, (size_t)(end - p))) == 0)
			break;
	}
	return p;
}

static void
add_escape(struct mq_buf *out, unsigned char c)
{
	static const char letters[] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu";
	static const char digits[] = "0123456789ABCDEF";
	char text[] = {'\\', c < ' ' ? letters[c] : (char)c, '0', '0',
	    digits[c >> 4 & 15], digits[c & 15]};

	mq_buf_add(out, text, text[1] == 'u' ? 6 : 2);
}

bool
mq_json_add_text(struct mq_buf *out, const char *p, size_t n)
{
	const char *stop, *end = n > 0 ? p + n : p;
	size_t from = out->len;

	mq_buf_add(out, "\"", 1);
	for (; p < end; p = stop + 1) {
		stop = verbatim_end(p, end);
		mq_buf_add(out, p, (size_t)(stop - p));
		if (stop == end)
			break;
		if (mq_utf8_len(stop, (size_t)(end - stop)) == 0) {
			out->len = from;
			return false;
		}
		add_escape(out, (unsigned char)*stop);
	}
	mq_buf_add(out, "\"", 1);
	return true;
}

void
mq_json_set(json_t *object, const char *name, json_t *value)
{
	json_object_set_new(object, name, value);
}

json_t *
mq_json_names(const struct mq_names *names)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < names->n; i++)
		json_array_append_new(list, mq_json_name(names->list[i].name));
	return list;
}

json_t *
mq_json_text(const char *s)
{
	size_t n = s != NULL ? strlen(s) : 0, i, len;
	char *text = mq_xstrdup(s);
	json_t *v;

	for (i = 0; i<n; i += len> 0 ? len : 1)
		if ((len = mq_utf8_len(text + i, n - i)) == 0)
			text[i] = '?';
	v = json_string(text);
	free(text);
	return v;
}

json_t *
mq_json_name(const char *s)
{
	char *text;
	json_t *v;

	if (s == NULL)
		return NULL;
	text = mq_show(&mq_name, s, strlen(s));
	v = json_string(text);
	free(text);
	return v;
}
