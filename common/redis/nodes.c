/*
 * The nodes of a Redis Cluster behind one struct mq_redis, whose commands go to the
 * node that has the slot of their first key; one without a key goes to the node of
 * mq_redis.home, which is that of the URL's namespace if that has a {tag}.  Replies come
 * in the order of the commands.
 *
 * Where a slot has moved, or is moving, the node refuses the command, and it goes to
 * the other one, or once more, for a minute at most; the caller does not hear of it.
 * Only in the middle of a transaction the connection is lost then.
 */
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

/* A command whose reply the caller has not had yet. */
struct awaited {
	STAILQ_ENTRY(awaited) in_order, in_node;
	int node, slot;
	bool optional;
	struct mq_buf wire; /* to send it again; empty in a transaction */
	redisReply *reply;  /* came before another one's; else NULL */
};
STAILQ_HEAD(awaiteds, awaited);

struct node {
	struct mq_server server;
	struct mq_redis redis; /* open unless its link is closed */
	struct awaiteds sent;  /* whose replies are to come, in this order */
	char *missing;	       /* why the others go on without it; or NULL */
};

struct mq_nodes {
	struct mq_topology map;
	struct awaiteds order;
	int last;     /* the node of the last command */
	bool partial; /* goes on without nodes; see mq_partial_begin() */
	/* Some command about the slot had no answer, as this node is lost, from 1. */
	int16_t missing[MQ_SLOTS];
	struct mq_failover failover;
};

/* --- node ---------------------------------------------------------------- */

static void
copy_error(struct mq_redis *r, const struct mq_redis *from)
{
	r->status = from->status;
	strlcpy(r->error, from->error, sizeof(r->error));
}

/* Node number i of the map, which is used from now on. */
static struct node *
use_node(struct mq_redis *r, int i)
{
	struct mq_place_of_node *place = &r->nodes->map.nodes[i];
	struct node *node = place->own;

	if (node == NULL) {
		place->own = node = mq_xcalloc(1, sizeof(*node));
		STAILQ_INIT(&node->sent);
		mq_server_of_node(
		    &node->server, &r->server->url, place->host, place->port);
	}
	return node;
}

/* The same, with a connection that is greeted; NULL: there is none, with the error.  By the
 * name that the cluster gives the node; or, as nobody here may know that, by the address
 * that comes with it.  What a node that hangs was sent could be carried out when others
 * have replaced it. */
static struct node *
open_node(struct mq_redis *r, int i)
{
	struct node *node = use_node(r, i);
	struct mq_failover *f = &r->nodes->failover;
	struct mq_redis *to = &node->redis;
	char **host = &node->server.url.hosts->name, *name = *host;
	char *address = r->nodes->map.nodes[i].address;
	int rv = 0;

	if (node->missing != NULL)
		return NULL;
	if (to->link.context == NULL) {
		mq_failover_begin(f, r->server);
		rv = mq_redis_connect(to, &node->server, f->until);
		if (rv == -1 && *address != '\0' && !mq_address_is(name) &&
		    to->status == MQ_EXIT_UNAVAILABLE) {
			*host = address;
			rv = mq_redis_connect(to, &node->server, f->until);
			*host = name;
		}
		if (rv == 0 && (rv = mq_redis_check(to)) == -1)
			mq_redis_close(to);
	}
	if (rv == -1) {
		copy_error(r, to);
		return NULL;
	}
	if (r->wait != NULL && to->wait == NULL)
		mq_redis_wait_with(to, r->wait, r->wait_arg);
	to->patience_ms = r->patience_ms;
	return node;
}

static void
awaited_free(struct awaited *a)
{
	freeReplyObject(a->reply);
	mq_buf_free(&a->wire);
	free(a);
}

/* Answers a command of a node that is lost. */
static void
awaited_miss(struct mq_redis *r, struct awaited *a)
{
	const struct node *node = r->nodes->map.nodes[a->node].own;
	redisReply *reply = mq_xcalloc(1, sizeof(*reply));

	reply->type = REDIS_REPLY_ERROR;
	reply->str = mq_xstrdup(node->missing);
	reply->len = strlen(reply->str);
	a->reply = reply;
	if (a->slot != -1)
		r->nodes->missing[a->slot] = (int16_t)(a->node + 1);
}

/* Closes a node for good, and answers what was sent to it.  The error begins with a name
 * of ours. */
static void
lose_node(struct mq_redis *r, int i, const char *why)
{
	const struct mq_place_of_node *at = &r->nodes->map.nodes[i];
	struct node *node = at->own;
	const char *name = node->server.name;
	struct awaited *a;

	if (node->missing == NULL) {
		if (strncmp(why, name, strlen(name)) == 0)
			why += strlen(name) + strlen(": ");
		node->missing = mq_xasprintf(
		    MQ_MISSING "%s:%d: %s", at->host, at->port, why);
	}
	mq_redis_close(&node->redis);
	while ((a = STAILQ_FIRST(&node->sent)) != NULL) {
		STAILQ_REMOVE_HEAD(&node->sent, in_node);
		awaited_miss(r, a);
	}
}

/* Closes all, and frees r->nodes. */
static void
close_nodes(struct mq_redis *r)
{
	struct mq_nodes *all = r->nodes;
	struct awaited *a;
	struct node *node;
	int i;

	while ((a = STAILQ_FIRST(&all->order)) != NULL) {
		STAILQ_REMOVE_HEAD(&all->order, in_order);
		awaited_free(a);
	}
	for (i = 0; i < all->map.count; i++) {
		if ((node = all->map.nodes[i].own) == NULL)
			continue;
		mq_redis_close(&node->redis);
		mq_server_free(&node->server);
		free(node->missing);
		free(node);
	}
	free(all->map.nodes);
	free(all);
	r->nodes = NULL;
	r->route = NULL;
}

/* --- where they are, as one of them says ----------------------------------------- */

struct asking {
	struct mq_redis *r;
	int but; /* the node that does not answer; -1: none */
};

/* Whether the others have agreed that a node is down.  Who may not ask does not know.
 * A line is "ID ADDRESS:PORT@BUS[,NAME] FLAGS ...". */
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
take_answer(void *arg, struct mq_dial *d, redisReply *reply)
{
	const struct asking *q = arg;
	struct mq_nodes *all = q->r->nodes;
	struct mq_server *server = q->r->server;
	int i = mq_topology_node(&all->map, d->host, d->port), rv = -1;
	struct mq_command c = {0};
	struct node *node;

	if (mq_reply_busy(reply)) {
		freeReplyObject(reply);
		mq_command_plain(&c, "CLUSTER SLOTS");
		reply = mq_call(&d->redis, &c, -1);
	}
	if (reply != NULL && !mq_redis_refused(&d->redis, reply))
		rv = mq_topology_take(&all->map, reply, i) == 0 ?
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
	node = use_node(q->r, i);
	/* One that is in use keeps its connection. */
	if (node->redis.link.context != NULL || node->missing != NULL)
		mq_redis_close(&d->redis);
	else
		node->redis = d->redis;
	/* For connections that do not wait. */
	strlcpy(server->host, d->server->host, sizeof(server->host));
	strlcpy(server->address, d->server->address, sizeof(server->address));
	server->port = d->server->port;
	return 0;
}

/* Asks whichever answers first for all of them: of the hosts in the URL, or (but: not
 * -1) of those that are known, without this one, and whether that is down.  Returns 0,
 * or -1 with the error. */
static int
ask_nodes(struct mq_redis *r, int but, double until)
{
	struct mq_nodes *all = r->nodes;
	struct asking q = {r, but};
	size_t i, n = 0, count = (size_t)all->map.count;
	struct mq_dial *dials = mq_xcalloc(count, sizeof(*dials));
	struct mq_command c = {0};
	struct mq_server *server;
	struct node *node;
	int rv = -1;

	for (i = 0; i < count; i++) {
		server = &use_node(r, (int)i)->server;
		if ((int)i != but)
			dials[n++] = (struct mq_dial){.server = server,
			    .host = server->url.hosts->name,
			    .port = server->url.hosts->port};
	}
	mq_command_plain(&c, "CLUSTER SLOTS");
	if (n > 0)
		rv = mq_dial(dials, n, &c, take_answer, &q, until);
	mq_command_free(&c);
	if (rv == -1 && but == -1)
		copy_error(r, mq_dial_error(dials, n));
	/* At the beginning, what was wrong stays with them; see mq_partial_begin(). */
	for (i = 0; but == -1 && i < n; i++) {
		node = use_node(r, (int)i);
		if (node->redis.link.context == NULL)
			copy_error(&node->redis, &dials[i].redis);
	}
	free(dials);
	return rv == -1 ? -1 : 0;
}

/* Of a node; MQ_SLOTS: it has none. */
static int
first_slot(const struct mq_topology *map, int node)
{
	int slot;

	for (slot = 0; slot < MQ_SLOTS && map->owner[slot] != node; slot++)
		;
	return slot;
}

/* Nodes without a slot do not count. */
static bool
visit_node(struct mq_redis *r, int i)
{
	const struct mq_topology *map = &r->nodes->map;
	int node;

	for (node = 0; node < map->count; node++) {
		r->home = first_slot(map, node);
		if (r->home < MQ_SLOTS && i-- == 0)
			return true;
	}
	r->home = -1;
	return false;
}

/* --- sending ------------------------------------------------------------------ */

/* 0: the connection goes on without the node, since all that it was asked is optional, and
 * so is this command (NULL: none). */
static int
lose(struct mq_redis *r, int i, const struct awaited *a)
{
	const struct node *node = r->nodes->map.nodes[i].own;
	const struct awaited *other;
	/* Want of descriptors, say, is ours. */
	bool spare = node->redis.status == MQ_EXIT_UNAVAILABLE &&
	    (a == NULL || a->optional);

	STAILQ_FOREACH(other, &node->sent, in_node)
		spare &= other->optional;
	if (spare || r->nodes->partial) {
		lose_node(r, i, node->redis.error);
		return 0;
	}
	copy_error(r, &node->redis);
	r->lost = true;
	return -1;
}

/* The node that has the slot; -1: none is known. */
static int
owner_of(const struct mq_redis *r, int slot)
{
	const struct mq_nodes *all = r->nodes;

	if (slot == -1)
		slot = r->home;
	return slot == -1 ? all->last : all->map.owner[slot];
}

/* Whether the slot of a command, whose node does not answer, may soon have another one.
 * Others have to say so, and how the cluster sees the node. */
static bool
awaits_owner(struct mq_redis *r, const struct awaited *a, int i)
{
	struct mq_failover *f = &r->nodes->failover;
	const struct mq_place_of_node *at = &r->nodes->map.nodes[i];
	struct node *node = at->own;

	if (a->optional || a->slot == -1 || node->missing != NULL ||
	    node->redis.status != MQ_EXIT_UNAVAILABLE ||
	    (!f->failed && !at->replicated) ||
	    !mq_failover_again(f, &node->redis))
		return false;
	(void)ask_nodes(r, i, f->until);
	return true;
}

/* To the node, or the one that replaces it. */
static int
send_bytes(
    struct mq_redis *r, struct awaited *a, int to, const char *p, size_t n)
{
	struct node *node = use_node(r, to);

	a->node = to;
	/* What could be done without has not waited. */
	if (!r->nodes->partial && !a->optional) {
		free(node->missing);
		node->missing = NULL;
	}
	while ((node = open_node(r, a->node)) == NULL &&
	    awaits_owner(r, a, a->node))
		if (r->nodes->map.owner[a->slot] != -1)
			a->node = r->nodes->map.owner[a->slot];
	if (node == NULL || mq_redis_append_bytes(&node->redis, p, n) == -1) {
		if (lose(r, a->node, a) == -1)
			return -1;
		awaited_miss(r, a);
		return 0;
	}
	STAILQ_INSERT_TAIL(&node->sent, a, in_node);
	return 0;
}

static int
append_command(struct mq_redis *r, struct mq_command *c)
{
	struct awaited *a = mq_xcalloc(1, sizeof(*a));
	size_t n;
	const char *p = mq_command_wire(c, &n);
	int to = owner_of(r, c->slot);

	a->slot = c->slot == -1 ? r->home : c->slot;
	a->optional = c->optional;
	/* Whoever is asked names the node that has it. */
	if (to == -1)
		to = r->nodes->last;
	if (!c->transaction)
		mq_buf_add(&a->wire, p, n);
	if (send_bytes(r, a, to, p, n) == -1) {
		r->lost = true;
		awaited_free(a);
		return -1;
	}
	r->nodes->last = to;
	STAILQ_INSERT_TAIL(&r->nodes->order, a, in_order);
	return 0;
}

static int
flush_nodes(struct mq_redis *r)
{
	struct node *node;
	int i;

	for (i = 0; i < r->nodes->map.count; i++) {
		node = r->nodes->map.nodes[i].own;
		if (node != NULL && mq_link_unwritten(&node->redis.link) &&
		    mq_redis_flush(&node->redis) == -1 &&
		    lose(r, i, NULL) == -1)
			return -1;
	}
	return 0;
}

/* --- replies ------------------------------------------------------------------- */

/* Reads until the reply to this command is there. */
static int
read_reply(struct mq_redis *r, struct awaited *a)
{
	struct node *node = r->nodes->map.nodes[a->node].own;
	struct awaited *first;
	redisReply *reply;

	while (a->reply == NULL) {
		reply = mq_redis_reply(&node->redis);
		if (reply == NULL) {
			if (lose(r, a->node, NULL) == -1)
				return -1;
			continue;
		}
		first = STAILQ_FIRST(&node->sent);
		first->reply = reply;
		STAILQ_REMOVE_HEAD(&node->sent, in_node);
	}
	return 0;
}

/* Sends a refused command to node `to`, or once more to the one that has its slot. */
static int
send_again(struct mq_redis *r, struct awaited *a, enum mq_redirect how, int to)
{
	static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
	struct awaited *before;
	int rv = 0;

	if (how == MQ_LATER) {
		mq_failover_pause(r);
		to = owner_of(r, a->slot);
		if (to == -1)
			to = a->node;
	} else if (how == MQ_ASKS) {
		/* For the next command only. */
		before = mq_xcalloc(1, sizeof(*before));
		before->slot = -1;
		rv = send_bytes(r, before, to, asking, sizeof(asking) - 1);
		if (rv == 0)
			rv = read_reply(r, before);
		awaited_free(before);
	}
	freeReplyObject(a->reply);
	a->reply = NULL;
	if (rv == 0)
		rv = send_bytes(r, a, to, a->wire.data, a->wire.len);
	return rv == 0 ? flush_nodes(r) : -1;
}

/* A node says that the cluster is down: without a replica of its slot's own node that
 * may last, and is not waited for.  1: it goes out again; 0: a reader goes on
 * without. */
static int
outlast_down(struct mq_redis *r, struct awaited *a)
{
	struct mq_nodes *all = r->nodes;
	int owner = a->slot == -1 ? a->node : all->map.owner[a->slot];

	mq_redis_fail(r, MQ_EXIT_UNAVAILABLE, "%s", a->reply->str);
	mq_failover_begin(&all->failover, r->server);
	all->failover.due = true;
	if ((owner == -1 || all->map.nodes[owner].replicated) &&
	    mq_failover_again(&all->failover, r))
		return 1;
	if (!all->partial)
		return -1;
	lose_node(r, a->node, a->reply->str);
	freeReplyObject(a->reply);
	awaited_miss(r, a);
	return 0;
}

/* The reply of a node that takes the command. */
static int
settle_reply(struct mq_redis *r, struct awaited *a)
{
	struct mq_nodes *all = r->nodes;
	enum mq_redirect how;
	int to, rv, sent = 0;

	while (read_reply(r, a) == 0) {
		how = mq_topology_redirect(
		    &all->map, a->reply, a->node, &a->slot, &to);
		/* In a transaction, what is refused by a busy node fails as a whole. */
		if (how == MQ_STAYS && a->wire.len > 0 &&
		    mq_reply_busy(a->reply))
			how = MQ_LATER;
		if (how == MQ_STAYS || !mq_redis_patient(r)) {
			if (how == MQ_STAYS)
				r->busy_until = 0;
			/* All that a reader waits for adds up. */
			if (!all->partial || !all->failover.failed)
				all->failover =
				    (struct mq_failover){.until = 0};
			return 0;
		}
		if (a->wire.len == 0)
			return mq_redis_fail(r, MQ_EXIT_AGAIN,
			    "the queue is moving to another node");
		if (strncmp(a->reply->str, "CLUSTERDOWN ", 12) == 0 &&
		    (rv = outlast_down(r, a)) != 1)
			return rv;
		/* Nodes may send it round in a ring. */
		if (how != MQ_LATER && ++sent > 2)
			mq_failover_pause(r);
		if (send_again(r, a, how, to) == -1)
			return -1;
	}
	return -1;
}

static redisReply *
next_reply(struct mq_redis *r)
{
	struct awaited *a = STAILQ_FIRST(&r->nodes->order);
	redisReply *reply = NULL;

	if (r->lost || flush_nodes(r) == -1)
		return NULL;
	STAILQ_REMOVE_HEAD(&r->nodes->order, in_order);
	if (settle_reply(r, a) == 0) {
		reply = a->reply;
		a->reply = NULL;
	} else {
		r->lost = true;
	}
	awaited_free(a);
	return reply;
}

/* --- readers ---------------------------------------------------------------------- */

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
		node = all->map.nodes[i].own;
		if (node != NULL && node->redis.status != 0 &&
		    mq_redis_lost(&node->redis) &&
		    first_slot(&all->map, i) < MQ_SLOTS &&
		    !all->map.nodes[i].replicated)
			lose_node(r, i, node->redis.error);
	}
}

const char *
mq_partial_missed(const struct mq_redis *r, const struct mq_command *c)
{
	int i =
	    r->nodes == NULL || c->slot == -1 ? 0 : r->nodes->missing[c->slot];
	const struct node *node =
	    i == 0 ? NULL : r->nodes->map.nodes[i - 1].own;

	return node == NULL ? NULL : node->missing;
}

const char *
mq_partial_lost(const struct mq_redis *r, int i)
{
	const struct mq_nodes *all = r->nodes;
	const struct node *node;
	int k;

	for (k = 0; all != NULL && all->partial && k < all->map.count; k++) {
		node = all->map.nodes[k].own;
		if (node != NULL && node->missing != NULL && i-- == 0)
			return node->missing;
	}
	return NULL;
}

const struct mq_place_of_node *
mq_node_of(const struct mq_redis *r, const struct mq_command *c)
{
	int i = r->nodes == NULL || c->slot == -1 ?
	    -1 :
	    r->nodes->map.owner[c->slot];

	return i == -1 ? NULL : &r->nodes->map.nodes[i];
}

/* --- opening -------------------------------------------------------------------- */

static const struct mq_route nodes_route = {
    .append = append_command,
    .flush = flush_nodes,
    .reply = next_reply,
    .visit = visit_node,
    .close = close_nodes,
};

/* As mq_redis_open_until(): asks the hosts of the URL, side by side, for the nodes, which
 * are connected to as they are needed. */
static int
open_nodes(struct mq_redis *r, struct mq_server *server, double until)
{
	struct mq_nodes *all = mq_xcalloc(1, sizeof(*all));
	const struct mq_url *u = &server->url;
	size_t i;
	int rv;

	*r = (struct mq_redis){.server = server,
	    .route = &nodes_route,
	    .nodes = all,
	    .home = mq_slot_home(u->ns),
	    .patience_ms = MQ_REDIS_PATIENCE_MS};
	memset(all->map.owner, MQ_NO_OWNER, sizeof(all->map.owner));
	STAILQ_INIT(&all->order);
	for (i = 0; i < u->hosts_n; i++)
		(void)mq_topology_node(
		    &all->map, u->hosts[i].name, u->hosts[i].port);
	mq_failover_begin(&all->failover, server);
	rv = ask_nodes(r, -1, MIN(until, all->failover.until));
	if (rv == -1)
		close_nodes(r);
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
