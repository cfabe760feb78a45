/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "parts.h"

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
	if (mq_address_is(host))
		strlcpy(t->nodes[t->count].address, host,
		    sizeof(t->nodes[0].address));
	return t->count++;
}

static bool
is_slot(long long n)
{
	return n >= 0 && n < MQ_SLOTS;
}

/* Whether the reply is [first, last, [host, port, ...], replicas...]; an unknown host is nil
 * or empty. */
static bool
is_range(const redisReply *r)
{
	const redisReply *node;

	if (!mq_reply_is(r, "##* *") || !is_slot(r->element[0]->integer) ||
	    !is_slot(r->element[1]->integer))
		return false;
	node = r->element[2];
	return mq_reply_is(node, "*# *") &&
	    (node->element[0]->type == REDIS_REPLY_STRING ||
		node->element[0]->type == REDIS_REPLY_NIL) &&
	    node->element[1]->integer > 0 && node->element[1]->integer < 65536;
}

/* The node at host and port; an empty host is that of the node that was asked, with its
 * address. */
static int
node_near(struct mq_topology *t, const char *host, int port, int asked)
{
	const struct mq_place_of_node near = t->nodes[asked];
	int node;

	node = mq_topology_node(t, *host != '\0' ? host : near.host, port);
	if (*host == '\0' && near.address[0] != '\0')
		strlcpy(
		    t->nodes[node].address, near.address, sizeof(near.address));
	return node;
}

static void
store_range(struct mq_topology *t, const redisReply *r, int asked)
{
	const redisReply *at = r->element[2], *name = at->element[0];
	/* Redis 7 adds the address of a node with a name. */
	const char *ip =
	    at->elements > 3 ? mq_reply_value(at->element[3], "ip") : "";
	bool known =
	    name->type == REDIS_REPLY_STRING && strcmp(name->str, "?") != 0;
	long long slot;
	int node = node_near(
	    t, known ? name->str : "", (int)at->element[1]->integer, asked);

	if (mq_address_is(ip))
		strlcpy(
		    t->nodes[node].address, ip, sizeof(t->nodes[0].address));
	t->nodes[node].replicated = r->elements > 3;
	for (slot = r->element[0]->integer; slot <= r->element[1]->integer;
	     slot++)
		t->owner[slot] = (int16_t)node;
}

int
mq_topology_update(struct mq_topology *t, const redisReply *reply, int asked)
{
	size_t i;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements > MQ_SLOTS ||
	    t->count + (int)reply->elements > MQ_NODES)
		return -1;
	for (i = 0; i < reply->elements; i++)
		if (!is_range(reply->element[i]))
			return -1;
	memset(t->owner, MQ_NO_OWNER, sizeof(t->owner));
	for (i = 0; i < reply->elements; i++)
		store_range(t, reply->element[i], asked);
	return 0;
}

/* Parses "SLOT HOST:PORT": stores the slot, and returns the node; -1: the text makes no
 * sense, and *slot is unchanged. */
static int
find_target(struct mq_topology *t, const char *text, int asked, int *slot)
{
	char at[MQ_NODE_HOST_SIZE + sizeof(":65535")], *colon;
	int port, n;

	if (sscanf(text, "%d %262s", &n, at) != 2 || !is_slot(n))
		return -1;
	colon = strrchr(at, ':');
	port = colon != NULL ? atoi(colon + 1) : 0;
	if (port <= 0 || port > 65535 || colon - at >= MQ_NODE_HOST_SIZE ||
	    t->count == MQ_NODES)
		return -1;
	*colon = '\0';
	*slot = n;
	return node_near(t, at, port, asked);
}

enum mq_redirect
mq_topology_redirect(struct mq_topology *t, const redisReply *reply, int asked,
    int *slot, int *to)
{
	static const struct {
		const char *error;
		enum mq_redirect how;
	} errors[] = {{"MOVED ", MQ_MOVED}, {"ASK ", MQ_ASKS},
	    {"TRYAGAIN ", MQ_LATER}, {"CLUSTERDOWN ", MQ_LATER}};
	size_t i, n;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		n = strlen(errors[i].error);
		if (reply->type != REDIS_REPLY_ERROR ||
		    strncmp(reply->str, errors[i].error, n) != 0)
			continue;
		if (errors[i].how == MQ_LATER ||
		    (*to = find_target(t, reply->str + n, asked, slot)) == -1)
			return MQ_LATER;
		if (errors[i].how == MQ_MOVED)
			t->owner[*slot] = (int16_t)*to;
		return errors[i].how;
	}
	return MQ_STAYS;
}

int
mq_topology_slot(const struct mq_topology *t, int node)
{
	int slot;

	for (slot = 0; slot < MQ_SLOTS && t->owner[slot] != node; slot++)
		;
	return slot;
}
