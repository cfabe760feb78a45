/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Sends commands to nodes, again if a node refuses one or is lost: the only place that
 * decides what MOVED, ASK, NOSCRIPT and BUSY mean.
 *
 * On a cluster each command goes to the node that has the slot of its first key; without a
 * key, to the node of mq_redis.home, the slot of the URL's namespace if that has a {tag}.  If
 * the slot has moved or is moving, the node refuses the command, which goes to the other
 * node, or once more; its caller does not notice.  Waiting commands of one slot keep their
 * order; those of a transaction cannot wait.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "parts.h"

#define BUSY_PATIENCE_MS 60000 /* for a server that is busy, or loads data */

/* --- answers ---------------------------------------------------------------------- */

/* Ends a request with its reply, which the request takes. */
static void
answer(struct mq_request *q, redisReply *reply)
{
	q->reply = reply;
	if (q->take == NULL) {
		q->answered = true;
		mq_request_forget(q);
		return;
	}
	q->take(&q->asker, reply);
	mq_request_free(q);
}

/* --- nodes ------------------------------------------------------------------------ */

void
mq_route_cluster(struct mq_redis *r)
{
	const char *ns = r->server->url.ns;

	r->cluster = mq_xcalloc(1, sizeof(*r->cluster));
	memset(
	    r->cluster->map.owner, MQ_NO_OWNER, sizeof(r->cluster->map.owner));
	/* With a {tag} in the namespace, all keys are in one slot. */
	r->home = ns != NULL && strchr(ns, '{') != NULL ?
	    mq_slot_of(ns, strlen(ns)) :
	    -1;
}

struct mq_node *
mq_route_known(const struct mq_redis *r, int i)
{
	return i == -1 ? NULL : r->cluster->map.nodes[i].own;
}

struct mq_node *
mq_route_next(struct mq_redis *r, int *i)
{
	struct mq_node *node = NULL;

	if (r->cluster == NULL)
		return (*i)++ == 0 ? &r->only : NULL;
	while (node == NULL && *i < r->cluster->map.count)
		node = mq_route_known(r, (*i)++);
	return node;
}

struct mq_node *
mq_route_node(struct mq_redis *r, int i)
{
	struct mq_place_of_node *place = &r->cluster->map.nodes[i];
	struct mq_node *node = place->own;

	if (node == NULL) {
		place->own = node = mq_xcalloc(1, sizeof(*node));
		node->number = i;
		node->server = mq_xcalloc(1, sizeof(*node->server));
		node->at =
		    (struct mq_url_host){mq_xstrdup(place->host), place->port};
		mq_server_behind(node->server, r->server, &node->at, false);
	}
	return node;
}

void
mq_route_close(struct mq_redis *r)
{
	struct mq_cluster *all = r->cluster;
	struct mq_node *node;
	int i = 0;

	while ((node = mq_route_next(r, &i)) != NULL) {
		free(node->missing);
		node->missing = NULL;
		mq_link_close(&node->link);
		mq_route_lose(r, node);
		if (all == NULL)
			return;
		free(node->at.name);
		free(node->server);
		free(node);
	}
	free(all->map.nodes);
	free(all);
	r->cluster = NULL;
}

static int
owner_of(const struct mq_redis *r, const struct mq_request *q)
{
	int slot = q->slot == -1 ? r->home : q->slot;
	int owner = slot == -1 ? -1 : r->cluster->map.owner[slot];

	return owner == -1 ? r->cluster->last : owner;
}

/* Skips nodes without a slot. */
bool
mq_redis_visit(struct mq_redis *r, int i)
{
	const struct mq_topology *map;
	int node;

	if (r->cluster == NULL)
		return i == 0;
	map = &r->cluster->map;
	for (node = 0; node < map->count; node++) {
		r->home = mq_topology_slot(map, node);
		if (r->home < MQ_SLOTS && i-- == 0)
			return true;
	}
	r->home = -1;
	return false;
}

/* --- the end of a command without a reply of its own -------------------------------- */

static redisReply *
missing_reply(struct mq_redis *r, const struct mq_node *node, int slot)
{
	redisReply *reply = mq_xcalloc(1, sizeof(*reply));

	if (slot != -1)
		r->cluster->missing[slot] = (int16_t)(node->number + 1);
	reply->type = REDIS_REPLY_ERROR;
	reply->str = mq_xstrdup(node->missing);
	reply->len = strlen(reply->str);
	return reply;
}

/* Ends a request whose node is lost.  take() is called in the next turn of the loop: its
 * caller may not have returned yet. */
static void
lose(struct mq_redis *r, struct mq_node *node, struct mq_request *q)
{
	if (r->cluster == NULL || node->missing == NULL) {
		answer(q, NULL);
		return;
	}
	q->reply = missing_reply(r, node, q->slot);
	if (q->take == NULL || r->driver->changed == NULL) {
		answer(q, q->reply);
		return;
	}
	mq_requests_add(&r->missed, q);
	r->driver->changed(r, NULL);
}

void
mq_route_missed(struct mq_redis *r)
{
	struct mq_requests list = r->missed;
	struct mq_request *q;

	r->missed = (struct mq_requests){0};
	while ((q = mq_requests_take(&list)) != NULL)
		answer(q, q->reply);
}

void
mq_route_lose(struct mq_redis *r, struct mq_node *node)
{
	struct mq_request *q;

	while ((q = mq_link_orphan(&node->link)) != NULL ||
	    (q = mq_requests_take(&node->waiting)) != NULL)
		lose(r, node, q);
	node->optional = 0;
}

void
mq_route_miss(struct mq_redis *r, struct mq_node *node, const char *why)
{
	const struct mq_place_of_node *at =
	    &r->cluster->map.nodes[node->number];

	free(node->missing);
	node->missing =
	    mq_xasprintf(MQ_MISSING "%s:%d: %s", at->host, at->port, why);
	node->ready = false;
	mq_link_close(&node->link);
	mq_route_lose(r, node);
}

void
mq_route_drop(struct mq_redis *r)
{
	struct mq_request *q;

	while ((q = mq_requests_take(&r->later)) != NULL)
		answer(q, NULL);
	while ((q = mq_requests_take(&r->missed)) != NULL) {
		freeReplyObject(q->reply);
		answer(q, NULL);
	}
}

/* --- sending ---------------------------------------------------------------------- */

/* Sends a command that holds for the next one only, such as ASKING. */
static void
send_before(struct mq_redis *r, struct mq_node *node, const char *words,
    mq_reply_fn *fn)
{
	struct mq_command c = {0};

	mq_command_plain(&c, words);
	mq_link_send(&node->link, mq_request_new(&c, fn, r));
}

void
mq_route_send_to(struct mq_redis *r, struct mq_node *node, struct mq_request *q)
{
	q->node = node;
	if (node->link.context == NULL) {
		lose(r, node, q);
		return;
	}
	if (q->asks)
		send_before(r, node, "ASKING", NULL);
	if (q->command.tracked)
		send_before(r, node, "CLIENT CACHING YES", r->driver->cached);
	node->optional += q->optional;
	mq_link_send(&node->link, q);
	if (r->driver != NULL && r->driver->changed != NULL)
		r->driver->changed(r, node);
}

static void
send_later(struct mq_redis *r, struct mq_request *q)
{
	q->node = NULL;
	q->redirected = 0;
	mq_requests_add(&r->later, q);
	if (r->driver != NULL && r->driver->changed != NULL)
		r->driver->changed(r, NULL);
}

/* Sends a request to node number i, with asks to a node that is getting the slot.  There
 * the keys are not tracked: ASKING and CLIENT CACHING cannot both come before a command. */
static void
send_to_node(struct mq_redis *r, int i, struct mq_request *q, bool asks)
{
	struct mq_node *node = mq_route_node(r, i);
	bool open = r->driver->connect(r, &node, q);

	q->node = node;
	q->asks = asks;
	q->command.tracked &= !asks;
	if (!open)
		lose(r, node, q);
	else if (!node->ready && asks)
		send_later(r, q);
	else if (!node->ready)
		mq_requests_add(&node->waiting, q);
	else
		mq_route_send_to(r, node, q);
}

/* Whether another command of the request's slot waits. */
static bool
is_behind(const struct mq_redis *r, const struct mq_request *q)
{
	const struct mq_request *other;

	for (other = r->later.first; other != NULL; other = other->next)
		if (other->slot == q->slot)
			return true;
	return false;
}

void
mq_route_send(struct mq_redis *r, struct mq_request *q)
{
	if (r->cluster == NULL)
		mq_route_send_to(r, &r->only, q);
	else if (q->kept && is_behind(r, q))
		send_later(r, q);
	else
		send_to_node(r, owner_of(r, q), q, false);
}

void
mq_route_retry(struct mq_redis *r)
{
	struct mq_requests list = r->later;
	struct mq_request *q;

	r->later = (struct mq_requests){0};
	while ((q = mq_requests_take(&list)) != NULL)
		if (r->cluster == NULL)
			mq_route_send_to(r, &r->only, q);
		else
			send_to_node(r, owner_of(r, q), q, false);
}

void
mq_route_ready(struct mq_redis *r, struct mq_node *node)
{
	struct mq_request *q;

	node->ready = true;
	while ((q = mq_requests_take(&node->waiting)) != NULL)
		mq_route_send_to(r, node, q);
}

/* --- replies ---------------------------------------------------------------------- */

/* The server does not know the script of a command: sends its text, unless another command
 * has done so meanwhile; then the hash once more. */
static void
load(struct mq_redis *r, struct mq_node *node, struct mq_request *q)
{
	struct mq_command eval;

	if (node->link.loaded == q->command.script && !q->hashed) {
		q->hashed = true;
	} else {
		node->link.loaded = q->command.script;
		eval = mq_command_eval(&q->command);
		mq_request_forget(q);
		q->borrowed = false;
		q->command = eval;
	}
	mq_route_send_to(r, node, q);
}

/* Whether a command is sent again that a server refused, as it is busy or the slot is
 * elsewhere: for 60 s at most; on a loop, without a limit. */
static bool
is_patient(const struct mq_redis *r, struct mq_request *q)
{
	int64_t now = mq_clock_steady_ms();

	if (r->driver != NULL && r->driver->changed != NULL)
		return true;
	if (q->until == 0)
		q->until = now + BUSY_PATIENCE_MS;
	return now < q->until;
}

void
mq_route_settle(struct mq_redis *r, struct mq_node *node, struct mq_request *q,
    redisReply *reply)
{
	/* Commands of loop.c itself are for one node. */
	bool settled = !q->kept && q->take != NULL;
	enum mq_redirect how = MQ_STAYS;
	int to = -1;

	node->optional -= q->optional;
	if (r->cluster != NULL && !settled)
		how = mq_topology_redirect(
		    &r->cluster->map, reply, node->number, &q->slot, &to);
	if (how == MQ_STAYS && q->loads && q->command.script != NULL &&
	    mq_reply_noscript(reply)) {
		freeReplyObject(reply);
		load(r, node, q);
		return;
	}
	if (q->kept && (q->loads || r->cluster != NULL) && mq_reply_busy(reply))
		how = MQ_LATER;
	if (how != MQ_STAYS && !is_patient(r, q))
		how = MQ_STAYS;
	if (how != MQ_STAYS && r->driver != NULL)
		how = r->driver->refused(r, q, &reply, how);
	if (how == MQ_STAYS) {
		answer(q, reply);
		return;
	}
	freeReplyObject(reply);
	/* Two nodes may each say that the other has the slot. */
	if (how == MQ_LATER || is_behind(r, q) || ++q->redirected > 2)
		send_later(r, q);
	else
		send_to_node(r, to, q, how == MQ_ASKS);
}

/* --- without waiting -------------------------------------------------------------- */

static void
ask(struct mq_redis *r, struct mq_request *q)
{
	q->loads = true;
	q->kept = r->cluster != NULL || q->command.script != NULL;
	mq_route_send(r, q);
}

void
mq_redis_ask(struct mq_redis *r, struct mq_command *c, mq_asker_take *take,
    const struct mq_asker *asker)
{
	struct mq_request *q = mq_request_new(c, NULL, NULL);

	q->take = take;
	q->asker = *asker;
	ask(r, q);
}

void
mq_redis_post(
    struct mq_redis *r, struct mq_command *c, mq_reply_fn *fn, void *arg)
{
	ask(r, mq_request_new(c, fn, arg));
}

/* The node that has the keys of a command; NULL: it is not in use. */
static struct mq_node *
owner_known(const struct mq_redis *r, const struct mq_command *c)
{
	return r->cluster == NULL || c->slot == -1 ?
	    NULL :
	    mq_route_known(r, r->cluster->map.owner[c->slot]);
}

const char *
mq_redis_away(const struct mq_redis *r, const struct mq_command *c)
{
	const struct mq_node *node = owner_known(r, c);

	return node != NULL ? node->missing : NULL;
}

bool
mq_redis_active(struct mq_redis *r, const struct mq_command *c)
{
	bool any = r->cluster == NULL || c == NULL;
	struct mq_node *node = any ? &r->only : owner_known(r, c), *one;
	size_t activity = !any && node != NULL ? node->link.activity : 0;
	int i = 0;

	while (any && (one = mq_route_next(r, &i)) != NULL)
		activity += one->link.activity;
	if (node == NULL || activity == node->link.activity_seen)
		return false;
	node->link.activity_seen = activity;
	return true;
}
