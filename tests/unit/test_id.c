#include "base/id.h"

#include "unit.h"

#define CHECK_US     1795207725596478ULL
#define CHECK_PREFIX "hocj1kxhku"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

TEST(make_has_the_form)
{
	struct mq_idgen g = {0};
	char id[MQ_ID_LEN + 2];

	memset(id, '#', sizeof(id));
	mq_id_make(&g, CHECK_US, id);
	assert_int_equal(strlen(id), MQ_ID_LEN);
	assert_int_equal(id[MQ_ID_LEN + 1], '#');
	assert_memory_equal(id, CHECK_PREFIX, 10);
	assert_int_equal(strspn(id + 10, alphabet), 22);
	assert_true(mq_id_valid(id, MQ_ID_LEN));
	assert_true(mq_id_time(id) == CHECK_US);
}

/* A time of more than ten digits keeps the last ten. */
TEST(make_prefixes)
{
	static const struct {
		uint64_t us;
		const char *prefix;
	} cases[] = {
	    {0, "0000000000"},
	    {35, "000000000z"},
	    {36, "0000000010"},
	    {3656158440062975ULL, "zzzzzzzzzz"},
	    {3656158440062976ULL, "0000000000"},
	    {UINT64_MAX, "e11264sgsf"},
	};
	struct mq_idgen g = {0};
	char id[MQ_ID_LEN + 1];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mq_id_make(&g, cases[i].us, id);
		assert_memory_equal(id, cases[i].prefix, 10);
		assert_true(
		    mq_id_time(id) == cases[i].us % 3656158440062976ULL);
	}
}

TEST(make_sorts_by_time)
{
	struct mq_idgen g = {0};
	char a[MQ_ID_LEN + 1], b[MQ_ID_LEN + 1];
	uint64_t us;

	mq_id_make(&g, CHECK_US, a);
	for (us = CHECK_US + 1; us < CHECK_US + 3000; us++) {
		mq_id_make(&g, us, b);
		assert_true(strcmp(a, b) < 0);
		memcpy(a, b, sizeof(a));
	}
}

static int
compare(const void *a, const void *b)
{
	return memcmp(a, b, MQ_ID_LEN + 1);
}

TEST(make_never_repeats)
{
	enum { COUNT = 20000 };
	struct mq_idgen g = {0};
	char(*ids)[MQ_ID_LEN + 1] = calloc(COUNT, sizeof(*ids));
	size_t i;

	assert_non_null(ids);
	for (i = 0; i < COUNT; i++)
		mq_id_make(&g, CHECK_US, ids[i]);
	qsort(ids, COUNT, sizeof(*ids), compare);
	for (i = 1; i < COUNT; i++)
		assert_string_not_equal(ids[i - 1], ids[i]);
	free(ids);
}

/* Two sources have nothing in common. */
TEST(sources_differ)
{
	struct mq_idgen g = {0}, h = {0};
	char a[MQ_ID_LEN + 1], b[MQ_ID_LEN + 1];

	mq_id_make(&g, CHECK_US, a);
	mq_id_make(&h, CHECK_US, b);
	assert_string_not_equal(a, b);
}

/*
 * 10000 of each are expected; 700 is seven standard deviations.  Taking the
 * remainder of a byte instead would give eight letters 2100 too many.
 */
TEST(random_is_uniform)
{
	enum { COUNT = 620000 };
	struct mq_idgen g = {0};
	char *s = malloc(COUNT + 1);
	int seen[256] = {0};
	size_t i;

	assert_non_null(s);
	mq_id_random(&g, s, COUNT);
	assert_int_equal(strlen(s), COUNT);
	for (i = 0; i < COUNT; i++)
		seen[(unsigned char)s[i]]++;
	for (i = 0; i < 62; i++)
		assert_in_range(seen[(unsigned char)alphabet[i]], 9300, 10700);
	free(s);
}

TEST(random_writes_n)
{
	struct mq_idgen g = {0};
	char s[8] = "#######";

	mq_id_random(&g, s, 0);
	assert_string_equal(s, "");
	mq_id_random(&g, s, 4);
	assert_int_equal(strlen(s), 4);
	assert_string_equal(s + 5, "##");
}

TEST(valid_ids)
{
	char bad[MQ_ID_LEN + 1];
	int c;

	assert_true(mq_id_valid("hocj1kxhkuXNSm5kAzI0756EaYE6RrfG", 32));
	assert_true(mq_id_valid("::::::::::ABCXYZabcxyz0189:azAZ0", 32));
	assert_false(mq_id_valid("hocj1kxhkuXNSm5kAzI0756EaYE6Rrf", 31));
	assert_false(mq_id_valid("hocj1kxhkuXNSm5kAzI0756EaYE6RrfGG", 33));
	assert_false(mq_id_valid("", 0));
	for (c = 0; c < 256; c++) {
		memset(bad, 'a', sizeof(bad));
		bad[31] = (char)c;
		assert_int_equal(mq_id_valid(bad, 32),
		    c == ':' || (c != 0 && strchr(alphabet, c) != NULL));
	}
}

TEST(safe_ids)
{
	static const char wrong[] = "\0 \n/.%+=@\"'\\$\x7f\x80";
	char id[MQ_ID_MAX + 1];
	size_t i;

	assert_true(mq_id_safe("0192b7e4-8f3c-7a51-9d2e-3f6a1c0b5e77", 36));
	assert_true(mq_id_safe("_a:b-C9", 7));
	assert_true(mq_id_safe(":", 1));
	assert_false(mq_id_safe("", 0));
	assert_false(mq_id_safe("-n", 2));
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
	assert_true(mq_id_time("hocj1kxhkuXNSm5kAzI0756EaYE6RrfG") == CHECK_US);
	assert_true(mq_id_time("Hocj1kxhkuXNSm5kAzI0756EaYE6RrfG") == 0);
	assert_true(mq_id_time("hocj1kxhk:XNSm5kAzI0756EaYE6RrfG") == 0);
	assert_true(mq_id_time("") == 0);
	assert_true(mq_id_time("hocj") == 0);
}
