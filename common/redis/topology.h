/*
 * Which node of a Redis Cluster has which slot, as CLUSTER SLOTS says it.
 */
#ifndef MQ_TOPOLOGY_H
#define MQ_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "server.h"
#include "slot.h"

/* Of a node: its address, or the name that the cluster gives it. */
#define MQ_NODE_HOST_SIZE 256

struct mq_topology {
	struct mq_place_of_node {
		char host[MQ_NODE_HOST_SIZE];
		char address[MQ_ADDRESS_SIZE]; /* empty: not known */
		int port;
		bool replicated; /* it has a replica in good order */
		void *
		    own; /* what the user of the map keeps of it; NULL at first */
	} * nodes;
	int count;
	int16_t owner[MQ_SLOTS]; /* index of its node; -1: none */
};

/* Empty, with no owner of any slot; mq_topology_free() frees. */
void mq_topology_init(struct mq_topology *);
void mq_topology_free(struct mq_topology *);

/*
 * Takes a reply to CLUSTER SLOTS, of node number `asked`, which is meant where the
 * reply names no other.  Nodes keep their index; those that have no slot any more
 * stay.  Returns 0, or -1 when the reply makes no sense, and nothing has changed then.
 */
int mq_topology_take(struct mq_topology *, const redisReply *, int asked);

/* The index of the node at host and port, which is added if it is new. */
int mq_topology_node(struct mq_topology *, const char *host, int port);

/*
 * What a reply means to the command.  All but MQ_STAYS: it was not carried out, and
 * MQ_LATER: it goes later to the node that has its slot; MQ_MOVED: now to node *to, which
 * has the slot; MQ_ASKS: now to node *to, which gets the slot, behind an ASKING.
 */
enum mq_redirect { MQ_STAYS, MQ_LATER, MQ_MOVED, MQ_ASKS };

/* Takes a reply of node number `asked`, whose host is meant when an error names none, and
 * notes what it says of the owner of *slot. */
enum mq_redirect mq_topology_redirect(
    struct mq_topology *, const redisReply *, int asked, int *slot, int *to);

#endif
