/*
 * Connections that have something of some queues; see holders.c.  For this folder only.
 */
#ifndef MQ_RMQ_HOLDERS_H
#define MQ_RMQ_HOLDERS_H

#include "redis/ask.h"

/*
 * Drops from a list of connections those without messages or consumers of any of these
 * queues, of which there are 1 to 50; where most have some, others may stay.
 * cluster: keys in the form for a cluster count, too.
 */
int rmq_keep_holders(struct mq_redis *, const char *const *queues, int count,
    bool cluster, redisReply *connections);

#endif
