/*
 * Tests as rows: what happens, step by step, and what it leads to.
 *
 *	{"acks wait for others",
 *	    {"run a1 a2 a3", "ack a2 a1 a3",
 *		"flush -> ack:a2 ack:a1 ack:a3"}},
 *
 * A step is a word and what it is about.  Behind "->" stands what is recorded
 * meanwhile; where there is none, that is nothing.  A question records its answer:
 * "settling -> 2".
 */
#ifndef TEST_STEPS_H
#define TEST_STEPS_H

#include "record.h"

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
