/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Durations, times, and rates: common/base/duration.c and rate.c. */
#include "base/duration.h"

#include "base/rate.h"
#include "unit.h"

#include <time.h>

#define CENTRAL_EUROPE "CET-1CEST,M3.5.0,M10.5.0/3"
#define UNTOUCHED      -12345

/* Saturday 2026-11-21, 08:00:00 UTC */
#define NOW 1795248000000LL

struct parsed {
	const char *s;
	int64_t ms;
};

static void
set_zone(const char *tz)
{
	assert_int_equal(setenv("TZ", tz, 1), 0);
	tzset();
}

static void
expect(const char *s, int rc, int64_t got, int64_t want)
{
	if (got != want || (rc == 0) != (want != UNTOUCHED))
		fail_msg("\"%s\": %d, %lld, not %lld", s, rc, (long long)got,
		    (long long)want);
}

static void
check_duration(const char *s, int64_t ms)
{
	int64_t v = UNTOUCHED;
	int rc = mq_duration_parse(s, &v);

	expect(s, rc, v, ms);
}

static void
check_time(const char *s, int64_t now, int64_t ms)
{
	int64_t v = UNTOUCHED;
	int rc = mq_time_parse(s, now, &v);

	expect(s, rc, v, ms);
}

TEST(durations)
{
	static const struct {
		int64_t ms;
		const char *in[5];
	} cases[] = {
	    {0, {"0", "0ms", "0.00000000000000000000000000000000001"}},
	    {500, {"500ms", "0.5s", "0.5"}},
	    {7000, {"007s"}},
	    {10000, {"10", "10s"}},
	    {300000, {"5m"}},
	    {5400000, {"1h30m", "1.5h"}},
	    {5430000, {"1.5h30s"}},
	    {21600000, {"0.25d"}},
	    {86400000, {"1d"}},
	    {604800000, {"1w"}},
	    {788645006, {"1w2d3h4m5s6ms"}},
	    /* what binary fractions get wrong */
	    {290, {"0.29s"}},
	    {1001, {"1.001s"}},
	    {4350, {"4.35s"}},
	    {95040000, {"1.1d"}},
	    /* what is less than a millisecond is dropped, and nothing more */
	    {0, {"0.0000000115740740740740740740740740d"}},
	    {1,
		{"0.001", "0.0019", "1.9ms",
		    "0.0000000115740740740740740740740741d"}},
	    {999, {"0.9999999999999999999999999s"}},
	    /* 100 years */
	    {3155760000000, {"36525d", "3155760000", "3155760000000ms"}},
	};
	static const char *const none[] = {"", " ", "s", "ms", ".", ".5", ".5s",
	    "5.", "5.s", "1..5", "1.5.5", "-1", "-0", "+1", "+1s", "- 1", " 1",
	    "1 ", "1 s", "1s ", "\t1", "1\n", "1S", "1M", "1y", "1us", "1sec",
	    "1mss", "1h30", "30m1h", "1h1h", "1h 30m", "1h-1m", "36525d1ms",
	    "1m1", "0x10", "1e3", "1,5", "1_0", "inf", "nan", "\xd9\xa1",
	    "36526d", "36525.1d", "3155760000.001", "3155760000001ms",
	    "99999999999999999999", "18446744073709551616",
	    "9223372036854775807d",
	    "100000000000000000000000000000000000000000ms"};
	const char *const *in;
	size_t i;

	for (i = 0; i < COUNT(cases); i++)
		for (in = cases[i].in; *in != NULL; in++)
			check_duration(*in, cases[i].ms);
	for (i = 0; i < COUNT(none); i++)
		check_duration(none[i], UNTOUCHED);
}

TEST(epoch_times)
{
	static const struct parsed cases[] = {
	    {"@0", 0},
	    {"@2026", 2026000},
	    {"123456789", 123456789000},
	    {"1795207725", 1795207725000},
	    {"@1795207725", 1795207725000},
	    {"1795207725.5", 1795207725500},
	    {"@1795207725.1239", 1795207725123},
	    {"253402300799.999", 253402300799999},
	};
	size_t i;

	for (i = 0; i < COUNT(cases); i++)
		check_time(cases[i].s, NOW, cases[i].ms);
}

/* The zone of the process must not matter when the text names one. */
TEST(rfc3339_times)
{
	static const struct parsed cases[] = {
	    {"2026-11-21T08:00:00Z", NOW},
	    {"2026-11-21t08:00:00z", NOW},
	    {"2026-11-21 08:00:00+00:00", NOW},
	    {"2026-11-21T08:00Z", NOW},
	    {"2026-11-21T08:00:00-00:00", NOW},
	    {"2026-11-21T10:00:00+02:00", NOW},
	    {"2026-11-21T02:30:00-05:30", NOW},
	    {"2026-11-22T07:59:00+23:59", NOW},
	    {"2026-11-21T08:00:00.5Z", NOW + 500},
	    {"2026-11-21T08:00:00.1239999999999Z", NOW + 123},
	    {"2026-11-21T10:00:00.001+02:00", NOW + 1},
	    {"1970-01-01T00:00:00Z", 0},
	    {"2024-02-29T00:00:00Z", 1709164800000},
	    {"2000-02-29T00:00:00Z", 951782400000},
	    {"9999-12-31T23:59:59.999Z", 253402300799999},
	};
	static const char *const zones[] = {"UTC0", CENTRAL_EUROPE, "X12"};
	size_t i, z;

	for (z = 0; z < 3; z++) {
		set_zone(zones[z]);
		for (i = 0; i < COUNT(cases); i++)
			check_time(cases[i].s, NOW, cases[i].ms);
	}
}

TEST(no_times)
{
	static const char *const cases[] = {"", " ", "now", "tomorrow",
	    "2026-11", "2026-11-", "2026-11-2", "2026-1-21", "26-11-21",
	    "02026-11-21", "2026/11/21", "20261121T080000Z", "2026-11-21T",
	    "2026-11-21 ", "2026-11-21Z", "2026-11-21T08",
	    "2026-11-21T08:", "2026-11-21T8:00",
	    "2026-11-21T08:00:", "2026-11-21T08:00:0", "2026-11-21T08:00:00.",
	    "2026-11-21T08:00:00.Z", "2026-11-21T08:00:00,5Z",
	    "2026-11-21T08:00:00 Z", "2026-11-21T08:00:00ZZ",
	    "2026-11-21T08:00:00Z ", " 2026-11-21T08:00:00Z",
	    "2026-11-21T08:00:00+02", "2026-11-21T08:00:00+0200",
	    "2026-11-21T08:00:00+02:0", "2026-11-21T08:00:00+24:00",
	    "2026-11-21T08:00:00+02:60", "2026-11-21T08:00:00+02:00Z",
	    "2026-11-21T08:00:00UTC", "2026-11-21  08:00", "2026-11-21_08:00",
	    "2026-11-21T-8:00", "2026-00-10", "2026-13-01", "2026-11-00",
	    "2026-11-31", "2026-02-29", "2026-02-30", "2100-02-29T00:00:00Z",
	    "2026-02-30T00:00:00Z", "2026-11-21T24:00:00Z",
	    "2026-11-21T25:00:00Z", "2026-11-21T08:60:00Z",
	    "2026-11-21T08:00:60Z", "2016-12-31T23:59:60Z",
	    "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.5Z",
	    "1970-01-01T00:00:00+00:01", "0000-01-01",
	    "9999-12-31T23:59:59-00:01", "10000-01-01", "24:00", "08:60",
	    "08:00:60", "8:0", "08:0", "08:", "08:00:", "08:00:0", "08:00:00.5",
	    "08:00Z", " 08:00", "08:00 ", "-8:00", "08-00", "008:00", ":00",
	    "0am", "13pm", "8 a", "8a.m.", "8:0pm", "8pmx", "am", "008pm", "0",
	    "12345678", "20361224", "12345678.5", "253402300800",
	    "99999999999999999999999", "@", "@@1", "@-1", "@2026-11-21",
	    "@08:00", "1.", "@.5", "-1", "+1", " 1", "1 ", "1s",
	    "8:", "\xd9\xa0\xd9\xa8:00"};
	size_t i;

	set_zone("UTC0");
	for (i = 0; i < COUNT(cases); i++)
		check_time(cases[i], NOW, UNTOUCHED);
}

TEST(local_times)
{
	set_zone(CENTRAL_EUROPE);
	check_time("2026-11-21", NOW, NOW - 9 * 3600000LL);
	check_time("2026-11-21 09:00", NOW, NOW);
	check_time("2026-11-21T09:00", NOW, NOW);
	check_time("2026-11-21T09:00:05", NOW, NOW + 5000);
	check_time("2026-11-21 09:00:05.25", NOW, NOW + 5250);
	check_time("2026-07-01 10:00", NOW, 1782892800000);
	/* the hour that summer time skips */
	check_time("2026-03-29 01:59:59", NOW, 1774745999000);
	check_time("2026-03-29 02:30", NOW, UNTOUCHED);
	check_time("2026-03-29 03:00", NOW, 1774746000000);
	/* 1970 in local time is 1969 in UTC */
	check_time("1970-01-01", NOW, UNTOUCHED);
	check_time("1970-01-01 01:00", NOW, 0);
}

TEST(next_clock_time)
{
	const int64_t day = 86400000;

	set_zone("UTC0");
	check_time("08:01", NOW, NOW + 60000);
	check_time("08:00:01", NOW, NOW + 1000);
	check_time("08:00", NOW, NOW + day);
	check_time("08:00", NOW - 1, NOW);
	check_time("08:00", NOW + 999, NOW + day);
	check_time("07:59", NOW, NOW + day - 60000);
	check_time("00:00", NOW, NOW + day * 2 / 3);
	check_time("23:59:59", NOW, NOW + day * 2 / 3 - 1000);
	check_time("8:01", NOW, NOW + 60000);
	check_time("8:01am", NOW, NOW + 60000);
	check_time("8am", NOW, NOW + day);
	check_time("8 PM", NOW, NOW + day / 2);
	check_time("8:00:01 pm", NOW, NOW + day / 2 + 1000);
	check_time("12am", NOW, NOW + day * 2 / 3);
	check_time("12:30pm", NOW, NOW + 4 * day / 24 + day / 48);
	set_zone(CENTRAL_EUROPE);
	check_time("09:00", NOW, NOW + day);
	check_time("08:59", NOW, NOW + day - 60000);
	/* over the end of a month and a year: 2026-12-31 23:00 */
	check_time("00:30", 1798754400000, 1798754400000 + 5400000);
}

/* In Central Europe, 2026-03-29 has no 02:30 and 2026-10-25 has two. */
TEST(next_clock_time_when_clocks_change)
{
	const int64_t spring = 1774746000000, autumn = 1792890000000;
	const int64_t hour = 3600000, half = hour / 2;

	set_zone(CENTRAL_EUROPE);
	/* 00:30 of the day without: 02:30 is the next day's, in 25 hours */
	check_time("02:30", spring - hour - half, spring + 23 * hour + half);
	check_time("02:30", spring - 14 * hour, spring + 23 * hour + half);
	check_time("03:00", spring - half, spring);
	/* a day of 23 hours */
	check_time("12:00", spring - 13 * hour, spring + 9 * hour);
	/* before both, between both, after both */
	check_time("02:30", autumn - hour, autumn - half);
	check_time("02:30", autumn - half, autumn + half);
	check_time("02:30", autumn, autumn + half);
	check_time("02:30", autumn + half, autumn + 24 * hour + half);
}

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
