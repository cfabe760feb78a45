/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exit.h"
#include "say.h"
#include "xalloc.h"

char *
mq_buf_reserve(struct mq_buf *b, size_t n)
{
	size_t cap;

	if (n > b->cap - b->len) {
		if (n > SIZE_MAX / 2 - b->len)
			mq_die(MQ_EXIT_AGAIN, "out of memory");
		cap = b->cap < 64 ? 64 : b->cap;
		while (cap - b->len < n)
			cap += cap / 2;
		b->data = mq_xreallocarray(b->data, cap, 1);
		b->cap = cap;
	}
	return b->data + b->len;
}

void
mq_buf_add(struct mq_buf *b, const void *p, size_t n)
{
	if (n == 0)
		return;
	memcpy(mq_buf_reserve(b, n), p, n);
	b->len += n;
}

void
mq_buf_set(struct mq_buf *b, const void *p, size_t n)
{
	b->len = 0;
	mq_buf_add(b, p, n);
}

void
mq_buf_addstr(struct mq_buf *b, const char *s)
{
	mq_buf_add(b, s, strlen(s));
}

void
mq_buf_printf(struct mq_buf *b, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = mq_xvasprintf(fmt, ap);
	va_end(ap);
	mq_buf_addstr(b, s);
	free(s);
}

void
mq_buf_visible(struct mq_buf *out, const char *p, size_t n)
{
	char *text = mq_show(&mq_lines, p, n);

	mq_buf_addstr(out, text);
	free(text);
}

void
mq_buf_add_word(struct mq_buf *line, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=:,./@%^";
	const char *quote;

	if (line->len > 0)
		mq_buf_add(line, " ", 1);
	if (*word != '\0' && word[strspn(word, plain)] == '\0') {
		mq_buf_addstr(line, word);
		return;
	}
	mq_buf_addstr(line, "'");
	for (; (quote = strchr(word, '\'')) != NULL; word = quote + 1) {
		mq_buf_add(line, word, (size_t)(quote - word));
		mq_buf_addstr(line, "'\\''");
	}
	mq_buf_addstr(line, word);
	mq_buf_addstr(line, "'");
}

char *
mq_buf_str(struct mq_buf *b)
{
	*mq_buf_reserve(b, 1) = '\0';
	return b->data;
}

void
mq_buf_drop(struct mq_buf *b, size_t n)
{
	b->len -= n;
	if (b->len > 0)
		memmove(b->data, b->data + n, b->len);
}

void
mq_buf_clear(struct mq_buf *b)
{
	b->len = 0;
}

void
mq_buf_free(struct mq_buf *b)
{
	free(b->data);
	*b = (struct mq_buf){0};
}
