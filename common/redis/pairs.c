#include "async.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "parts.h"

/* --- tracking ------------------------------------------------------------------- */

/* Of a message, what it says; NULL: the reply is none. */
static const redisReply *
message_in(const redisReply *reply)
{
	if (reply == NULL || reply->elements != 3 ||
	    reply->element[0]->type != REDIS_REPLY_STRING ||
	    strcmp(reply->element[0]->str, "message") != 0)
		return NULL;
	return reply->element[2];
}

static bool
is_refused(const struct mq_pair *p, const char *what, const redisReply *reply)
{
	const struct mq_async *front = p->main.front;

	if (reply == NULL || reply->type != REDIS_REPLY_ERROR)
		return false;
	front->events->untracked(front->arg, what, reply->str);
	return true;
}

static void
on_changed(void *arg, redisReply *reply)
{
	const struct mq_async *front = ((struct mq_pair *)arg)->main.front;
	const redisReply *keys = message_in(reply);
	size_t i;

	if (is_refused(arg, "SUBSCRIBE", reply) || keys == NULL)
		return;
	for (i = 0; i < keys->elements; i++)
		front->events->changed(
		    front->arg, keys->element[i]->str, keys->element[i]->len);
	/* FLUSHALL names none. */
	if (keys->type != REDIS_REPLY_ARRAY)
		front->events->changed(front->arg, NULL, 0);
}

static void
on_called(void *arg, redisReply *reply)
{
	struct mq_pair *p = arg;
	const redisReply *text = message_in(reply);

	if (!is_refused(p, "SUBSCRIBE", reply) && text != NULL &&
	    text->type == REDIS_REPLY_STRING)
		p->main.events->called(p->main.arg, text->str, text->len);
}

static void
on_tracking(void *arg, redisReply *reply)
{
	(void)is_refused(arg, "CLIENT TRACKING", reply);
}

/* Who may not send to a channel may not listen there: then the connection would
 * break. */
static void
on_published(void *arg, redisReply *reply)
{
	struct mq_pair *p = arg;

	if (reply != NULL && !is_refused(p, "PUBLISH", reply))
		mq_async_subscribe(&p->wake, p->channel, on_called, p);
}

/* A sentinel's message says "NAME OLD-ADDRESS OLD-PORT ADDRESS PORT". */
static void
on_switch(void *arg, redisReply *reply)
{
	const struct mq_pair *p = arg;
	const redisReply *text = message_in(reply);
	const char *name = p->server->url.path;
	size_t n = strlen(name);

	if (text != NULL && text->type == REDIS_REPLY_STRING &&
	    strncmp(text->str, name, n) == 0 && text->str[n] == ' ')
		p->main.events->down(p->main.arg, "the master has changed");
}

/* --- the end of the former connection --------------------------------------------- */

/*
 * Commands of a connection that was given up may still be unread at the server, and
 * would be carried out behind what the next one has found there.  Therefore the next one
 * kills it first: also when the server refuses CLIENT LIST or CLIENT KILL, what it sends
 * from ready() on is carried out after the last command of the one before.
 */

static void
on_id(void *arg, redisReply *reply)
{
	struct mq_pair *p = arg;

	if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
		p->former = reply->integer;
}

/* Names this connection and asks for its number, for the next one to kill. */
static void
mark_connection(struct mq_pair *p)
{
	struct mq_command cmd = {0};

	mq_command_plain(&cmd, "CLIENT SETNAME");
	mq_command_str(&cmd, p->name);
	mq_async_send(&p->main, &cmd, NULL, NULL);
	mq_command_plain(&cmd, "CLIENT ID");
	mq_async_send(&p->main, &cmd, on_id, p);
	p->main.events->ready(p->main.arg);
}

/* After a restart of the server, another client may have the old number, but
 * never the old name as well. */
static void
on_listed(void *arg, redisReply *reply)
{
	struct mq_pair *p = arg;
	struct mq_command cmd = {0};
	char name[64];

	if (reply == NULL)
		return;
	snprintf(name, sizeof(name), " name=%s ", p->name);
	if (reply->str != NULL && strstr(reply->str, name) != NULL) {
		mq_command_plain(&cmd, "CLIENT KILL ID");
		mq_command_int(&cmd, p->former);
		mq_async_send(&p->main, &cmd, NULL, NULL);
	}
	mark_connection(p);
}

/* The listener is there: the reader can ask for its news to be sent to it. */
static void
on_listener_id(void *arg, redisReply *reply)
{
	struct mq_pair *p = arg;
	struct mq_command cmd = {0};

	if (reply == NULL)
		return;
	if (reply->type == REDIS_REPLY_INTEGER) {
		mq_async_subscribe(
		    &p->wake, "__redis__:invalidate", on_changed, p);
		mq_command_plain(&cmd, "CLIENT TRACKING ON OPTIN REDIRECT");
		mq_command_int(&cmd, reply->integer);
		mq_async_send(&p->main, &cmd, on_tracking, p);
		/* Nobody listens yet.  The command only shows what others may send. */
		mq_command_plain(&cmd, "PUBLISH");
		mq_command_str(&cmd, p->channel);
		mq_command_str(&cmd, "");
		cmd.tracked = true;
		mq_async_send(&p->main, &cmd, on_published, p);
	} else {
		on_tracking(p, reply);
	}
	if (p->former == 0) {
		mark_connection(p);
		return;
	}
	mq_command_plain(&cmd, "CLIENT LIST ID");
	mq_command_int(&cmd, p->former);
	mq_async_send(&p->main, &cmd, on_listed, p);
}

static int
pair_open(struct mq_pair *p, const char **why)
{
	struct mq_command cmd = {0};

	if (mq_async_open(&p->main, p->server, why) == -1 ||
	    mq_async_open(&p->wake, p->server, why) == -1)
		return -1;
	mq_command_plain(&cmd, "CLIENT ID");
	mq_async_send(&p->wake, &cmd, on_listener_id, p);
	return 0;
}

static void
pair_close(struct mq_pair *p)
{
	mq_async_close(&p->main);
	mq_async_close(&p->wake);
}

/* --- nodes of a cluster ----------------------------------------------------------- */

/* A node of a cluster that a consumer is connected to. */
struct link {
	struct mq_cluster *cluster;
	int number; /* in the map */
	struct mq_server server;
	struct mq_pair pair;
	bool open, ready;
	bool needed;	  /* it was asked for more than optional commands */
	double tried_s;	  /* since this steady time it is not ready; 0: it is */
	double missing_s; /* since this steady time it is away */
	int optional;	  /* such commands that are to be answered... */
	ev_timer patience; /* ...before this ends, if no others are; and of
			    * connecting */
	struct mq_requests waiting; /* until it is ready */
};

struct mq_cluster {
	struct mq_async front;	     /* comes first: the route gets this */
	const struct mq_pair *model; /* each link's is as this one */
	struct mq_topology map;
	bool known; /* the map is the cluster's */
	int seed;
	int home; /* the slot of a namespace in braces; -1: there is none */
	struct mq_requests later;  /* no node takes these now */
	struct mq_requests missed; /* optional ones of nodes that are away */
	ev_timer retry, news;
	ev_timer soon;	  /* in the next turn: the missed ones, and the end */
	ev_timer absence; /* needed nodes that are away are looked for */
	char why[512];	  /* it fails; or empty */
};

static bool
is_away(const struct link *link)
{
	return link != NULL && link->pair.main.missing[0] != '\0';
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
	ev_timer_start(all->front.loop, &all->soon);
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
close_link(struct link *link)
{
	link->open = link->ready = false;
	link->optional = 0;
	ev_timer_stop(link->cluster->front.loop, &link->patience);
	pair_close(&link->pair);
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
	snprintf(link->pair.main.missing, sizeof(link->pair.main.missing),
	    MQ_MISSING "%s:%d: %s", link->server.host, link->server.port, why);
	link->missing_s = now;
	close_link(link);
	if (link->needed)
		ev_timer_again(all->front.loop, &all->absence);
}

static void
on_patience(struct ev_loop *loop, ev_timer *w, int events)
{
	struct link *link = w->data;

	(void)loop;
	(void)events;
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

/* All nodes pass it on.  One of them counts. */
static void
on_node_called(void *arg, const char *text, size_t n)
{
	const struct link *link = arg;
	const struct mq_cluster *all = link->cluster;

	if (all->map.owner[mq_slot_of(text, n)] == link->number)
		all->front.events->called(all->front.arg, text, n);
}

/* How many slots nodes have that are away. */
static int
slots_away(const struct mq_cluster *all)
{
	int slot, n = 0;

	for (slot = 0; slot < MQ_SLOTS; slot++)
		n += all->map.owner[slot] != -1 &&
		    is_away(all->map.nodes[all->map.owner[slot]].own);
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
		all->front.events->ready(all->front.arg);
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
	if (is_away(link) && link->needed)
		fail(link->cluster, link, "the node answers again");
	link->pair.main.missing[0] = '\0';
	if (!link->cluster->known)
		ask_slots(link);
	while ((q = TAILQ_FIRST(&link->waiting)) != NULL) {
		TAILQ_REMOVE(&link->waiting, q, link);
		mq_request_send(&link->pair.main, q);
	}
}

static const struct mq_async_events link_events = {
    .ready = on_ready, .down = on_down, .called = on_node_called};

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
	if (*node->address == '\0' || pair_open(&link->pair, &why) == -1)
		on_down(link, why);
}

/*
 * The link to node i of the map, for a command (NULL: none yet); it begins to connect if
 * it did not.  If that fails, down() follows; but while all commands for it are optional,
 * or if it was not ready for some seconds, it is away: it is not open then, and they are
 * lost.
 */
static struct link *
open_link(struct mq_cluster *all, int i, const struct mq_request *q)
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
		mq_server_of_node(&link->server, &all->model->server->url,
		    place->host, place->port);
		link->pair = *all->model;
		link->pair.server = &link->server;
		link->pair.main.events = link->pair.wake.events = &link_events;
		link->pair.main.arg = link->pair.wake.arg = link;
		link->pair.main.front = link->pair.wake.front = &all->front;
		link->pair.main.next = all->front.behind;
		all->front.behind = &link->pair.main;
	}
	link->needed |= q != NULL && !optional;
	if (!link->open &&
	    (!is_away(link) || mq_clock_steady_s() - link->missing_s >= AWAY_S))
		connect_link(link);
	if (link->open && optional && link->optional++ == 0)
		be_patient(link);
	return link;
}

/* Looks whether nodes are back that are away, or others have their slots. */
static void
on_look(struct ev_loop *loop, ev_timer *w, int events)
{
	struct mq_cluster *all = w->data;
	struct link *link, *ready = NULL;
	bool away = false;
	int i;

	(void)events;
	for (i = 0; i < all->map.count; i++) {
		link = all->map.nodes[i].own;
		if (is_away(link) && link->needed) {
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

/* Between two tries of a command that no node takes now. */
#define RETRY_S 0.05
/* After a slot has moved, whoever waits for messages looks again; its node may have
 * told it of none. */
#define NEWS_S 1.0
/* Between two looks for nodes that are away. */
#define LOOK_S 1.0

static void
send_later(struct mq_cluster *all, struct mq_request *q)
{
	TAILQ_INSERT_TAIL(&all->later, q, link);
	ev_timer_start(all->front.loop, &all->retry);
}

/* Asks: to the node that gets the slot, and has not told anybody.  What is read there is
 * not tracked, as one word before a command is all that it can have. */
static void
send_to(struct mq_cluster *all, int i, struct mq_request *q, bool asks)
{
	struct link *link = open_link(all, i, q);
	struct mq_command c = {0};

	if (!link->open) {
		mq_request_lose(q);
	} else if (!link->ready) {
		if (asks)
			send_later(all, q);
		else
			TAILQ_INSERT_TAIL(&link->waiting, q, link);
	} else {
		if (asks) {
			q->tracked = false;
			mq_command_plain(&c, "ASKING");
			mq_async_send(&link->pair.main, &c, NULL, NULL);
		}
		mq_request_send(&link->pair.main, q);
	}
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
on_retry(struct ev_loop *loop, ev_timer *w, int events)
{
	struct mq_cluster *all = w->data;
	struct mq_requests list = TAILQ_HEAD_INITIALIZER(list);
	struct mq_request *q;

	(void)events;
	/* Another timer may have started it again meanwhile. */
	ev_timer_stop(loop, w);
	ev_timer_set(w, RETRY_S, 0);
	TAILQ_CONCAT(&list, &all->later, link);
	while ((q = TAILQ_FIRST(&list)) != NULL) {
		TAILQ_REMOVE(&list, q, link);
		send_to(all, owner_of(all, q), q, false);
	}
}

static void
on_news(struct ev_loop *loop, ev_timer *w, int events)
{
	struct mq_cluster *all = w->data;

	(void)events;
	/* Another timer may have started it again meanwhile. */
	ev_timer_stop(loop, w);
	ev_timer_set(w, NEWS_S, 0);
	all->front.events->changed(all->front.arg, NULL, 0);
}

static void
ask(struct mq_async *front, struct mq_request *q)
{
	struct mq_cluster *all = (struct mq_cluster *)front;

	if (!all->known)
		mq_request_lose(q);
	else if (is_behind(all, q))
		send_later(all, q);
	else
		send_to(all, owner_of(all, q), q, false);
}

static struct mq_async *
node(const struct mq_async *front, int slot)
{
	const struct mq_cluster *all = (const struct mq_cluster *)front;
	int owner = slot == -1 ? -1 : all->map.owner[slot];
	struct link *link = owner == -1 ? NULL : all->map.nodes[owner].own;

	return link != NULL ? &link->pair.main : NULL;
}

static void
on_soon(struct ev_loop *loop, ev_timer *w, int events)
{
	struct mq_cluster *all = w->data;
	struct mq_requests list = TAILQ_HEAD_INITIALIZER(list);
	static char moved[] = MQ_MISSING "of the slot: lost";
	redisReply reply = {.type = REDIS_REPLY_ERROR};
	char why[sizeof(all->why)];
	struct link *of;
	struct mq_request *q;

	(void)loop;
	(void)events;
	TAILQ_CONCAT(&list, &all->missed, link);
	while ((q = TAILQ_FIRST(&list)) != NULL) {
		TAILQ_REMOVE(&list, q, link);
		of = all->map.nodes[owner_of(all, q)].own;
		reply.str = is_away(of) ? of->pair.main.missing : moved;
		reply.len = strlen(reply.str);
		mq_request_answer(q, all->known ? &reply : NULL);
	}
	strlcpy(why, all->why, sizeof(why));
	all->why[0] = '\0';
	if (*why != '\0')
		all->front.events->down(all->front.arg, why);
}

static bool
again(struct mq_async *front, struct mq_request *q, const redisReply *reply)
{
	struct mq_cluster *all = (struct mq_cluster *)front;
	struct link *from;
	enum mq_redirect how;
	int slot, to;

	if (reply == NULL) {
		if (!all->known ||
		    (!q->command.optional &&
			mq_async_away(front, &q->command) == NULL))
			return false;
		/* Its asker hears of it, but not before it has asked. */
		TAILQ_INSERT_TAIL(&all->missed, q, link);
		ev_timer_start(front->loop, &all->soon);
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
	/* Nodes may send it round in a ring. */
	if (how == MQ_STAYS || how == MQ_LATER || is_behind(all, q) ||
	    ++q->redirected > 2)
		send_later(all, q);
	else
		send_to(all, to, q, how == MQ_ASKS);
	return true;
}

static const struct mq_async_route cluster_route = {
    .ask = ask, .again = again, .node = node};

/* --- beginning and end ----------------------------------------------------------- */

void
mq_pairs_init(struct mq_pairs *p, struct ev_loop *loop,
    const struct mq_server *server, const char *channel, const char *name,
    const struct mq_async_events *events, void *arg)
{
	const struct mq_async init = {
	    .loop = loop, .events = events, .arg = arg};
	struct mq_cluster *all;

	*p = (struct mq_pairs){.async = &p->only.main,
	    .only = {.server = server,
		.channel = channel,
		.name = name,
		.main = init,
		.wake = init}};
	/* Commands may come before it is open. */
	p->only.main.front = &p->only.main;
	if (server->url.kind != MQ_URL_CLUSTER)
		return;
	p->cluster = all = mq_xcalloc(1, sizeof(*all));
	all->model = &p->only;
	all->home = mq_slot_home(server->url.ns);
	all->front = init;
	all->front.route = &cluster_route;
	all->front.front = &all->front;
	p->async = &all->front;
	TAILQ_INIT(&all->later);
	TAILQ_INIT(&all->missed);
	memset(all->map.owner, MQ_NO_OWNER, sizeof(all->map.owner));
	ev_timer_init(&all->retry, on_retry, RETRY_S, 0);
	ev_timer_init(&all->news, on_news, NEWS_S, 0);
	ev_timer_init(&all->soon, on_soon, 0, 0);
	ev_timer_init(&all->absence, on_look, 0, LOOK_S);
	all->retry.data = all->news.data = all;
	all->soon.data = all->absence.data = all;
}

int
mq_pairs_open(struct mq_pairs *p, const char **why)
{
	static const struct mq_async_events none;
	struct mq_cluster *all = p->cluster;
	const struct mq_server *server = p->only.server;
	struct mq_server *s = &p->sentinel;
	struct mq_place_of_node *node;

	if (all != NULL) {
		all->seed =
		    mq_topology_node(&all->map, server->host, server->port);
		node = &all->map.nodes[all->seed];
		strlcpy(node->address, server->address, sizeof(node->address));
		(void)open_link(all, all->seed, NULL);
		return 0;
	}
	if (pair_open(&p->only, why) == -1)
		return -1;
	if (server->url.kind != MQ_URL_SENTINEL)
		return 0;
	mq_server_of_sentinel(s, server, server->sentinel);
	s->port = s->url.hosts->port;
	strlcpy(s->host, s->url.hosts->name, sizeof(s->host));
	strlcpy(s->address, server->sentinel_address, sizeof(s->address));
	p->news = (struct mq_async){.loop = p->async->loop, .events = &none};
	if (mq_async_open(&p->news, s, why) == 0)
		mq_async_subscribe(
		    &p->news, "+switch-master", on_switch, &p->only);
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
		pair_close(&p->only);
		mq_async_close(&p->news);
		return;
	}
	loop = all->front.loop;
	all->known = false;
	all->why[0] = '\0';
	ev_timer_stop(loop, &all->retry);
	ev_timer_stop(loop, &all->news);
	ev_timer_stop(loop, &all->soon);
	ev_timer_stop(loop, &all->absence);
	for (i = 0; i < all->map.count; i++) {
		link = all->map.nodes[i].own;
		if (link == NULL)
			continue;
		link->pair.main.missing[0] = '\0';
		link->needed = false;
		close_link(link);
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
		link = all->map.nodes[i].own;
		if (link != NULL)
			mq_server_free(&link->server);
		free(link);
	}
	if (all != NULL)
		free(all->map.nodes);
	free(all);
}
