/* Rates, and a bucket of tokens that keeps to one. */
#ifndef MQ_RATE_H
#define MQ_RATE_H

struct mq_rate {
	double per_s; /* 0: no limit */
	long burst;   /* how many at once after a rest, at least 1 */
};

/*
 * "N" or "N/s", "N/m" or "N/h", N maybe with a decimal fraction, from one in a
 * day to a million a second; then ":BURST" may follow, 1 to 1000000.  Without it the
 * burst is what a tenth of a second allows, but at least 1.  Returns 0, or -1
 * when s is anything else; *rate is then unchanged.
 */
int mq_rate_parse(const char *s, struct mq_rate *rate);

/* A zeroed bucket is full.  now is in seconds of a clock that never goes back. */
struct mq_bucket {
	double missing; /* tokens, at the time `at` */
	double at;
};

/* How many tokens there are. */
double mq_bucket_tokens(
    const struct mq_bucket *, const struct mq_rate *, double now);
/* Takes one token, even if none is there. */
void mq_bucket_take(struct mq_bucket *, const struct mq_rate *, double now);
/* Seconds until there is a token; 0: there is one now. */
double mq_bucket_wait(
    const struct mq_bucket *, const struct mq_rate *, double now);

#endif
