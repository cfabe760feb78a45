/* The names that the server lists; see redis/ask.h for errors.  For this folder
 * only. */
#ifndef MQ_RMQ_LISTED_H
#define MQ_RMQ_LISTED_H

#include "base/names.h"
#include "redis/ask.h"

/* The members of a set of names, RMQ_QUEUES or RMQ_CONNECTIONS: an array of
 * strings. */
redisReply *rmq_listed(struct mq_redis *, const char *set);
void rmq_ask_listed(struct mq_command *, const char *set);
/* Adds them, but for those with a NUL: no key can be made of them here. */
void rmq_add_names(struct mq_names *, const redisReply *all);

#endif
