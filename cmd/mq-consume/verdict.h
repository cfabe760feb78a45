/*
 * What follows for a message from a verdict on its run, or from there being
 * none: how it is settled, with which header, what is said of it, and what
 * those who wait for its end are told.
 */
#ifndef MQ_CONSUME_VERDICT_H
#define MQ_CONSUME_VERDICT_H

#include "inbox/unpack.h"
#include "message/verdict.h"
#include "options.h"
#include "outbox/result.h"

struct verdict_rules {
	const struct options *opt;
	const struct result_rules *results;
	const char *host;
	bool ticks; /* the layout has them */
};

/* All return the outcome, and set what else is to be settled.  errors is the end
 * of what the run has written; tick is the last that its queue had. */
enum mq_outcome verdict_outcome(const struct verdict_rules *, struct message *,
    const struct mq_verdict *, const char *errors, int64_t tick);
/* No run can have it. */
enum mq_outcome verdict_reject(
    const struct verdict_rules *, struct message *, const char *reason);
/* It is too long for the queue that it was to be pushed to. */
enum mq_outcome verdict_too_long(
    const struct verdict_rules *, struct message *);
/* It may not start. */
enum mq_outcome verdict_unfit(
    const struct verdict_rules *, struct message *, const struct unfit *);

#endif
