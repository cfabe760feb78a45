#include "nodes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "dial.h"
#include "node.h"

/* A command that no node takes now goes out again this often, and so long. */
#define PAUSE_MS    50
#define PATIENCE_MS 60000
/* How long all commands of a reader wait for a cluster that is down. */
#define DOWN_MS 3000

static bool
nodes_lost(const struct mq_redis *r)
{
	return r->nodes->lost;
}

/* Nodes without a slot do not count. */
static bool
visit_node(struct mq_redis *r, int i)
{
	const int16_t *owner = r->nodes->map.owner;
	int slot, n = 0, node;

	for (node = 0; node < r->nodes->map.count; node++) {
		for (slot = 0; slot < MQ_SLOTS && owner[slot] != node; slot++)
			;
		if (slot < MQ_SLOTS && n++ == i) {
			r->home = slot;
			return true;
		}
	}
	r->home = -1;
	return false;
}

/* --- sending ------------------------------------------------------------------ */

/* Whether the connection goes on without the node: all that it was asked is optional,
 * and so is this command (NULL: none). */
static bool
is_spare(const struct mq_redis *r, int i, const struct awaited *a)
{
	const struct node *node = mq_node_used(r->nodes, i);
	const struct awaited *other;

	if (r->nodes->partial)
		return true;
	/* Want of descriptors, say, is ours. */
	if (node->redis.status != MQ_EXIT_UNAVAILABLE ||
	    (a != NULL && !a->optional))
		return false;
	STAILQ_FOREACH(other, &node->sent, in_node)
	if (!other->optional)
		return false;
	return true;
}

/* 0: the connection goes on without the node. */
static int
lose(struct mq_redis *r, int i, const struct awaited *a)
{
	const struct mq_redis *node = &mq_node_used(r->nodes, i)->redis;

	if (is_spare(r, i, a)) {
		mq_node_lose(r, i, node->error);
		return 0;
	}
	mq_nodes_copy_error(r, node);
	r->nodes->lost = true;
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

static int
send_bytes(
    struct mq_redis *r, struct awaited *a, int to, const char *p, size_t n)
{
	struct node *node = mq_node_open(r, to);

	a->node = to;
	if (node == NULL || mq_redis_append_bytes(&node->redis, p, n) == -1) {
		if (lose(r, to, a) == -1)
			return -1;
		mq_awaited_miss(r, a);
		return 0;
	}
	STAILQ_INSERT_TAIL(&node->sent, a, in_node);
	return 0;
}

static int
send_wire(struct mq_redis *r, struct awaited *a, int to)
{
	return send_bytes(r, a, to, a->wire.data, a->wire.len);
}

/* MULTI and EXEC, between which a command is not sent again by itself. */
static void
note_transaction(struct mq_nodes *all, const char *p, size_t n)
{
	if (n > 14 && memcmp(p, "*1\r\n$5\r\nMULTI", 13) == 0)
		all->in_transaction = true;
	if (n > 13 && memcmp(p, "*1\r\n$4\r\nEXEC", 12) == 0)
		all->in_transaction = false;
}

/* What is not sent again, and may be large, is not kept. */
static int
send_command(
    struct mq_redis *r, struct awaited *a, int to, const char *p, size_t n)
{
	if (a->in_transaction && a->wire.len == 0)
		return send_bytes(r, a, to, p, n);
	mq_buf_add(&a->wire, p, n);
	return send_wire(r, a, to);
}

static int
append_command(struct mq_redis *r, struct mq_command *c, bool eval)
{
	struct awaited *a = mq_xcalloc(1, sizeof(*a));
	const char *p;
	size_t n;
	int to = owner_of(r, c->slot);

	a->slot = c->slot == -1 ? r->home : c->slot;
	a->optional = c->optional;
	if (eval) {
		mq_command_eval_head(c, &a->wire);
		p = mq_command_args(c, &n);
	} else {
		p = mq_command_wire(c, &n);
	}
	note_transaction(r->nodes, p, n);
	a->in_transaction = r->nodes->in_transaction;
	/* Whoever is asked names the node that has it. */
	if (to == -1)
		to = r->nodes->last;
	if (send_command(r, a, to, p, n) == -1) {
		r->nodes->lost = true;
		mq_awaited_free(a);
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
		node = mq_node_used(r->nodes, i);
		if (node != NULL && node->redis.unsent > 0 &&
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
	struct node *node = mq_node_used(r->nodes, a->node);
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

static bool
begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static void
pause_between(struct mq_redis *r)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};

	if (r->wait != NULL)
		(void)r->wait(r->wait_arg, -1, PAUSE_MS);
	else
		nanosleep(&pause, NULL);
}

/* For the next command only. */
static int
send_asking(struct mq_redis *r, int to)
{
	static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
	struct awaited *a = mq_xcalloc(1, sizeof(*a));
	int rv;

	a->slot = -1;
	mq_buf_add(&a->wire, asking, sizeof(asking) - 1);
	rv = send_wire(r, a, to);
	if (rv == 0)
		rv = read_reply(r, a);
	mq_awaited_free(a);
	return rv;
}

/* Sends a refused command to where its error says. */
static int
send_again(struct mq_redis *r, struct awaited *a)
{
	struct mq_nodes *all = r->nodes;
	redisReply *error = a->reply;
	int to, rv = 0;

	to = mq_topology_redirect(&all->map, error->str, a->node, &a->slot);
	if (to != -1 && begins(error->str, "MOVED "))
		all->map.owner[a->slot] = (int16_t)to;
	else if (to == -1)
		pause_between(r);
	if (to == -1)
		to = owner_of(r, a->slot);
	if (to == -1)
		to = a->node;
	if (begins(error->str, "ASK "))
		rv = send_asking(r, to);
	freeReplyObject(error);
	a->reply = NULL;
	if (rv == 0)
		rv = send_wire(r, a, to);
	return rv == 0 ? flush_nodes(r) : -1;
}

/* Whether a reader waits for this node no more, which says that the cluster is down. */
static bool
is_down(struct mq_redis *r, const struct awaited *a)
{
	struct mq_nodes *all = r->nodes;
	int64_t now = mq_clock_steady_ms();

	if (!all->partial || !begins(a->reply->str, "CLUSTERDOWN "))
		return false;
	if (all->down_ms == 0)
		all->down_ms = now;
	return now - all->down_ms >= DOWN_MS;
}

/* In a transaction, what is refused by a busy node fails as a whole. */
static bool
waits_or_moves(const struct awaited *a)
{
	return mq_topology_redirects(a->reply) ||
	    (!a->in_transaction && mq_reply_busy(a->reply));
}

/* The reply of a node that takes the command. */
static int
settle_reply(struct mq_redis *r, struct awaited *a)
{
	int64_t until = mq_clock_steady_ms() + PATIENCE_MS;

	if (read_reply(r, a) == -1)
		return -1;
	while (waits_or_moves(a) && mq_clock_steady_ms() < until) {
		if (is_down(r, a)) {
			mq_node_lose(r, a->node, a->reply->str);
			freeReplyObject(a->reply);
			mq_awaited_miss(r, a);
			return 0;
		}
		if (a->in_transaction) {
			r->nodes->lost = true;
			return mq_redis_fail(r, MQ_EXIT_AGAIN,
			    "the queue is moving to another node");
		}
		if (send_again(r, a) == -1 || read_reply(r, a) == -1)
			return -1;
	}
	return 0;
}

static redisReply *
next_reply(struct mq_redis *r)
{
	struct awaited *a = STAILQ_FIRST(&r->nodes->order);
	redisReply *reply = NULL;

	if (r->nodes->lost || flush_nodes(r) == -1)
		return NULL;
	STAILQ_REMOVE_HEAD(&r->nodes->order, in_order);
	if (settle_reply(r, a) == 0) {
		reply = a->reply;
		a->reply = NULL;
	} else {
		r->nodes->lost = true;
	}
	mq_awaited_free(a);
	return reply;
}

/* --- opening -------------------------------------------------------------------- */

static const struct mq_route nodes_route = {
    .append = append_command,
    .flush = flush_nodes,
    .reply = next_reply,
    .lost = nodes_lost,
    .visit = visit_node,
    .close = mq_nodes_close,
};

/* Waits for a node that is busy. */
static redisReply *
ask_again(struct mq_redis *r)
{
	struct mq_command c = {0};
	redisReply *reply;

	mq_command_plain(&c, "CLUSTER SLOTS");
	reply = mq_redis_call(r, &c);
	mq_command_free(&c);
	return reply;
}

/* Of the reply, which is not freed.  -1 with the error of the one that was asked. */
static int
take_slots(
    struct mq_nodes *all, struct mq_redis *r, int i, const redisReply *reply)
{
	if (mq_redis_refused(r, reply)) {
		if (strstr(reply->str, "cluster support disabled") != NULL)
			mq_redis_fail(r, MQ_EXIT_CONFIG,
			    "not a node of a cluster; use redis://");
		return -1;
	}
	if (mq_topology_take(&all->map, reply, i) == -1)
		return mq_redis_fail(
		    r, MQ_EXIT_UNAVAILABLE, "unexpected reply");
	all->last = i;
	return 0;
}

/* A node, which may be any, says where all of them are. */
static int
take_answer(void *arg, struct mq_dial *d, redisReply *reply)
{
	struct mq_redis *r = arg;
	int i = mq_topology_node(&r->nodes->map, d->host, d->port);
	int rv = -1;

	if (mq_reply_busy(reply)) {
		freeReplyObject(reply);
		reply = ask_again(&d->redis);
	}
	if (reply != NULL)
		rv = take_slots(r->nodes, &d->redis, i, reply);
	freeReplyObject(reply);
	if (rv == -1)
		return -1;
	mq_node_at(r, i)->redis = d->redis;
	/* For connections that do not wait. */
	strlcpy(r->server->host, d->server->host, sizeof(r->server->host));
	strlcpy(
	    r->server->address, d->server->address, sizeof(r->server->address));
	r->server->port = d->server->port;
	return 0;
}

/* What was wrong with those that were asked stays with them; see partial.h. */
static int
ask_hosts(struct mq_redis *r)
{
	const struct mq_url *u = &r->server->url;
	struct mq_dial *dials = mq_xcalloc(u->hosts_n, sizeof(*dials)), *d;
	struct mq_command c = {0};
	struct node *node;
	size_t i;
	int rv;

	for (i = 0; i < u->hosts_n; i++) {
		d = &dials[i];
		d->host = u->hosts[i].name;
		d->port = u->hosts[i].port;
		node = mq_node_at(
		    r, mq_topology_node(&r->nodes->map, d->host, d->port));
		d->server = &node->server;
	}
	mq_command_plain(&c, "CLUSTER SLOTS");
	rv = mq_dial(dials, u->hosts_n, &c, take_answer, r, r->nodes->until);
	mq_command_free(&c);
	if (rv == -1)
		mq_nodes_copy_error(r, mq_dial_error(dials, u->hosts_n));
	for (i = 0; i < u->hosts_n; i++) {
		node = mq_node_at(r,
		    mq_topology_node(
			&r->nodes->map, dials[i].host, dials[i].port));
		if (node->redis.context == NULL)
			mq_nodes_copy_error(&node->redis, &dials[i].redis);
	}
	free(dials);
	return rv == -1 ? -1 : 0;
}

bool
mq_nodes_replicated(const struct mq_redis *r, const struct mq_command *c)
{
	int node = owner_of(r, c->slot);

	return node != -1 && r->nodes->map.nodes[node].replicated;
}

int
mq_nodes_open(struct mq_redis *r, struct mq_server *server, double until)
{
	struct mq_nodes *all = mq_xcalloc(1, sizeof(*all));
	int rv;

	*r = (struct mq_redis){.server = server,
	    .route = &nodes_route,
	    .nodes = all,
	    .home = mq_slot_home(server->url.ns)};
	mq_topology_init(&all->map);
	STAILQ_INIT(&all->order);
	all->until = until;
	rv = ask_hosts(r);
	all->until = INFINITY;
	if (rv == -1)
		mq_nodes_close(r);
	return rv;
}
