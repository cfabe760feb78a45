/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Durations, times and rates: what is accepted lies within its bounds, what is
 * not changes nothing, and a time that is written as RFC 3339 is read again.
 * An input is one letter for the time zone, and the text.
 */
#include <stdio.h>
#include <time.h>

#include "base/duration.h"
#include "base/rate.h"
#include "fuzz.h"

#define CENTURY_MS (36525LL * 24 * 60 * 60 * 1000)
#define NOW_MS	   1795207725123LL

static void
set_zone(uint8_t letter)
{
	static const char *const zones[] = {
	    "UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT,M3.2.0,M11.1.0"};

	setenv("TZ", zones[letter % 3], 1);
	tzset();
}

static void
duration(const char *s)
{
	int64_t ms = -1, more;
	char *text;

	if (mq_duration_parse(s, &ms) == -1) {
		assert(ms == -1);
		return;
	}
	assert(ms >= 0 && ms <= CENTURY_MS);
	text = mq_xasprintf("%jdms", (intmax_t)ms);
	assert(mq_duration_parse(text, &more) == 0 && more == ms);
	free(text);
}

static void
point(const char *s)
{
	char day[64], text[96];
	int64_t ms = -1, again = -1;
	struct tm tm;
	time_t t;

	if (mq_time_parse(s, NOW_MS, &ms) == -1) {
		assert(ms == -1);
		return;
	}
	assert(ms >= 0 && ms <= MQ_TIME_MAX);
	t = (time_t)(ms / 1000);
	assert(gmtime_r(&t, &tm) != NULL);
	assert(strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm) > 0);
	snprintf(text, sizeof(text), "%s.%03dZ", day, (int)(ms % 1000));
	assert(mq_time_parse(text, NOW_MS, &again) == 0 && again == ms);
}

static void
rate(const char *s)
{
	struct mq_rate r = {.per_s = -1};
	struct mq_bucket b = {0};
	double now = 1;

	if (mq_rate_parse(s, &r) == -1) {
		assert(r.per_s < 0);
		return;
	}
	assert(r.per_s > 0 && r.per_s <= 1e6);
	assert(r.burst >= 1 && r.burst <= 1000000);
	assert(mq_bucket_wait(&b, &r, now) <= 0);
	mq_bucket_take(&b, &r, now);
	now += mq_bucket_wait(&b, &r, now);
	assert(mq_bucket_tokens(&b, &r, now) <= (double)r.burst);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct fuzz_input in = {data, n};
	char *s;

	set_zone(fuzz_byte(&in));
	s = fuzz_string(&in, in.n);
	duration(s);
	point(s);
	rate(s);
	free(s);
	return 0;
}
