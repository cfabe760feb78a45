/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * What all unit tests share.  A test runs because it is there:
 *
 *	TEST(is_empty_at_first)
 *	{
 *	}
 *
 * Where tests have a fixture, the file has setup(), which returns it, and teardown():
 *
 *	TEST_OF(is_empty_at_first, struct house *h)
 */
#ifndef TEST_UNIT_H
#define TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A stand-in for a function needs few of its parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static inline bool
is_between(intmax_t n, intmax_t low, intmax_t high)
{
	return n >= low && n <= high;
}

/* Versions of cmocka differ in how they name theirs. */
#define assert_between(n, low, high) assert_true(is_between(n, low, high))

/* Text and length of a literal, which may hold NUL. */
#define B(s) (s), sizeof(s) - 1

struct bytes {
	const char *p;
	size_t n;
};

static struct CMUnitTest unit_tests[64];
static size_t unit_count;

static inline void
unit_add(struct CMUnitTest test)
{
	if (unit_count == COUNT(unit_tests))
		abort();
	unit_tests[unit_count++] = test;
}

#define TEST(fn)                                                               \
	static void fn(void **state);                                          \
	__attribute__((constructor)) static void add_##fn(void)                \
	{                                                                      \
		unit_add((struct CMUnitTest){#fn, fn, NULL, NULL, NULL});      \
	}                                                                      \
	static void fn(void **state)

#define TEST_OF(fn, fixture)                                                   \
	static void with_##fn(fixture);                                        \
	TEST(fn)                                                               \
	{                                                                      \
		void *own = setup();                                           \
                                                                               \
		with_##fn(own);                                                \
		teardown(own);                                                 \
	}                                                                      \
	static void with_##fn(fixture)

int
main(void)
{
	return _cmocka_run_group_tests(
	    "tests", unit_tests, unit_count, NULL, NULL);
}

#endif
