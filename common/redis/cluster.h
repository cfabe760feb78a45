/*
 * The connections of a consumer to the nodes of a cluster.
 */
#ifndef MQ_CLUSTER_H
#define MQ_CLUSTER_H

#include "async.h"
#include "pair.h"
#include "topology.h"

/* --- cluster ----------------------------------------------------------- */

/* The links to the nodes of a cluster; see links.h. */

struct mq_cluster;

/* --- cluster-link ------------------------------------------------------- */

/* A node. */
struct link {
	struct mq_cluster *cluster;
	int number; /* in the map */
	struct mq_server server;
	struct mq_pair pair;
	bool open, ready;
	bool needed;	/* it was asked for more than optional commands */
	double tried_s; /* since this steady time it is not ready; 0: it is */
	char missing[512]; /* "node HOST:PORT: why", of one away */
	double missing_s;  /* since this steady time */
	int optional;	   /* such commands that are to be answered... */
	ev_timer patience; /* ...before this ends, if no others are; and of
			    * connecting */
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
	struct mq_requests later;  /* no node takes these now */
	struct mq_requests missed; /* optional ones of nodes that are away */
	ev_timer retry, news, failing, missing;
	ev_timer absence; /* needed nodes that are away are looked for */
	char why[512];	  /* it fails */
};

#endif
