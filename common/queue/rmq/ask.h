/*
 * What is asked about connections of rmq, as ask.h has it.  For this folder only.
 */
#ifndef MQ_RMQ_ASK_H
#define MQ_RMQ_ASK_H

#include "redis/ask.h"

/* "VERB key [member]": what names the key as in rmq-keys.h. */
int rmq_send_about_set(
    struct mq_redis *, const char *verb, const char *key, const char *member);
int rmq_send_about_connection(struct mq_redis *, const char *verb,
    const char *connection, const char *what, const char *member);

/* The names of all connections: an array of strings. */
redisReply *rmq_connections(struct mq_redis *);

#endif
