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

/* Calls fn(arg, word) for each word of the list. */
static inline void
each_word(const char *list, void (*fn)(void *arg, const char *word), void *arg)
{
	char *copy = mq_xstrdup(list), *rest = copy, *word;

	while ((word = strsep(&rest, " ")) != NULL)
		if (*word != '\0')
			fn(arg, word);
	free(copy);
}

#endif
