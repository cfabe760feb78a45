/*
 * From the verdict on a run to the settlement of its message: outcome, header,
 * delay, news and result.
 */
#ifndef MQ_CONSUME_VERDICT_H
#define MQ_CONSUME_VERDICT_H

#include "mq-consume/outbox/outbox.h"

/* All return the outcome, and set the settlement in the message.  errors: the end
 * of the stderr of the run; broken: the command cannot run, so its tries count no
 * attempt. */
enum mq_outcome verdict_outcome(const struct outbox *, struct message *,
    const struct mq_verdict *, const char *errors, bool broken);
enum mq_outcome verdict_unfit(
    struct outbox *, struct message *, enum unfit, const char *why);

#endif
