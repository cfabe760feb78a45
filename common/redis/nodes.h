/*
 * The nodes of a Redis Cluster behind one struct mq_redis, whose commands go to the
 * node that has the slot of their first key; one without a key goes to the node of
 * mq_redis.home, which is that of the URL's namespace if that has a {tag}.  Replies come in the order of the commands.
 *
 * Where a slot has moved, or is moving, the node refuses the command, and it goes to
 * the other one, or once more, for a minute at most; the caller does not hear of it.
 * Only in the middle of a transaction the connection is lost then.
 */
#ifndef MQ_NODES_H
#define MQ_NODES_H

#include "connection.h"

/* As mq_redis_open_until(), for the server of a cluster: asks the hosts of its URL, side
 * by side, for the nodes.  Nodes are connected to as they are needed. */
int mq_nodes_open(struct mq_redis *, struct mq_server *, double until);

/* Whether the node that has the slot of this command has a replica. */
bool mq_nodes_replicated(const struct mq_redis *, const struct mq_command *);

#endif
