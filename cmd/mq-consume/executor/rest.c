/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "parts.h"

/* Each failure in a row makes the rest longer by this factor. */
#define LONGER 1.5
/* Seconds that slots of a broken command rest without --rest; as long as between two stream
 * workers. */
#define REST_MIN 0.1
#define REST_MAX 30.0

bool
broken_runs_add(struct broken_runs *r, const char *id, bool broken)
{
	int i;

	if (!broken)
		r->count = 0;
	if (!broken || broken_runs_are_many(r))
		return false;
	for (i = 0; i < r->count; i++)
		if (strcmp(r->ids[i], id) == 0)
			return false;
	strlcpy(r->ids[r->count++], id, sizeof(r->ids[0]));
	return broken_runs_are_many(r);
}

bool
broken_runs_are_many(const struct broken_runs *r)
{
	return r->count == BROKEN_RUNS;
}

/* The rest is between half of the top and all of it, at random, and within MIN..MAX. */
double
rest_s(const struct options *opt, int failures)
{
	bool given = opt->rest_max_ms > 0;
	double min = given ? (double)opt->rest_min_ms / 1000 : REST_MIN;
	double max = given ? (double)opt->rest_max_ms / 1000 : REST_MAX;
	double top = min, low;

	for (; failures > 0 && top < max; failures--)
		top *= LONGER;
	top = MIN(top, max);
	low = MAX(top / 2, min);
	return low +
	    (top - low) * ((double)arc4random() / ((double)UINT32_MAX + 1));
}
