/*
 * The server's policy for full memory, asked over a connection that never
 * waits.  (Tools that wait ask with info.h.)
 */
#ifndef MQ_POLICY_H
#define MQ_POLICY_H

#include "answer.h"
#include "async.h"
#include "info.h"

typedef void mq_policy_fn(
    void *arg, const struct mq_answer *, const struct mq_info *);

/* Only what INFO memory says is set. */
void mq_policy_ask(struct mq_async *, mq_policy_fn *, void *arg);

#endif
