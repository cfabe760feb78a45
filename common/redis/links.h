/*
 * The connections of a consumer: to one server, or to those nodes of a Redis Cluster
 * that it needs, behind one struct mq_async, as nodes.h has them behind one struct
 * mq_redis.
 *
 * On a cluster each command goes to the node that has the slot of its first key, one
 * without a key to any.  Where a slot has moved, or is moving, the command goes to the
 * other node, or once more; the asker does not hear of it.  Commands of one slot that
 * wait keep their order.  When a node is lost, so is the connection; but for a node that
 * was asked for nothing but optional commands, which get an error of ours then, or after
 * 4 seconds (see reply.h).  A node that was not ready for two seconds before is away: all
 * its commands get that error.  The connection is lost when that node answers again, or
 * another one has its slots.
 */
#ifndef MQ_LINKS_H
#define MQ_LINKS_H

#include "pair.h"

struct mq_cluster;

/* To be made by mq_links_init(). */
struct mq_links {
	struct mq_pair only;	    /* of one server */
	struct mq_cluster *cluster; /* or NULL */
};

/* As mq_pair_init(); the server, which the URL of decides what this is, outlives it. */
void mq_links_init(struct mq_links *, struct ev_loop *,
    const struct mq_server *, const char *channel, const char *name,
    const struct mq_pair_events *, void *arg);
/* Where commands go. */
struct mq_async *mq_links_async(struct mq_links *);

/* As mq_async_open(); of a cluster, the address and port of the server are those of any
 * node. */
int mq_links_open(struct mq_links *, const char **why);
void mq_links_close(struct mq_links *);
void mq_links_free(struct mq_links *);

#endif
