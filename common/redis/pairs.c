#include "async.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "parts.h"
#include "command.h"

/* --- cluster-link -------------------------------------------------------- */

/* A node of a cluster that a consumer is connected to. */
struct link {
	struct mq_cluster *cluster;
	int number; /* in the map */
	struct mq_server server;
	struct mq_pair pair;
	bool open, ready;
	bool needed;	/* it was asked for more than optional commands */
	double tried_s; /* since this steady time it is not ready; 0: it is */
	char missing[512]; /* "node HOST:PORT: why", of one away */
	double missing_s;  /* since this steady time */
	int optional;	   /* such commands that are to be answered... */
	ev_timer patience; /* ...before this ends, if no others are; and of
			    * connecting */
	struct mq_requests waiting; /* until it is ready */
};

struct mq_cluster {
	struct mq_async front;
	const struct mq_server *server;
	const char *channel, *name;
	const struct mq_async_events *events;
	void *arg;
	struct mq_topology map;
	bool known; /* the map is the cluster's */
	int seed;
	int home; /* the slot of a namespace in braces; -1: there is none */
	struct mq_requests later;  /* no node takes these now */
	struct mq_requests missed; /* optional ones of nodes that are away */
	ev_timer retry, news, failing, missing;
	ev_timer absence; /* needed nodes that are away are looked for */
	char why[512];	  /* it fails */
};

/* The link to node i of the map; NULL: never used. */
static struct link *
mq_link_used(const struct mq_cluster *all, int i)
{
	return all->map.nodes[i].own;
}

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

/* When failing ends. */
static void
mq_link_failed(struct ev_loop *loop, ev_timer *w, int events)
{
	struct mq_cluster *all = w->data;

	(void)loop;
	(void)events;
	all->events->down(all->arg, all->why);
}

/* Askers hear that the connection is lost. */
static void
lose_all(struct mq_requests *list)
{
	struct mq_request *q;

	while ((q = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, q, link);
		mq_request_lose(q);
	}
}

/* Closes it, and loses what waits for it. */
static void
mq_link_close(struct link *link)
{
	link->open = link->ready = false;
	link->optional = 0;
	ev_timer_stop(link->cluster->front.loop, &link->patience);
	mq_pair_close(&link->pair);
	lose_all(&link->waiting);
}

/* Other links may be in the middle of something, and go on without this one if they can.
 * A node of which nothing is known yet is needed to know the others. */
static void
on_down(void *arg, const char *why)
{
	struct link *link = arg;
	struct mq_cluster *all = link->cluster;
	double now = mq_clock_steady_s();
	bool goes_on = all->known &&
	    (!link->needed || (!link->ready && now - link->tried_s >= ANEW_S));

	if (link->ready)
		link->tried_s = now;
	link->ready = false;
	if (!goes_on) {
		fail(all, link, why);
		return;
	}
	snprintf(link->missing, sizeof(link->missing), MQ_MISSING "%s:%d: %s",
	    link->server.host, link->server.port, why);
	link->missing_s = now;
	mq_link_close(link);
	if (link->needed)
		ev_timer_again(all->front.loop, &all->absence);
}

static void
on_patience(struct ev_loop *loop, ev_timer *w, int events)
{
	struct link *link = w->data;

	(void)events;
	ev_timer_stop(loop, w);
	if (link->open && !(link->ready && link->needed))
		on_down(link, "no answer for too long");
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

static const struct mq_async_events link_events = {.ready = on_ready,
    .down = on_down,
    .refused = on_refused,
    .untracked = on_untracked,
    .changed = on_changed,
    .called = on_called};

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
		on_down(link, why);
}

/*
 * The link to node i of the map, for a command (NULL: none yet); it begins to connect if
 * it did not.  If that fails, down() follows; but while all commands for it are optional,
 * or if it was not ready for some seconds, it is away: it is not open then, and they are
 * lost.
 */
static struct link *
mq_link_open(struct mq_cluster *all, int i, const struct mq_request *q)
{
	struct mq_place_of_node *place = &all->map.nodes[i];
	struct link *link = place->own;
	bool optional = q != NULL && q->command.optional;

	if (link == NULL) {
		place->own = link = mq_xcalloc(1, sizeof(*link));
		link->cluster = all;
		link->number = i;
		TAILQ_INIT(&link->waiting);
		ev_timer_init(&link->patience, on_patience, 0, 0);
		link->patience.data = link;
		mq_server_of_node(
		    &link->server, &all->server->url, place->host, place->port);
		mq_pair_init(&link->pair, all->front.loop, &link->server,
		    all->channel, all->name, &all->front, &link_events, link);
	}
	link->needed |= q != NULL && !optional;
	if (!link->open &&
	    (link->missing[0] == '\0' ||
		mq_clock_steady_s() - link->missing_s >= AWAY_S))
		connect_link(link);
	if (link->open && optional && link->optional++ == 0)
		be_patient(link);
	return link;
}

/* Looks whether nodes are back that are away, or others have their slots. */
static void
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

/* --- cluster ------------------------------------------------------------- */

/* Between two tries of a command that no node takes now. */
#define RETRY_S 0.05
/* After a slot has moved, whoever waits for messages looks again; its node may have
 * told it of none. */
#define NEWS_S 1.0
/* Between two looks for nodes that are away. */
#define LOOK_S 1.0

/* --- commands ------------------------------------------------------------------- */

static void
send_to(struct mq_cluster *all, int i, struct mq_request *q)
{
	struct link *link = mq_link_open(all, i, q);

	if (!link->open)
		mq_request_lose(q);
	else if (link->ready)
		mq_request_send(&link->pair.main, q);
	else
		TAILQ_INSERT_TAIL(&link->waiting, q, link);
}

static int
owner_of(const struct mq_cluster *all, const struct mq_request *q)
{
	int slot = q->command.slot == -1 ? all->home : q->command.slot;
	int owner = slot == -1 ? -1 : all->map.owner[slot];

	return owner == -1 ? all->seed : owner;
}

/* Whether another command of its slot waits. */
static bool
is_behind(const struct mq_cluster *all, const struct mq_request *q)
{
	const struct mq_request *other;

	TAILQ_FOREACH(other, &all->later, link)
		if (other->command.slot == q->command.slot)
			return true;
	return false;
}

static void
send_later(struct mq_cluster *all, struct mq_request *q)
{
	TAILQ_INSERT_TAIL(&all->later, q, link);
	ev_timer_start(all->front.loop, &all->retry);
}

static void
on_retry(struct ev_loop *loop, ev_timer *w, int events)
{
	struct mq_cluster *all = w->data;
	struct mq_requests list = TAILQ_HEAD_INITIALIZER(list);
	struct mq_request *q;

	(void)events;
	ev_timer_stop(loop, w);
	ev_timer_set(w, RETRY_S, 0);
	TAILQ_CONCAT(&list, &all->later, link);
	while ((q = TAILQ_FIRST(&list)) != NULL) {
		TAILQ_REMOVE(&list, q, link);
		send_to(all, owner_of(all, q), q);
	}
}

static void
on_news(struct ev_loop *loop, ev_timer *w, int events)
{
	struct mq_cluster *all = w->data;

	(void)events;
	ev_timer_stop(loop, w);
	ev_timer_set(w, NEWS_S, 0);
	all->events->changed(all->arg, NULL, 0);
}

static void
ask(struct mq_async *front, struct mq_request *q)
{
	struct mq_cluster *all = front->arg;

	if (!all->known)
		mq_request_lose(q);
	else if (is_behind(all, q))
		send_later(all, q);
	else
		send_to(all, owner_of(all, q), q);
}

/* To the node that gets the slot, and has not told anybody.  What is read there is not
 * tracked, as one word before a command is all that it can have. */
static void
send_asking(struct mq_cluster *all, int i, struct mq_request *q)
{
	struct link *link = mq_link_open(all, i, q);
	struct mq_command c = {0};

	if (!link->open) {
		mq_request_lose(q);
		return;
	}
	if (!link->ready) {
		send_later(all, q);
		return;
	}
	q->tracked = false;
	mq_command_plain(&c, "ASKING");
	mq_async_send(&link->pair.main, &c, NULL, NULL);
	mq_request_send(&link->pair.main, q);
}

/* NULL: none was asked for. */
static struct link *
link_of(const struct mq_async *front, int slot)
{
	const struct mq_cluster *all = front->arg;
	int owner = slot == -1 ? -1 : all->map.owner[slot];

	return owner == -1 ? NULL : mq_link_used(all, owner);
}

static const char *
away(const struct mq_async *front, int slot)
{
	const struct link *link = link_of(front, slot);

	return link != NULL && link->missing[0] != '\0' ? link->missing : NULL;
}

static void
on_missing(struct ev_loop *loop, ev_timer *w, int events)
{
	struct mq_cluster *all = w->data;
	struct mq_requests list = TAILQ_HEAD_INITIALIZER(list);
	static char moved[] = MQ_MISSING "of the slot: lost";
	redisReply reply = {.type = REDIS_REPLY_ERROR};
	const struct link *of;
	struct mq_request *q;

	(void)events;
	ev_timer_stop(loop, w);
	TAILQ_CONCAT(&list, &all->missed, link);
	while ((q = TAILQ_FIRST(&list)) != NULL) {
		TAILQ_REMOVE(&list, q, link);
		of = mq_link_used(all, owner_of(all, q));
		reply.str = of != NULL && of->missing[0] != '\0' ?
		    (char *)(uintptr_t)of->missing :
		    moved;
		reply.len = strlen(reply.str);
		mq_request_answer(q, all->known ? &reply : NULL);
	}
}

static bool
again(struct mq_async *front, struct mq_request *q, const redisReply *reply)
{
	struct mq_cluster *all = front->arg;
	struct link *from;
	enum mq_redirect how;
	int slot, to;

	if (reply == NULL) {
		if (!all->known ||
		    (!q->command.optional &&
			away(front, q->command.slot) == NULL))
			return false;
		/* Its asker hears of it, but not before it has asked. */
		TAILQ_INSERT_TAIL(&all->missed, q, link);
		ev_timer_start(front->loop, &all->missing);
		return true;
	}
	from = q->async->arg;
	if (q->command.optional) {
		from->optional -= from->optional > 0;
		be_patient(from);
	}
	how = mq_topology_redirect(&all->map, reply, from->number, &slot, &to);
	if (how == MQ_STAYS && !mq_reply_busy(reply))
		return false;
	ev_timer_start(front->loop, &all->news);
	if (how == MQ_STAYS || how == MQ_LATER || is_behind(all, q))
		send_later(all, q);
	else if (how == MQ_MOVED)
		send_to(all, to, q);
	else
		send_asking(all, to, q);
	return true;
}

static void
flush(struct mq_async *front)
{
	struct mq_cluster *all = front->arg;
	struct link *link;
	int i;

	for (i = 0; i < all->map.count; i++) {
		link = mq_link_used(all, i);
		if (link != NULL)
			mq_async_flush(&link->pair.main);
	}
}

static size_t
pending(const struct mq_async *front)
{
	const struct mq_cluster *all = front->arg;
	const redisAsyncContext *c;
	const struct link *link;
	size_t n = 0;
	int i;

	for (i = 0; i < all->map.count; i++) {
		link = mq_link_used(all, i);
		c = link != NULL ? link->pair.main.context : NULL;
		n += c != NULL ? c->c.reader->len : 0;
	}
	return n;
}

static struct mq_async *
node(const struct mq_async *front, int slot)
{
	struct link *link = link_of(front, slot);

	return link != NULL ? &link->pair.main : NULL;
}

static const struct mq_async_route cluster_route = {.ask = ask,
    .again = again,
    .flush = flush,
    .pending = pending,
    .away = away,
    .node = node};

/* --- beginning and end ----------------------------------------------------------- */

void
mq_pairs_init(struct mq_pairs *p, struct ev_loop *loop,
    const struct mq_server *server, const char *channel, const char *name,
    const struct mq_async_events *events, void *arg)
{
	struct mq_cluster *all;

	*p = (struct mq_pairs){.async = &p->only.main};
	if (server->url.kind != MQ_URL_CLUSTER) {
		mq_pair_init(
		    &p->only, loop, server, channel, name, NULL, events, arg);
		return;
	}
	p->cluster = all = mq_xcalloc(1, sizeof(*all));
	*all = (struct mq_cluster){.server = server,
	    .channel = channel,
	    .name = name,
	    .events = events,
	    .arg = arg,
	    .home = mq_slot_home(server->url.ns),
	    .front = {.loop = loop, .route = &cluster_route, .arg = all}};
	p->async = &all->front;
	TAILQ_INIT(&all->later);
	TAILQ_INIT(&all->missed);
	memset(all->map.owner, MQ_NO_OWNER, sizeof(all->map.owner));
	ev_timer_init(&all->retry, on_retry, RETRY_S, 0);
	ev_timer_init(&all->news, on_news, NEWS_S, 0);
	ev_timer_init(&all->failing, mq_link_failed, 0, 0);
	ev_timer_init(&all->missing, on_missing, 0, 0);
	ev_timer_init(&all->absence, mq_link_look, 0, LOOK_S);
	all->retry.data = all->news.data = all->failing.data = all;
	all->missing.data = all->absence.data = all;
}

int
mq_pairs_open(struct mq_pairs *p, const char **why)
{
	struct mq_cluster *all = p->cluster;
	const struct mq_server *server;
	struct mq_place_of_node *node;

	if (all == NULL)
		return mq_pair_open(&p->only, why);
	server = all->server;
	all->seed = mq_topology_node(&all->map, server->host, server->port);
	node = &all->map.nodes[all->seed];
	strlcpy(node->address, server->address, sizeof(node->address));
	(void)mq_link_open(all, all->seed, NULL);
	return 0;
}

void
mq_pairs_close(struct mq_pairs *p)
{
	struct mq_cluster *all = p->cluster;
	struct ev_loop *loop;
	struct link *link;
	int i;

	if (all == NULL) {
		mq_pair_close(&p->only);
		return;
	}
	loop = all->front.loop;
	all->known = false;
	ev_timer_stop(loop, &all->retry);
	ev_timer_stop(loop, &all->news);
	ev_timer_stop(loop, &all->failing);
	ev_timer_stop(loop, &all->missing);
	ev_timer_stop(loop, &all->absence);
	for (i = 0; i < all->map.count; i++) {
		link = mq_link_used(all, i);
		if (link == NULL)
			continue;
		link->missing[0] = '\0';
		link->needed = false;
		mq_link_close(link);
	}
	lose_all(&all->later);
	lose_all(&all->missed);
}

void
mq_pairs_free(struct mq_pairs *p)
{
	struct mq_cluster *all = p->cluster;
	struct link *link;
	int i;

	mq_pairs_close(p);
	for (i = 0; all != NULL && i < all->map.count; i++) {
		link = mq_link_used(all, i);
		if (link != NULL)
			mq_server_free(&link->server);
		free(link);
	}
	if (all != NULL)
		free(all->map.nodes);
	free(all);
}
