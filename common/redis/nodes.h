/*
 * The nodes of a cluster, for tools that wait.
 */
#ifndef MQ_NODES_H
#define MQ_NODES_H

#include <sys/queue.h>

#include "connection.h"
#include "failover.h"
#include "topology.h"

/* --- nodes ------------------------------------------------------------- */

/*
 * The nodes of a Redis Cluster behind one struct mq_redis, whose commands go to the
 * node that has the slot of their first key; one without a key goes to the node of
 * mq_redis.home, which is that of the URL's namespace if that has a {tag}.  Replies come in the order of the commands.
 *
 * Where a slot has moved, or is moving, the node refuses the command, and it goes to
 * the other one, or once more, for a minute at most; the caller does not hear of it.
 * Only in the middle of a transaction the connection is lost then.
 */

/* As mq_redis_open_until(), for the server of a cluster: asks the hosts of its URL, side
 * by side, for the nodes.  Nodes are connected to as they are needed. */
int mq_nodes_open(struct mq_redis *, struct mq_server *, double until);

/* Whether the node that has the slot of this command has a replica. */
bool mq_nodes_replicated(const struct mq_redis *, const struct mq_command *);

/* --- node --------------------------------------------------------------- */

/* For nodes.c, nodes-ask.c, partial.c, durable.c and links.c: the nodes of a cluster, and what is on its way to them. */

/* A command whose reply the caller has not had yet. */
struct awaited {
	STAILQ_ENTRY(awaited) in_order, in_node;
	int node, slot;
	bool in_transaction;
	bool optional;
	struct mq_buf wire; /* to send it again; empty in a transaction */
	redisReply *reply;  /* came before another one's; else NULL */
};
STAILQ_HEAD(awaiteds, awaited);

struct node {
	struct mq_server server;
	struct mq_redis redis; /* open while its context is not NULL */
	struct awaiteds sent;  /* whose replies are to come, in this order */
	char *missing;	       /* why the others go on without it; or NULL */
};

struct mq_nodes {
	struct mq_topology map;
	struct awaiteds order;
	int last; /* the node of the last command */
	bool lost;
	bool partial; /* goes on without nodes; see partial.h */
	/* Some command about the slot had no answer, as this node is lost, from 1. */
	int16_t missing[MQ_SLOTS];
	struct mq_failover failover;
	double until; /* of opening; see mq_redis_open_until() */
};

/* Node number i of the map; NULL: never used. */
struct node *mq_node_used(const struct mq_nodes *, int i);

/* Closes a node for good, and answers what was sent to it. */
void mq_node_lose(struct mq_redis *, int i, const char *why);

/* The server of one node: as the cluster's, but with this host only; zeroed before. */
void mq_node_server(
    struct mq_server *, const struct mq_url *of, const char *host, int port);

#endif
