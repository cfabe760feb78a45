#include "nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/xalloc.h"
#include "reply.h"

void
mq_nodes_copy_error(struct mq_redis *r, const struct mq_redis *from)
{
	r->status = from->status;
	strlcpy(r->error, from->error, sizeof(r->error));
}

static char *
copy_text(const char *s)
{
	return s == NULL ? NULL : mq_xstrdup(s);
}

void
mq_node_server(struct mq_server *server, const struct mq_url *of,
    const char *host, int port)
{
	struct mq_url *u = &server->url;

	*u = (struct mq_url){.kind = MQ_URL_REDIS,
	    .tls = of->tls,
	    .insecure = of->insecure,
	    .user = copy_text(of->user),
	    .password = copy_text(of->password),
	    .cacert = copy_text(of->cacert),
	    .cert = copy_text(of->cert),
	    .key = copy_text(of->key),
	    .sni = copy_text(of->sni),
	    .hosts = mq_xcalloc(1, sizeof(*u->hosts)),
	    .hosts_n = 1};
	u->hosts[0] = (struct mq_url_host){mq_xstrdup(host), port};
	mq_url_show(u, server->name, sizeof(server->name));
}

struct node *
mq_node_used(const struct mq_nodes *all, int i)
{
	return all->map.nodes[i].own;
}

struct node *
mq_node_at(struct mq_redis *r, int i)
{
	struct mq_place_of_node *place = &r->nodes->map.nodes[i];
	struct node *node = place->own;

	if (node == NULL) {
		place->own = node = mq_xcalloc(1, sizeof(*node));
		STAILQ_INIT(&node->sent);
		mq_node_server(
		    &node->server, &r->server->url, place->host, place->port);
	}
	return node;
}

/*
 * By the name that the cluster gives the node; or, as nobody here may know that, by the
 * address that comes with it.  Then the certificate is for the name all the same.
 */
static int
dial_node(struct node *node, char *address, double until)
{
	struct mq_url *u = &node->server.url;
	char *name = u->hosts[0].name;
	bool is_sni = u->tls && u->sni == NULL;
	int rv = mq_redis_connect(&node->redis, &node->server, until);

	if (rv == 0 || *address == '\0' || mq_address_is(name) ||
	    node->redis.status != MQ_EXIT_UNAVAILABLE)
		return rv;
	u->hosts[0].name = address;
	if (is_sni)
		u->sni = name;
	rv = mq_redis_connect(&node->redis, &node->server, until);
	u->hosts[0].name = name;
	if (is_sni)
		u->sni = NULL;
	return rv;
}

/* What a node that hangs was sent could be carried out when others have replaced it. */
static int
connect_node(struct mq_redis *r, struct node *node, char *address)
{
	struct mq_nodes *all = r->nodes;
	struct mq_redis *to = &node->redis;
	double until = all->until;

	mq_failover_begin(&all->failover, r->server);
	if (all->failover.until < until)
		until = all->failover.until;
	if (dial_node(node, address, until) == -1)
		return -1;
	to->wanted_node = true;
	if (mq_redis_check(to) == 0)
		return 0;
	mq_redis_close(to);
	return -1;
}

struct node *
mq_node_open(struct mq_redis *r, int i)
{
	struct node *node = mq_node_at(r, i);

	if (node->missing != NULL)
		return NULL;
	if (node->redis.context == NULL &&
	    connect_node(r, node, r->nodes->map.nodes[i].address) == -1) {
		mq_nodes_copy_error(r, &node->redis);
		return NULL;
	}
	node->redis.wanted_node = true;
	if (r->wait != NULL && node->redis.wait == NULL)
		mq_redis_wait_with(&node->redis, r->wait, r->wait_arg);
	node->redis.patience_ms = r->patience_ms;
	return node;
}

void
mq_awaited_free(struct awaited *a)
{
	freeReplyObject(a->reply);
	mq_buf_free(&a->wire);
	free(a);
}

/* "node HOST:PORT: why", where error begins with another name. */
static char *
tell_missing(const struct mq_redis *r, int i, const char *error)
{
	const struct mq_place_of_node *at = &r->nodes->map.nodes[i];
	const char *name = mq_node_used(r->nodes, i)->server.name;
	struct mq_buf text = {0};

	if (strncmp(error, name, strlen(name)) == 0)
		error += strlen(name) + strlen(": ");
	mq_buf_printf(&text, MQ_MISSING "%s:%d: %s", at->host, at->port, error);
	(void)mq_buf_str(&text);
	return text.data;
}

void
mq_awaited_miss(struct mq_redis *r, struct awaited *a)
{
	redisReply *reply = mq_xcalloc(1, sizeof(*reply));

	reply->type = REDIS_REPLY_ERROR;
	reply->str = mq_xstrdup(mq_node_used(r->nodes, a->node)->missing);
	reply->len = strlen(reply->str);
	a->reply = reply;
	if (a->slot != -1)
		r->nodes->missing[a->slot] = (int16_t)(a->node + 1);
}

void
mq_node_lose(struct mq_redis *r, int i, const char *why)
{
	struct node *node = mq_node_used(r->nodes, i);
	struct awaited *a;

	if (node->missing == NULL)
		node->missing = tell_missing(r, i, why);
	mq_redis_close(&node->redis);
	node->redis.unsent = 0;
	while ((a = STAILQ_FIRST(&node->sent)) != NULL) {
		STAILQ_REMOVE_HEAD(&node->sent, in_node);
		mq_awaited_miss(r, a);
	}
}

void
mq_nodes_close(struct mq_redis *r)
{
	struct mq_nodes *all = r->nodes;
	struct awaited *a;
	struct node *node;
	int i;

	while ((a = STAILQ_FIRST(&all->order)) != NULL) {
		STAILQ_REMOVE_HEAD(&all->order, in_order);
		mq_awaited_free(a);
	}
	for (i = 0; i < all->map.count; i++) {
		node = mq_node_used(all, i);
		if (node == NULL)
			continue;
		mq_redis_close(&node->redis);
		mq_server_free(&node->server);
		free(node->missing);
		free(node);
	}
	mq_topology_free(&all->map);
	free(all);
	r->nodes = NULL;
	r->route = NULL;
}
