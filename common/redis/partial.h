/*
 * Readers of a cluster go on without the nodes that are lost: all their commands are
 * optional, and mq_ask_all() passes over the errors of ours that reply.h tells of.  On
 * one server none of this has an effect.
 */
#ifndef MQ_PARTIAL_H
#define MQ_PARTIAL_H

#include "connection.h"

/* From now on, and until the connection is closed. */
void mq_partial_begin(struct mq_redis *);

/* "node HOST:PORT: why" if some command about the keys of this one, or about others in
 * their slot, had no answer; else NULL.  Valid until the connection is closed. */
const char *mq_partial_missed(
    const struct mq_redis *, const struct mq_command *);

/* "node HOST:PORT: why" of the i-th node that a reader has lost, from 0; NULL: there are
 * no more.  Valid until the connection is closed. */
const char *mq_partial_lost(const struct mq_redis *, int i);

/* "HOST:PORT" of the node that has the keys of a command; on one server, NULL.  Valid as
 * long as out. */
#define MQ_NODE_NAME_SIZE 272
const char *mq_partial_node(const struct mq_redis *, const struct mq_command *,
    char out[MQ_NODE_NAME_SIZE]);

#endif
