#include "connection.h"

#include <stdio.h>

#include "parts.h"

static bool
has_slots(const struct mq_topology *map, int node)
{
	int slot;

	for (slot = 0; slot < MQ_SLOTS; slot++)
		if (map->owner[slot] == node)
			return true;
	return false;
}

/* A host that did not answer at the beginning is not waited for again, unless another
 * one may soon have its slots. */
void
mq_partial_begin(struct mq_redis *r)
{
	struct mq_nodes *all = r->nodes;
	const struct node *node;
	int i;

	if (all == NULL)
		return;
	all->partial = true;
	for (i = 0; i < all->map.count; i++) {
		node = mq_node_used(all, i);
		if (node != NULL && node->redis.status != 0 &&
		    mq_redis_lost(&node->redis) && has_slots(&all->map, i) &&
		    !all->map.nodes[i].replicated)
			mq_node_lose(r, i, node->redis.error);
	}
}

const char *
mq_partial_missed(const struct mq_redis *r, const struct mq_command *c)
{
	int node =
	    r->nodes == NULL || c->slot == -1 ? 0 : r->nodes->missing[c->slot];

	return node == 0 ? NULL : mq_node_used(r->nodes, node - 1)->missing;
}

const char *
mq_partial_lost(const struct mq_redis *r, int i)
{
	const struct mq_nodes *all = r->nodes;
	const struct node *node;
	int k;

	for (k = 0; all != NULL && all->partial && k < all->map.count; k++) {
		node = mq_node_used(all, k);
		if (node != NULL && node->missing != NULL && i-- == 0)
			return node->missing;
	}
	return NULL;
}

const char *
mq_partial_node(const struct mq_redis *r, const struct mq_command *c,
    char out[MQ_NODE_NAME_SIZE])
{
	const struct mq_topology *map;
	int i;

	if (r->nodes == NULL || c->slot == -1)
		return NULL;
	map = &r->nodes->map;
	i = map->owner[c->slot];
	if (i == -1)
		return NULL;
	snprintf(out, MQ_NODE_NAME_SIZE, "%s:%d", map->nodes[i].host,
	    map->nodes[i].port);
	return out;
}
