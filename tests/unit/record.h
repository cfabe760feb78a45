/*
 * What the code under test has done, as words with blanks between them, so that a
 * test compares a whole order of events at once.
 */
#ifndef TEST_RECORD_H
#define TEST_RECORD_H

#include "base/buf.h"
#include "base/xalloc.h"
#include "unit.h"

static struct mq_buf record_new, record_old;

static inline void
record_clear(void)
{
	mq_buf_free(&record_new);
	mq_buf_free(&record_old);
}

static inline void __attribute__((format(printf, 1, 2)))
record(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = mq_xvasprintf(fmt, ap);
	va_end(ap);
	mq_buf_printf(&record_new, "%s%s", record_new.len > 0 ? " " : "", text);
	free(text);
}

/* What has been recorded since the last call; valid until the next one. */
static inline const char *
recorded(void)
{
	mq_buf_free(&record_old);
	record_old = record_new;
	record_new = (struct mq_buf){0};
	return mq_buf_str(&record_old);
}

/* The next word of a list, which is shorter than 64 bytes; false: there is none. */
static inline bool
next_word(const char **list, char word[64])
{
	size_t n;

	*list += strspn(*list, " ");
	n = strcspn(*list, " ");
	assert_in_range(n, 0, 63);
	snprintf(word, n + 1, "%s", *list);
	*list += n;
	return n > 0;
}

#endif
