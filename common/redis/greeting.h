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
 * Whether the server at the other end cannot be used, as the reply to HELLO says, which
 * may be an error: NULL, or the reason, with which the connection is given up.  On
 * the nodes of a cluster, unless a node is wanted, queues lie on several nodes.  Where
 * sentinels say which server is the master, what they said may be old.
 */
const char *mq_reply_unfit(
    const redisReply *, const struct mq_server *, bool node);
#define MQ_REDIS_CLUSTER "this server is a node of a cluster; use redis"
#define MQ_REDIS_REPLICA "this server is a replica"

/* Whether a reply says that the server of a sentinel's URL is not the master any
 * more; it has written nothing. */
bool mq_reply_demoted(const redisReply *, const struct mq_server *);

#endif
