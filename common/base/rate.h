/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Rates, and a bucket of tokens that keeps to one. */
#ifndef MQ_RATE_H
#define MQ_RATE_H

struct mq_rate {
	double per_s; /* 0: no limit */
	long burst;   /* tokens after a rest, at least 1 */
};

/*
 * Parses "N", "N/s", "N/m" or "N/h", N maybe with a decimal fraction, from one a day to
 * a million a second; then ":BURST" may follow, 1 to 1000000.  Without it the burst is
 * the number in 0.1 s, but at least 1.  Returns 0, or -1 when s is anything else; *rate
 * is then unchanged.
 */
int mq_rate_parse(const char *s, struct mq_rate *rate);

/* A bucket of tokens, full if zeroed.  Each now is in seconds of a steady clock. */
struct mq_bucket {
	double missing; /* tokens, at the time `at` */
	double at;
};

double mq_bucket_tokens(
    const struct mq_bucket *, const struct mq_rate *, double now);
/* Takes one token, even from an empty bucket, which then owes it. */
void mq_bucket_take(struct mq_bucket *, const struct mq_rate *, double now);
/* Seconds until the bucket has a token; 0: it has one now. */
double mq_bucket_wait(
    const struct mq_bucket *, const struct mq_rate *, double now);

#endif
