/* The links to the nodes of a cluster; see links.h. */
#ifndef MQ_CLUSTER_H
#define MQ_CLUSTER_H

#include "pair.h"

struct mq_cluster;

struct mq_cluster *mq_cluster_new(struct ev_loop *, const struct mq_server *,
    const char *channel, const char *name, const struct mq_pair_events *,
    void *arg);
struct mq_async *mq_cluster_async(struct mq_cluster *);
void mq_cluster_open(struct mq_cluster *);
/* Askers hear that the connection is lost; down() is not called. */
void mq_cluster_close(struct mq_cluster *);
void mq_cluster_free(struct mq_cluster *);

#endif
