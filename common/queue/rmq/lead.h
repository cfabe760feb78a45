/*
 * Large messages that become ready again, without a script that has their payload;
 * for this folder only.
 */
#ifndef MQ_RMQ_LEAD_H
#define MQ_RMQ_LEAD_H

#include "layout.h"

/*
 * Moves the next rejected message of a queue to the ready ones of another, or the
 * same; or, with now_ms (unix) above 0, the delayed one that has been due longest.
 * *done is false if that message is not large, asks for more than a place, or
 * must not be moved in this way.  Returns 0, or -1 when the connection is lost.
 */
int rmq_lead_large(struct mq_redis *, const char *queue, const char *to,
    int64_t now_ms, bool *done);

#endif
