/* For nodes.c, nodes-ask.c, node.c, partial.c, durable.c and links.c: the nodes of a cluster, and what is on its way to them. */
#ifndef MQ_NODE_H
#define MQ_NODE_H

#include <sys/queue.h>

#include "failover.h"
#include "nodes.h"
#include "topology.h"

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
	int last;	     /* the node of the last command */
	bool in_transaction; /* MULTI was sent, and no EXEC */
	bool lost;
	bool partial; /* goes on without nodes; see partial.h */
	/* Some command about the slot had no answer, as this node is lost, from 1. */
	int16_t missing[MQ_SLOTS];
	struct mq_failover failover;
	double until; /* of opening; see mq_redis_open_until() */
};

/* The server of one node: as the cluster's, but with this host only; zeroed before. */
void mq_node_server(
    struct mq_server *, const struct mq_url *of, const char *host, int port);

/* Node number i of the map; NULL: never used. */
struct node *mq_node_used(const struct mq_nodes *, int i);
/* The same, which is used from now on. */
struct node *mq_node_at(struct mq_redis *, int i);

void mq_nodes_copy_error(struct mq_redis *, const struct mq_redis *from);
/* The same, with a connection that is greeted; NULL: there is none, with the error. */
struct node *mq_node_open(struct mq_redis *, int i);
/*
 * Asks whichever answers first for all of them: of the hosts in the URL, or (but: not -1)
 * of those that are known, without this one, and whether that is down.  Returns 0, or -1
 * with the error.
 */
int mq_nodes_ask(struct mq_redis *, int but);
void mq_awaited_free(struct awaited *);
/* Closes a node for good, and answers what was sent to it. */
void mq_node_lose(struct mq_redis *, int i, const char *why);
/* Answers a command of a node that is lost. */
void mq_awaited_miss(struct mq_redis *, struct awaited *);
/* Closes all, and frees r->nodes. */
void mq_nodes_close(struct mq_redis *);

#endif
