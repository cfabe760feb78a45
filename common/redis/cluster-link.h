/* For cluster.c and cluster-link.c: the inside of a cluster's connection. */
#ifndef MQ_CLUSTER_LINK_H
#define MQ_CLUSTER_LINK_H

#include "cluster.h"
#include "request.h"
#include "topology.h"

/* A node. */
struct link {
	struct mq_cluster *cluster;
	int number; /* in the map */
	struct mq_server server;
	struct mq_pair pair;
	bool open, ready;
	struct mq_requests waiting; /* until it is ready */
};

struct mq_cluster {
	struct mq_async front;
	const struct mq_server *server;
	const char *channel, *name;
	const struct mq_pair_events *events;
	void *arg;
	struct mq_topology map;
	bool known; /* the map is the cluster's */
	int seed;
	int home; /* the slot of a namespace in braces; -1: there is none */
	struct mq_requests later; /* no node takes these now */
	ev_timer retry, news, failing;
	char why[512]; /* it fails */
};

/* The link to node i of the map; NULL: never used. */
struct link *mq_link_used(const struct mq_cluster *, int i);
/* The same, which begins to connect if it did not; if that fails,
 * down() follows. */
struct link *mq_link_open(struct mq_cluster *, int i);
/* When failing ends. */
void mq_link_failed(struct ev_loop *, ev_timer *, int events);

#endif
