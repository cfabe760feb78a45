/*
 * Where the nodes of a cluster are, as one of them says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/xalloc.h"
#include "dial.h"
#include "nodes.h"

struct asking {
	struct mq_redis *r;
	int but; /* the node that does not answer; -1: none */
};

static redisReply *
call_cluster(struct mq_redis *r, const char *line)
{
	struct mq_command c = {0};
	redisReply *reply;

	mq_command_plain(&c, line);
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

/* A line of CLUSTER NODES: "ID ADDRESS:PORT@BUS[,NAME] FLAGS ...". */
static bool
says_down(const char *line, const struct mq_place_of_node *node)
{
	char at[MQ_NODE_HOST_SIZE + 16], flags[128];
	const char *flag;

	snprintf(at, sizeof(at), " %s:%d@",
	    node->address[0] != '\0' ? node->address : node->host, node->port);
	if (strncmp(line + strcspn(line, " "), at, strlen(at)) != 0 ||
	    sscanf(line, "%*s %*s %127s", flags) != 1)
		return false;
	flag = strstr(flags, "fail");
	return flag != NULL && flag[strlen("fail")] != '?';
}

/* Whether the others have agreed that a node is down.  Who may not ask does not know. */
static bool
is_down(struct mq_redis *r, const struct mq_place_of_node *node)
{
	redisReply *reply = call_cluster(r, "CLUSTER NODES");
	const char *line;
	bool down = false;

	if (reply == NULL)
		return false;
	line = reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
	while (line != NULL && !down) {
		down = says_down(line, node);
		line = strchr(line, '\n');
		line = line == NULL ? NULL : line + 1;
	}
	freeReplyObject(reply);
	return down;
}

/* One that is in use keeps its connection. */
static void
keep_connection(struct mq_redis *r, int i, struct mq_dial *d)
{
	struct node *node = mq_node_at(r, i);

	if (node->redis.context != NULL || node->missing != NULL)
		mq_redis_close(&d->redis);
	else
		node->redis = d->redis;
	/* For connections that do not wait. */
	strlcpy(r->server->host, d->server->host, sizeof(r->server->host));
	strlcpy(
	    r->server->address, d->server->address, sizeof(r->server->address));
	r->server->port = d->server->port;
}

static int
take_answer(void *arg, struct mq_dial *d, redisReply *reply)
{
	const struct asking *q = arg;
	struct mq_nodes *all = q->r->nodes;
	int i = mq_topology_node(&all->map, d->host, d->port), rv = -1;

	if (mq_reply_busy(reply)) {
		freeReplyObject(reply);
		reply = call_cluster(&d->redis, "CLUSTER SLOTS");
	}
	if (reply != NULL)
		rv = take_slots(all, &d->redis, i, reply);
	freeReplyObject(reply);
	if (rv == -1)
		return -1;
	if (q->but != -1 && !all->failover.due)
		all->failover.due = is_down(&d->redis, &all->map.nodes[q->but]);
	keep_connection(q->r, i, d);
	return 0;
}

/* At the beginning, what was wrong stays with them; see partial.h. */
static void
note_errors(struct mq_redis *r, const struct mq_dial *dials, size_t n)
{
	struct node *node;
	size_t i;

	for (i = 0; i < n; i++) {
		node = mq_node_at(r, (int)i);
		if (node->redis.context == NULL)
			mq_nodes_copy_error(&node->redis, &dials[i].redis);
	}
}

int
mq_nodes_ask(struct mq_redis *r, int but)
{
	struct mq_nodes *all = r->nodes;
	struct asking q = {r, but};
	size_t i, n = 0, count = (size_t)all->map.count;
	struct mq_dial *dials = mq_xcalloc(count, sizeof(*dials));
	struct mq_command c = {0};
	double until = but == -1 ? all->until : all->failover.until;
	int rv = -1;

	for (i = 0; i < count; i++)
		if ((int)i != but)
			dials[n++].server = &mq_node_at(r, (int)i)->server;
	for (i = 0; i < n; i++) {
		dials[i].host = dials[i].server->url.hosts->name;
		dials[i].port = dials[i].server->url.hosts->port;
	}
	mq_command_plain(&c, "CLUSTER SLOTS");
	if (n > 0)
		rv = mq_dial(dials, n, &c, take_answer, &q, until);
	mq_command_free(&c);
	if (rv == -1 && but == -1)
		mq_nodes_copy_error(r, mq_dial_error(dials, n));
	if (but == -1)
		note_errors(r, dials, n);
	free(dials);
	return rv == -1 ? -1 : 0;
}
