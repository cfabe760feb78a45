/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * What the code under test has done, as words with blanks between them, so that a
 * test compares a whole order of events at once.  And tests as rows: what happens, step
 * by step, and what it leads to.
 *
 *	{"acks wait for others",
 *	    {"run a1 a2 a3", "ack a2 a1 a3",
 *		"flush -> ack:a2 ack:a1 ack:a3"}},
 *
 * A step is a word and what it is about.  Behind "->" stands what is recorded
 * meanwhile; where there is none, that is nothing.  A question records its answer:
 * "settling -> 2".
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
	assert_between(n, 0, 63);
	snprintf(word, n + 1, "%s", *list);
	*list += n;
	return n > 0;
}

/* --- rows of steps ---------------------------------------------------------- */

struct row {
	const char *name;
	const char *steps[26];
};

static inline bool
is(const char *word, const char *other)
{
	return strcmp(word, other) == 0;
}

/* False: it does not know the word. */
typedef bool step_fn(void *arg, const char *word, const char *about);

/* What a word does, in a function that gets it and returns whether it knows it. */
#define WORD(text, ...)                                                        \
	do {                                                                   \
		if (is(word, text)) {                                          \
			__VA_ARGS__;                                           \
			return true;                                           \
		}                                                              \
	} while (0)

static inline void
take_step(const struct row *row, const char *step, step_fn *take, void *arg)
{
	char *text = mq_xstrdup(step), *about = text, *arrow;
	const char *word, *want = "", *got;

	if ((arrow = strstr(text, " -> ")) != NULL) {
		*arrow = '\0';
		want = arrow + strlen(" -> ");
	}
	word = strsep(&about, " ");
	if (!take(arg, word, about != NULL ? about : ""))
		fail_msg("%s: what is that?", step);
	got = recorded();
	if (strcmp(got, want) != 0)
		fail_msg("%s: \"%s\": \"%s\"", row->name, step, got);
	free(text);
}

/* Each row has its own fixture. */
static inline void
take_rows(const struct row *rows, size_t n, void *(*setup)(void),
    void (*teardown)(void *), step_fn *take)
{
	const char *const *step;
	void *state;

	for (; n > 0; rows++, n--) {
		state = setup();
		for (step = rows->steps; *step != NULL; step++)
			take_step(rows, *step, take, state);
		teardown(state);
	}
}

/* The rows that begin with this name, by setup(), take() and teardown(). */
#define TEST_ROWS(name)                                                        \
	TEST(name##_in_rows)                                                   \
	{                                                                      \
		take_rows(                                                     \
		    name##_rows, COUNT(name##_rows), setup, teardown, take);   \
	}

/* The answer to a question. */
static inline void
answers(bool yes)
{
	record(yes ? "yes" : "no");
}

#endif
