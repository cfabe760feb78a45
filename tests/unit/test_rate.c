#include "base/rate.h"

#include "unit.h"

TEST(rates)
{
	static const struct {
		const char *s;
		double per_s;
		long burst;
	} cases[] = {
	    {"1/s", 1, 1},
	    {"10", 10, 1},
	    {"30:5", 30, 5},
	    {"600/m", 10, 1},
	    {"10/s", 10, 1},
	    {"19/s", 19, 1},
	    {"20/s", 20, 2},
	    {"1000/s", 1000, 100},
	    {"0.5/s", 0.5, 1},
	    {"90/m", 1.5, 1},
	    {"3600/h", 1, 1},
	    {"5/h:20", 5.0 / 3600, 20},
	    {"10/s:1", 10, 1},
	    {"1000000/s:1000000", 1e6, 1000000},
	    {"1/h", 1.0 / 3600, 1},
	};
	static const char *const bad[] = {"", "/", "/s", "1:", "1/", ".",
	    "1.2.3", "1e3", "0", "1/x", "1s", "1/ss", "1/s:", "1/s:0", "1/s:x",
	    "1/s:-1", "1/s: 5", "1/s:+5", "1/s:5x", "1/s:1.5", "1/s:1000001",
	    "0/s", "0.00001/s", "-1/s", "+1/s", " 1/s", "1 /s", "inf/s",
	    "nan/s", "0x10/s", "1e3/s", "1000001/s", "1.2.3/s", "1/d",
	    "1/m:5:6"};
	struct mq_rate r;
	size_t i;

	for (i = 0; i < COUNT(cases); i++) {
		assert_int_equal(mq_rate_parse(cases[i].s, &r), 0);
		assert_float_equal(r.per_s / cases[i].per_s, 1, 0.000001);
		assert_int_equal(r.burst, cases[i].burst);
	}
	r = (struct mq_rate){7, 8};
	for (i = 0; i < COUNT(bad); i++)
		if (mq_rate_parse(bad[i], &r) != -1)
			fail_msg("\"%s\" is %g", bad[i], r.per_s);
	assert_true(r.per_s == 7 && r.burst == 8);
}

TEST(a_bucket)
{
	const struct mq_rate r = {2, 3};
	struct mq_bucket b = {0};
	int i;

	for (i = 0; i < 3; i++) {
		assert_true(mq_bucket_wait(&b, &r, 100) == 0);
		mq_bucket_take(&b, &r, 100);
	}
	assert_float_equal(mq_bucket_wait(&b, &r, 100), 0.5, 1e-6);
	assert_float_equal(mq_bucket_wait(&b, &r, 100.2), 0.3, 1e-6);
	assert_true(mq_bucket_wait(&b, &r, 100.5) == 0);
	mq_bucket_take(&b, &r, 100.5);
	assert_float_equal(mq_bucket_wait(&b, &r, 100.5), 0.5, 1e-6);
	/* Never fuller than full. */
	assert_float_equal(mq_bucket_tokens(&b, &r, 1e6), 3, 1e-6);
}
