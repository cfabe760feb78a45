/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The nodes of a Redis Cluster for tools that wait: finding nodes, and waiting for one that
 * is away. */
#include "ask.h"

#include <sys/param.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "parts.h"

/* --- node ---------------------------------------------------------------- */

static void
copy_error(struct mq_redis *r, const struct mq_redis *from)
{
	r->status = from->status;
	strlcpy(r->error, from->error, sizeof(r->error));
}

/* Connects to a node by the cluster's name for it, which this host may not resolve, else by
 * its address, and greets it: a node that hangs could carry out commands after it was
 * replaced.  Returns 0, or -1 with the error, which stays with the link. */
static int
open_node(struct mq_redis *r, struct mq_node *node)
{
	struct mq_failover *f = &r->cluster->failover;
	char **host = &node->server->url.hosts->name, *name = *host;
	char *address = r->cluster->map.nodes[node->number].address;
	struct mq_redis to;
	int rv;

	if (node->ready)
		return 0;
	mq_failover_begin(f, r->server);
	rv = mq_redis_connect(&to, node->server, f->until);
	if (rv == -1 && *address != '\0' && !mq_address_is(name) &&
	    to.status == MQ_EXIT_UNAVAILABLE) {
		*host = address;
		rv = mq_redis_connect(&to, node->server, f->until);
		*host = name;
	}
	if (rv == 0 && (rv = mq_redis_check(&to)) == -1)
		mq_redis_close(&to);
	node->link = to.only.link;
	node->ready = rv == 0;
	if (rv == -1) {
		copy_error(r, &to);
		mq_link_lose(&node->link, to.status, to.error);
	}
	return rv;
}

/* Misses a node; the other nodes are used on. */
static void
lose_node(struct mq_redis *r, struct mq_node *node, const char *why)
{
	const char *name = node->server->name;

	/* mq_redis_fail() puts the name in front. */
	if (strncmp(why, name, strlen(name)) == 0)
		why += strlen(name) + strlen(": ");
	mq_route_miss(r, node, why);
}

/* --- the map of a cluster, from one of its nodes ---------------------------------- */

struct asking {
	struct mq_redis *r;
	int but; /* the node that does not answer; -1: none */
};

/* Whether CLUSTER NODES has the flag "fail" for a node, by agreement of the others.  False
 * without the right to ask.  A line is "ID ADDRESS:PORT@BUS[,NAME] FLAGS ...". */
static bool
is_down(struct mq_redis *r, const struct mq_place_of_node *node)
{
	struct mq_command c = {0};
	char at[MQ_NODE_HOST_SIZE + 16], flags[128];
	const char *p = "", *flag;
	redisReply *reply;
	bool down = false;

	snprintf(at, sizeof(at), " %s:%d@",
	    node->address[0] != '\0' ? node->address : node->host, node->port);
	mq_command_plain(&c, "CLUSTER NODES");
	reply = mq_call(r, &c, REDIS_REPLY_STRING);
	if (reply != NULL)
		p = reply->str;
	for (; !down && (p = strstr(p, at)) != NULL; p++)
		if (sscanf(p, "%*s %127s", flags) == 1 &&
		    (flag = strstr(flags, "fail")) != NULL)
			down = flag[strlen("fail")] != '?';
	freeReplyObject(reply);
	return down;
}

static int
receive_slots(void *arg, struct mq_dial *d, redisReply *reply)
{
	const struct asking *q = arg;
	struct mq_cluster *all = q->r->cluster;
	struct mq_server *server = q->r->server;
	int i = mq_topology_node(&all->map, d->host, d->port), rv = -1;
	struct mq_command c = {0};
	struct mq_node *node;

	if (mq_reply_busy(reply)) {
		freeReplyObject(reply);
		mq_command_plain(&c, "CLUSTER SLOTS");
		reply = mq_call(&d->redis, &c, -1);
	}
	if (reply != NULL && !mq_redis_refused(&d->redis, reply))
		rv = mq_topology_update(&all->map, reply, i) == 0 ?
		    0 :
		    mq_nonsense(&d->redis);
	else if (reply != NULL &&
	    strstr(reply->str, "cluster support disabled") != NULL)
		mq_redis_fail(&d->redis, MQ_EXIT_CONFIG,
		    "not a node of a cluster; use redis://");
	freeReplyObject(reply);
	if (rv == -1)
		return -1;
	all->last = i;
	if (q->but != -1 && !all->failover.due)
		all->failover.due = is_down(&d->redis, &all->map.nodes[q->but]);
	node = mq_route_node(q->r, i);
	/* A node in use keeps its connection. */
	if (node->ready || node->missing != NULL) {
		mq_redis_close(&d->redis);
	} else {
		node->link = d->redis.only.link;
		node->ready = true;
	}
	/* loop.c connects there. */
	strlcpy(server->host, d->server->host, sizeof(server->host));
	strlcpy(server->address, d->server->address, sizeof(server->address));
	server->port = d->server->port;
	return 0;
}

/* Asks the known nodes, at first the hosts of the URL, for the map; the first reply counts.
 * If `but` is not -1, that node is not asked, and the others are asked whether it is down.
 * Returns 0, or -1 with the error. */
static int
ask_nodes(struct mq_redis *r, int but, double until)
{
	struct mq_cluster *all = r->cluster;
	struct asking q = {r, but};
	size_t i, n = 0, count = (size_t)all->map.count;
	struct mq_dial *dials = mq_xcalloc(count, sizeof(*dials));
	struct mq_command c = {0};
	struct mq_node *node;
	int rv = -1;

	for (i = 0; i < count; i++) {
		node = mq_route_node(r, (int)i);
		if ((int)i != but)
			dials[n++].server = node->server;
	}
	mq_command_plain(&c, "CLUSTER SLOTS");
	if (n > 0)
		rv = mq_dial(dials, n, &c, receive_slots, &q, until);
	mq_command_free(&c);
	if (rv == -1 && but == -1)
		copy_error(r, mq_dial_error(dials, n));
	/* mq_partial_begin() needs the errors of the hosts in the URL. */
	for (i = 0; but == -1 && i < n; i++) {
		node = mq_route_node(r, (int)i);
		if (!node->ready && dials[i].redis.status != 0)
			mq_link_lose(&node->link, dials[i].redis.status,
			    dials[i].redis.error);
	}
	free(dials);
	return rv == -1 ? -1 : 0;
}

/* --- a node that is away ------------------------------------------------------ */

static bool
are_optional(const struct mq_requests *list)
{
	const struct mq_request *q;

	for (q = list->first; q != NULL; q = q->next)
		if (!q->optional)
			return false;
	return true;
}

/* Misses the node, for a reader, or if all its commands are optional, and so is q (NULL: no
 * command).  A status like MQ_EXIT_AGAIN, for want of descriptors, is not the node's fault:
 * false. */
static bool
goes_on(struct mq_redis *r, struct mq_node *node, const struct mq_request *q)
{
	const struct mq_link *l = &node->link;

	if (!r->cluster->partial &&
	    (l->status != MQ_EXIT_UNAVAILABLE || (q != NULL && !q->optional) ||
		!are_optional(&l->sent) || !are_optional(&l->backlog)))
		return false;
	lose_node(r, node, l->why);
	return true;
}

static bool
spares(struct mq_redis *r, struct mq_node *node)
{
	(void)mq_redis_set_lost(r, node);
	return goes_on(r, node, NULL);
}

/* Whether another node may soon have the slot of a command, whose node does not answer.  If
 * so, asks the others for the map. */
static bool
awaits_owner(
    struct mq_redis *r, const struct mq_request *q, struct mq_node *node)
{
	struct mq_failover *f = &r->cluster->failover;
	int i = node->number;

	if (q->optional || q->slot == -1 ||
	    node->link.status != MQ_EXIT_UNAVAILABLE ||
	    (!f->failed && !r->cluster->map.nodes[i].replicated) ||
	    !mq_failover_again(f, r))
		return false;
	(void)ask_nodes(r, i, f->until);
	return true;
}

/* Connects to the node, or to the one that replaces it.  For an optional command, a missing
 * node is not tried again. */
static bool
connect_node(
    struct mq_redis *r, struct mq_node **at, const struct mq_request *q)
{
	struct mq_node *node = *at;
	int owner;

	if (node->missing != NULL && (r->cluster->partial || q->optional))
		return false;
	free(node->missing);
	node->missing = NULL;
	while (open_node(r, node) == -1) {
		if (!awaits_owner(r, q, node)) {
			r->lost = !goes_on(r, node, q);
			return false;
		}
		owner = r->cluster->map.owner[q->slot];
		if (owner != -1)
			*at = node = mq_route_node(r, owner);
	}
	return true;
}

static enum mq_redirect
lose_connection(struct mq_redis *r, redisReply **reply)
{
	r->lost = true;
	freeReplyObject(*reply);
	*reply = NULL;
	return MQ_STAYS;
}

/* A node has replied CLUSTERDOWN: a slot has no owner that answers.  If its owner has a
 * replica, waits for a failover.  Else a reader misses the node, others lose the
 * connection. */
static enum mq_redirect
outlast_down(struct mq_redis *r, const struct mq_request *q, redisReply **reply)
{
	struct mq_cluster *all = r->cluster;
	int owner = q->slot == -1 ? q->node->number : all->map.owner[q->slot];

	mq_redis_fail(r, MQ_EXIT_UNAVAILABLE, "%s", (*reply)->str);
	mq_failover_begin(&all->failover, r->server);
	all->failover.due = true;
	if ((owner == -1 || all->map.nodes[owner].replicated) &&
	    mq_failover_again(&all->failover, r))
		return MQ_LATER;
	if (all->partial) {
		lose_node(r, q->node, (*reply)->str);
		return MQ_LATER;
	}
	return lose_connection(r, reply);
}

/* A command of a transaction cannot go to another node: the connection is lost. */
static enum mq_redirect
refused(struct mq_redis *r, const struct mq_request *q, redisReply **reply,
    enum mq_redirect how)
{
	if (!q->kept) {
		(void)mq_redis_fail(
		    r, MQ_EXIT_AGAIN, "the queue is moving to another node");
		return lose_connection(r, reply);
	}
	return strncmp((*reply)->str, "CLUSTERDOWN ", 12) == 0 ?
	    outlast_down(r, q, reply) :
	    how;
}

/* --- readers ---------------------------------------------------------------------- */

/* Misses hosts that did not answer at the beginning, unless a replica may get their slots:
 * the reader need not wait for them again. */
void
mq_partial_begin(struct mq_redis *r)
{
	struct mq_cluster *all = r->cluster;
	struct mq_node *node;
	int i = 0;

	if (all == NULL)
		return;
	all->partial = true;
	while ((node = mq_route_next(r, &i)) != NULL)
		if (node->link.state == MQ_LINK_LOST &&
		    mq_topology_slot(&all->map, node->number) < MQ_SLOTS &&
		    !all->map.nodes[node->number].replicated)
			lose_node(r, node, node->link.why);
}

const char *
mq_partial_missed(const struct mq_redis *r, const struct mq_command *c)
{
	const struct mq_node *node = r->cluster == NULL || c->slot == -1 ?
	    NULL :
	    mq_route_known(r, r->cluster->missing[c->slot] - 1);

	return node == NULL ? NULL : node->missing;
}

const char *
mq_partial_lost(const struct mq_redis *r, int i)
{
	const struct mq_cluster *all = r->cluster;
	const struct mq_node *node;
	int k;

	for (k = 0; all != NULL && all->partial && k < all->map.count; k++) {
		node = mq_route_known(r, k);
		if (node != NULL && node->missing != NULL && i-- == 0)
			return node->missing;
	}
	return NULL;
}

const struct mq_place_of_node *
mq_node_of(const struct mq_redis *r, const struct mq_command *c)
{
	int i = r->cluster == NULL || c->slot == -1 ?
	    -1 :
	    r->cluster->map.owner[c->slot];

	return i == -1 ? NULL : &r->cluster->map.nodes[i];
}

/* --- opening -------------------------------------------------------------------- */

static const struct mq_driver driver = {
    .connect = connect_node, .spares = spares, .refused = refused};

/* mq_redis_open_until() for a cluster: asks the hosts of the URL, side by side, for the map;
 * a node is connected when a command needs it. */
static int
open_nodes(struct mq_redis *r, struct mq_server *server, double until)
{
	const struct mq_url *u = &server->url;
	struct mq_failover *f;
	size_t i;
	int rv;

	*r = (struct mq_redis){.server = server,
	    .driver = &driver,
	    .patience_ms = MQ_REDIS_PATIENCE_MS};
	mq_route_cluster(r);
	for (i = 0; i < u->hosts_n; i++)
		(void)mq_topology_node(
		    &r->cluster->map, u->hosts[i].name, u->hosts[i].port);
	f = &r->cluster->failover;
	mq_failover_begin(f, server);
	rv = ask_nodes(r, -1, MIN(until, f->until));
	if (rv == -1)
		mq_redis_close(r);
	return rv;
}

int
mq_redis_open_until(struct mq_redis *r, struct mq_server *server, double until)
{
	return server->url.kind == MQ_URL_CLUSTER ?
	    open_nodes(r, server, until) :
	    mq_redis_connect(r, server, until);
}

int
mq_redis_open(struct mq_redis *r, struct mq_server *server)
{
	return mq_redis_open_until(r, server, INFINITY);
}

int
mq_redis_reach(struct mq_redis *r, struct mq_server *server)
{
	int rv = server->url.kind == MQ_URL_CLUSTER ?
	    open_nodes(r, server, INFINITY) :
	    mq_redis_begin(r, server, INFINITY);

	if (rv == 0)
		mq_redis_close(r);
	return rv;
}
