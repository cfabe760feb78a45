/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "base/id.h"

#include "unit.h"

#define CHECK_US 1795207725596478ULL
#define CHECK_ID "hocj1kxhkuXNSm5kAzI0756EaYE6RrfG"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* A time of more than ten digits keeps the last ten. */
TEST(make_has_the_form)
{
	static const struct {
		uint64_t us;
		const char *prefix;
	} cases[] = {
	    {CHECK_US, "hocj1kxhku"},
	    {0, "0000000000"},
	    {35, "000000000z"},
	    {36, "0000000010"},
	    {3656158440062975ULL, "zzzzzzzzzz"},
	    {3656158440062976ULL, "0000000000"},
	    {UINT64_MAX, "e11264sgsf"},
	};
	struct mq_idgen g = {0};
	char id[MQ_ID_LEN + 2];
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		memset(id, '#', sizeof(id));
		mq_id_make(&g, cases[i].us, id);
		assert_int_equal(strlen(id), MQ_ID_LEN);
		assert_int_equal(id[MQ_ID_LEN + 1], '#');
		assert_memory_equal(id, cases[i].prefix, 10);
		assert_int_equal(strspn(id + 10, alphabet), 22);
		assert_true(mq_id_valid(id, MQ_ID_LEN));
		assert_true(
		    mq_id_time(id) == cases[i].us % 3656158440062976ULL);
	}
}

static int
compare(const void *a, const void *b)
{
	return memcmp(a, b, MQ_ID_LEN + 1);
}

/* Nor do two sources have anything in common. */
TEST(make_never_repeats)
{
	enum { N = 20000 };
	struct mq_idgen g[2] = {0};
	char(*ids)[MQ_ID_LEN + 1] = calloc(N, sizeof(*ids));
	size_t i;

	assert_non_null(ids);
	for (i = 0; i < N; i++)
		mq_id_make(&g[i % 2], CHECK_US, ids[i]);
	qsort(ids, N, sizeof(*ids), compare);
	for (i = 1; i < N; i++)
		assert_string_not_equal(ids[i - 1], ids[i]);
	free(ids);
}

/*
 * 10000 of each are expected; 700 is seven standard deviations.  Taking the
 * remainder of a byte instead would give eight letters 2100 too many.
 */
TEST(random_is_uniform)
{
	enum { N = 620000 };
	struct mq_idgen g = {0};
	char *s = calloc(N + 2, 1);
	int seen[256] = {0};
	size_t i;

	assert_non_null(s);
	s[N + 1] = '#';
	mq_id_random(&g, s, N);
	assert_int_equal(strlen(s), N);
	assert_int_equal(s[N + 1], '#');
	for (i = 0; i < N; i++)
		seen[(unsigned char)s[i]]++;
	for (i = 0; i < 62; i++)
		assert_between(seen[(unsigned char)alphabet[i]], 9300, 10700);
	mq_id_random(&g, s, 0);
	assert_string_equal(s, "");
	free(s);
}

TEST(valid_and_safe_ids)
{
	static const char wrong[] = "\0 \n/.%+=@\"'\\$\x7f\x80";
	char id[MQ_ID_MAX + 1];
	size_t i;
	int c;

	assert_true(mq_id_valid(B(CHECK_ID)));
	assert_true(mq_id_valid(B("::::::::::ABCXYZabcxyz0189:azAZ0")));
	assert_false(mq_id_valid(CHECK_ID, 31));
	assert_false(mq_id_valid(B(CHECK_ID "G")));
	assert_false(mq_id_valid("", 0));
	memset(id, 'a', sizeof(id));
	for (c = 0; c < 256; c++) {
		id[31] = (char)c;
		assert_int_equal(mq_id_valid(id, 32),
		    c == ':' || (c != 0 && strchr(alphabet, c) != NULL));
	}
	assert_true(mq_id_safe(B("0192b7e4-8f3c-7a51-9d2e-3f6a1c0b5e77")));
	assert_true(mq_id_safe(B("_a:b-C9")));
	assert_true(mq_id_safe(B(":")));
	assert_false(mq_id_safe(B("")));
	assert_false(mq_id_safe(B("-n")));
	memset(id, 'x', sizeof(id));
	assert_true(mq_id_safe(id, MQ_ID_MAX));
	assert_false(mq_id_safe(id, MQ_ID_MAX + 1));
	for (i = 0; i < sizeof(wrong) - 1; i++) {
		id[7] = wrong[i];
		assert_false(mq_id_safe(id, MQ_ID_MAX));
	}
}

TEST(time_of_other_ids)
{
	static const char *const none[] = {"Hocj1kxhkuXNSm5kAzI0756EaYE6RrfG",
	    "hocj1kxhk:XNSm5kAzI0756EaYE6RrfG", "", "hocj"};
	size_t i;

	assert_true(mq_id_time(CHECK_ID) == CHECK_US);
	for (i = 0; i < COUNT(none); i++)
		assert_true(mq_id_time(none[i]) == 0);
}
