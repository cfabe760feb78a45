/* The greeting of a connection, before any other command. */
#ifndef MQ_GREETING_H
#define MQ_GREETING_H

#include <stdbool.h>

#include <hiredis/hiredis.h>

#include "command.h"
#include "server.h"

/*
 * Builds number step of AUTH and SELECT, as far as the URL of the server needs them.
 * False: there is no such step.
 */
bool mq_redis_greeting(const struct mq_server *, int step, struct mq_command *);

/*
 * Builds HELLO, which goes out with the first command; from Redis 7 on it needs no
 * right.
 */
void mq_redis_hello(struct mq_command *);

/*
 * Whether the reply to HELLO, which may be an error, says that the server is a node
 * of a cluster.  Then the connection is given up with MQ_REDIS_CLUSTER, as queues
 * there lie on several nodes.
 */
bool mq_reply_cluster(const redisReply *);
#define MQ_REDIS_CLUSTER                                                       \
	"this server is a node of a cluster; use redis-cluster://HOST:PORT"

#endif
