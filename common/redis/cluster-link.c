/*
 * The nodes of a cluster that a consumer is connected to.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "cluster.h"
#include "nodes.h"
#include "reply.h"

/* An optional command is answered so soon, and a node is ready: before whoever connects
 * loses patience. */
#define PATIENCE_S 4.0
/* A node that is away is tried again after this time. */
#define AWAY_S 1.0
/* A node that is needed is away if it was not ready for so long: before, it begins
 * anew. */
#define ANEW_S 2.0

static void
fail(struct mq_cluster *all, const struct link *link, const char *why)
{
	snprintf(all->why, sizeof(all->why), "%s: %s", link->server.name, why);
	ev_timer_stop(all->front.loop, &all->failing);
	ev_timer_set(&all->failing, 0, 0);
	ev_timer_start(all->front.loop, &all->failing);
}

void
mq_link_failed(struct ev_loop *loop, ev_timer *w, int events)
{
	struct mq_cluster *all = w->data;

	(void)loop;
	(void)events;
	all->events->down(all->arg, all->why);
}

/* The others go on. */
static void
miss(struct link *link, const char *why)
{
	snprintf(link->missing, sizeof(link->missing), MQ_MISSING "%s:%d: %s",
	    link->server.host, link->server.port, why);
	link->missing_s = mq_clock_steady_s();
	mq_link_close(link);
	if (link->needed)
		ev_timer_again(
		    link->cluster->front.loop, &link->cluster->absence);
}

void
mq_link_close(struct link *link)
{
	struct mq_request *q;

	link->open = link->ready = false;
	link->optional = 0;
	ev_timer_stop(link->cluster->front.loop, &link->patience);
	mq_pair_close(&link->pair);
	while ((q = TAILQ_FIRST(&link->waiting)) != NULL) {
		TAILQ_REMOVE(&link->waiting, q, link);
		mq_request_lose(q);
	}
}

/* A node of which nothing is known yet is needed to know the others. */
static bool
can_go_on(const struct link *link)
{
	return link->cluster->known &&
	    (!link->needed ||
		(!link->ready &&
		    mq_clock_steady_s() - link->tried_s >= ANEW_S));
}

static void
lose(struct link *link, const char *why)
{
	bool goes_on = can_go_on(link);

	if (link->ready)
		link->tried_s = mq_clock_steady_s();
	link->ready = false;
	if (goes_on)
		miss(link, why);
	else
		fail(link->cluster, link, why);
}

/* Other links may be in the middle of something. */
static void
on_down(void *arg, const char *why)
{
	lose(arg, why);
}

static void
on_patience(struct ev_loop *loop, ev_timer *w, int events)
{
	struct link *link = w->data;

	(void)events;
	ev_timer_stop(loop, w);
	if (link->open && !(link->ready && link->needed))
		lose(link, "no answer for too long");
}

static void
be_patient(struct link *link)
{
	struct ev_loop *loop = link->cluster->front.loop;

	ev_timer_stop(loop, &link->patience);
	ev_timer_set(&link->patience, PATIENCE_S, 0);
	if (link->optional > 0 || !link->ready)
		ev_timer_start(loop, &link->patience);
}

void
mq_link_heard(struct link *link)
{
	if (link->optional > 0)
		link->optional--;
	be_patient(link);
}

static void
on_refused(void *arg, const char *error)
{
	struct mq_cluster *all = ((struct link *)arg)->cluster;

	all->events->refused(all->arg, error);
}

static void
on_untracked(void *arg, const char *what, const char *error)
{
	struct mq_cluster *all = ((struct link *)arg)->cluster;

	all->events->untracked(all->arg, what, error);
}

static void
on_changed(void *arg, const char *key, size_t n)
{
	struct mq_cluster *all = ((struct link *)arg)->cluster;

	all->events->changed(all->arg, key, n);
}

/* All nodes pass it on.  One of them counts. */
static void
on_called(void *arg, const char *text, size_t n)
{
	const struct link *link = arg;
	struct mq_cluster *all = link->cluster;

	if (all->map.owner[mq_slot_of(text, n)] == link->number)
		all->events->called(all->arg, text, n);
}

/* How many slots nodes have that are away. */
static int
slots_away(const struct mq_cluster *all)
{
	const struct link *link;
	int slot, n = 0;

	for (slot = 0; slot < MQ_SLOTS; slot++) {
		link = all->map.owner[slot] == -1 ?
		    NULL :
		    mq_link_used(all, all->map.owner[slot]);
		n += link != NULL && link->missing[0] != '\0';
	}
	return n;
}

static void
on_slots(void *arg, redisReply *reply)
{
	struct link *link = arg;
	struct mq_cluster *all = link->cluster;
	int away = slots_away(all);

	if (reply == NULL)
		return;
	if (reply->type == REDIS_REPLY_ERROR) {
		fail(all, link, reply->str);
	} else if (mq_topology_take(&all->map, reply, link->number) == -1) {
		fail(all, link, "unexpected reply");
	} else if (!all->known) {
		all->known = true;
		all->events->ready(all->arg);
	} else if (slots_away(all) < away) {
		fail(all, link, "the cluster has changed");
	}
}

static void
ask_slots(struct link *link)
{
	struct mq_command c = {0};

	mq_command_plain(&c, "CLUSTER SLOTS");
	mq_async_send(&link->pair.main, &c, on_slots, link);
	mq_command_free(&c);
}

static void
on_ready(void *arg)
{
	struct link *link = arg;
	struct mq_request *q;

	link->ready = true;
	link->tried_s = 0;
	be_patient(link);
	if (link->missing[0] != '\0' && link->needed)
		fail(link->cluster, link, "the node answers again");
	link->missing[0] = '\0';
	if (!link->cluster->known)
		ask_slots(link);
	while ((q = TAILQ_FIRST(&link->waiting)) != NULL) {
		TAILQ_REMOVE(&link->waiting, q, link);
		mq_request_send(&link->pair.main, q);
	}
}

static const struct mq_pair_events link_events = {.ready = on_ready,
    .down = on_down,
    .refused = on_refused,
    .untracked = on_untracked,
    .changed = on_changed,
    .called = on_called};

struct link *
mq_link_used(const struct mq_cluster *all, int i)
{
	return all->map.nodes[i].own;
}

static struct link *
link_at(struct mq_cluster *all, int i)
{
	struct mq_place_of_node *place = &all->map.nodes[i];
	struct link *link = place->own;

	if (link == NULL) {
		place->own = link = mq_xcalloc(1, sizeof(*link));
		link->cluster = all;
		link->number = i;
		TAILQ_INIT(&link->waiting);
		ev_timer_init(&link->patience, on_patience, 0, 0);
		link->patience.data = link;
		mq_node_server(
		    &link->server, &all->server->url, place->host, place->port);
		mq_pair_init(&link->pair, all->front.loop, &link->server,
		    all->channel, all->name, &all->front, &link_events, link);
	}
	return link;
}

static void
connect_link(struct link *link)
{
	const struct mq_place_of_node *node =
	    &link->cluster->map.nodes[link->number];
	struct mq_server *server = &link->server;
	const char *why = "its address is not known";

	link->open = true;
	if (link->tried_s == 0)
		link->tried_s = mq_clock_steady_s();
	be_patient(link);
	strlcpy(server->host, node->host, sizeof(server->host));
	strlcpy(server->address, node->address, sizeof(server->address));
	server->port = node->port;
	if (*node->address == '\0' || mq_pair_open(&link->pair, &why) == -1)
		lose(link, why);
}

struct link *
mq_link_open(struct mq_cluster *all, int i, const struct mq_request *q)
{
	struct link *link = link_at(all, i);
	bool optional = q != NULL && q->command.optional;

	link->needed |= q != NULL && !optional;
	if (!link->open &&
	    (link->missing[0] == '\0' ||
		mq_clock_steady_s() - link->missing_s >= AWAY_S))
		connect_link(link);
	if (link->open && optional && link->optional++ == 0)
		be_patient(link);
	return link;
}

void
mq_link_look(struct ev_loop *loop, ev_timer *w, int events)
{
	struct mq_cluster *all = w->data;
	struct link *link, *ready = NULL;
	bool away = false;
	int i;

	(void)events;
	for (i = 0; i < all->map.count; i++) {
		link = mq_link_used(all, i);
		if (link != NULL && link->missing[0] != '\0' && link->needed) {
			away = true;
			if (!link->open)
				connect_link(link);
		} else if (link != NULL && link->ready) {
			ready = link;
		}
	}
	if (!away)
		ev_timer_stop(loop, w);
	else if (ready != NULL)
		ask_slots(ready);
}
