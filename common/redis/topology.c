#include "topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

void
mq_topology_init(struct mq_topology *t)
{
	int slot;

	*t = (struct mq_topology){.nodes = NULL};
	for (slot = 0; slot < MQ_SLOTS; slot++)
		t->owner[slot] = -1;
}

void
mq_topology_free(struct mq_topology *t)
{
	free(t->nodes);
	mq_topology_init(t);
}

int
mq_topology_node(struct mq_topology *t, const char *host, int port)
{
	int i;

	for (i = 0; i < t->count; i++)
		if (t->nodes[i].port == port &&
		    strcmp(t->nodes[i].host, host) == 0)
			return i;
	t->nodes =
	    mq_xreallocarray(t->nodes, (size_t)t->count + 1, sizeof(*t->nodes));
	t->nodes[t->count] = (struct mq_place_of_node){.port = port};
	strlcpy(t->nodes[t->count].host, host, sizeof(t->nodes[0].host));
	return t->count++;
}

static bool
is_slot(const redisReply *r)
{
	return r->type == REDIS_REPLY_INTEGER && r->integer >= 0 &&
	    r->integer < MQ_SLOTS;
}

/* [first, last, [host, port, ...], replicas...]; a host that is unknown is nil or
 * empty. */
static bool
is_range(const redisReply *r)
{
	const redisReply *node;

	if (r->type != REDIS_REPLY_ARRAY || r->elements < 3 ||
	    !is_slot(r->element[0]) || !is_slot(r->element[1]))
		return false;
	node = r->element[2];
	return node->type == REDIS_REPLY_ARRAY && node->elements >= 2 &&
	    (node->element[0]->type == REDIS_REPLY_STRING ||
		node->element[0]->type == REDIS_REPLY_NIL) &&
	    node->element[1]->type == REDIS_REPLY_INTEGER &&
	    node->element[1]->integer > 0 && node->element[1]->integer < 65536;
}

static void
take_range(struct mq_topology *t, const redisReply *r, const char *host)
{
	const redisReply *name = r->element[2]->element[0];
	long long slot;
	int node;

	if (name->type == REDIS_REPLY_STRING && name->len > 0 &&
	    strcmp(name->str, "?") != 0)
		host = name->str;
	node =
	    mq_topology_node(t, host, (int)r->element[2]->element[1]->integer);
	for (slot = r->element[0]->integer; slot <= r->element[1]->integer;
	     slot++)
		t->owner[slot] = (int16_t)node;
}

int
mq_topology_take(
    struct mq_topology *t, const redisReply *reply, const char *host)
{
	size_t i;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements > MQ_SLOTS)
		return -1;
	for (i = 0; i < reply->elements; i++)
		if (!is_range(reply->element[i]))
			return -1;
	for (i = 0; i < MQ_SLOTS; i++)
		t->owner[i] = -1;
	for (i = 0; i < reply->elements; i++)
		take_range(t, reply->element[i], host);
	return 0;
}

int
mq_topology_redirect(
    struct mq_topology *t, const char *error, const char *host, int *slot)
{
	char name[MQ_NODE_HOST_SIZE];
	const char *colon = strrchr(error, ':'), *at;
	int port, n = 0;

	if (sscanf(error, "MOVED %d %n", slot, &n) != 1 &&
	    sscanf(error, "ASK %d %n", slot, &n) != 1)
		return -1;
	at = error + n;
	if (n == 0 || colon == NULL || colon < at || *slot < 0 ||
	    *slot >= MQ_SLOTS || (size_t)(colon - at) >= sizeof(name))
		return -1;
	port = atoi(colon + 1);
	if (port <= 0 || port > 65535)
		return -1;
	snprintf(name, sizeof(name), "%.*s", (int)(colon - at), at);
	return mq_topology_node(t, *name != '\0' ? name : host, port);
}
