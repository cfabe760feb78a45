/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "rate.h"

#include <stdlib.h>
#include <string.h>

#define PER_S_MIN (1.0 / 86400)
#define PER_S_MAX 1e6
#define BURST_MAX 1000000
#define BURST_S	  0.1
/* The rounding error of a sum of many small numbers. */
#define ROUNDING 1e-9

int
mq_rate_parse(const char *s, struct mq_rate *rate)
{
	const char *fault = NULL;
	struct mq_rate r;
	double unit_s;
	char *end;

	/* strtod(3) alone takes blanks, signs, "inf" and hexadecimal. */
	r.per_s = strtod(s, &end);
	if (end == s || end != s + strspn(s, "0123456789."))
		return -1;
	if (*end == '/') {
		unit_s = end[1] == 's' ? 1 :
		    end[1] == 'm'      ? 60 :
		    end[1] == 'h'      ? 3600 :
					 0;
		if (unit_s == 0)
			return -1;
		r.per_s /= unit_s;
		end += 2;
	}
	if (r.per_s < PER_S_MIN || r.per_s > PER_S_MAX)
		return -1;
	r.burst = (long)(r.per_s * BURST_S);
	if (r.burst < 1)
		r.burst = 1;
	if (*end == ':' && end[1] >= '0' && end[1] <= '9')
		r.burst = (long)strtonum(end + 1, 1, BURST_MAX, &fault);
	else if (*end != '\0')
		return -1;
	if (fault != NULL)
		return -1;
	*rate = r;
	return 0;
}

static double
missing_tokens(
    const struct mq_bucket *b, const struct mq_rate *rate, double now)
{
	double left = b->missing - (now - b->at) * rate->per_s;

	return left > ROUNDING ? left : 0;
}

double
mq_bucket_tokens(
    const struct mq_bucket *b, const struct mq_rate *rate, double now)
{
	return (double)rate->burst - missing_tokens(b, rate, now);
}

void
mq_bucket_take(struct mq_bucket *b, const struct mq_rate *rate, double now)
{
	b->missing = missing_tokens(b, rate, now) + 1;
	b->at = now;
}

double
mq_bucket_wait(
    const struct mq_bucket *b, const struct mq_rate *rate, double now)
{
	double tokens = mq_bucket_tokens(b, rate, now);

	return tokens >= 1 ? 0 : (1 - tokens) / rate->per_s;
}
