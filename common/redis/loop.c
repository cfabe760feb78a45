/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "loop.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "parts.h"

/* A link on the loop. */
struct line {
	struct mq_loop *of;
	struct mq_node *node;
	struct pair *pair;
	ev_io io;
	short watched; /* events, as for poll(2) */
};

/* The connections to one server. */
struct pair {
	struct mq_loop *of;
	struct line main, wake;
	struct mq_node waker;
	long long former; /* CLIENT ID before; 0: there was no connection */
	/* Nodes of a cluster only: */
	bool open;
	double tried_s;		  /* not ready since (steady time); 0: ready */
	double missing_s;	  /* away since (steady time) */
	struct mq_timer patience; /* for connecting, and optional commands */
};

/* --- lines ------------------------------------------------------------------------ */

static void on_message(struct line *, const redisReply *);
static void on_down(struct line *, const char *why);
static void be_patient(struct pair *);

static void
watch(struct line *line)
{
	const struct mq_link *l = &line->node->link;
	short wants = mq_link_wants(l);

	if (ev_is_active(&line->io) && wants == line->watched)
		return;
	ev_io_stop(line->of->loop, &line->io);
	ev_io_set(&line->io, l->context->fd,
	    (wants & POLLIN ? EV_READ : 0) | (wants & POLLOUT ? EV_WRITE : 0));
	ev_io_start(line->of->loop, &line->io);
	line->watched = wants;
}

/* Callbacks may close the link. */
static void
on_ready_socket(struct ev_loop *loop, ev_io *w, int events)
{
	struct line *line = w->data;
	struct mq_link *l = &line->node->link;
	char why[sizeof(l->why)];
	struct mq_request *q;
	redisReply *reply;

	(void)loop;
	mq_link_move(l,
	    (short)((events & EV_READ ? POLLIN : 0) |
		(events & EV_WRITE ? POLLOUT : 0)));
	while ((reply = mq_link_next(l, &q)) != NULL)
		if (q != NULL) {
			mq_route_settle(&line->of->redis, line->node, q, reply);
		} else {
			on_message(line, reply);
			freeReplyObject(reply);
		}
	if (l->state == MQ_LINK_OPEN && line == &line->pair->main &&
	    line->of->redis.cluster != NULL)
		be_patient(line->pair);
	if (l->state == MQ_LINK_LOST) {
		if (l->context->err == REDIS_ERR_OOM)
			mq_die(MQ_EXIT_AGAIN, "out of memory");
		strlcpy(why, l->why, sizeof(why));
		on_down(line, why);
	} else if (l->state != MQ_LINK_CLOSED) {
		watch(line);
	}
}

static int
open_line(struct line *line, const char **why)
{
	struct mq_node *node = line->node;
	const struct mq_server *s = node->server;
	struct mq_link *l = &node->link;

	mq_link_open(l, s, s->socket[0] != '\0' ? NULL : s->host, s->address,
	    s->port, true);
	*why = l->why;
	if (l->state == MQ_LINK_LOST) {
		mq_link_close(l);
		return -1;
	}
	ev_init(&line->io, on_ready_socket);
	line->io.data = line;
	watch(line);
	return 0;
}

static void
close_line(struct line *line)
{
	ev_io_stop(line->of->loop, &line->io);
	mq_link_close(&line->node->link);
	mq_route_lose(&line->of->redis, line->node);
}

static void
tell(struct line *line, struct mq_command *c, mq_reply_fn *fn, void *arg)
{
	mq_route_send_to(
	    &line->of->redis, line->node, mq_request_new(c, fn, arg));
}

static void
subscribe(struct line *line, const char *channel, mq_reply_fn *fn)
{
	struct mq_command c = {0};

	line->node->link.listens = true;
	mq_command_plain(&c, "SUBSCRIBE");
	mq_command_str(&c, channel);
	tell(line, &c, fn, line->of);
}

/* --- news ------------------------------------------------------------------------- */

static bool
is_refused(const struct mq_loop *all, const char *what, const redisReply *reply)
{
	if (reply == NULL || reply->type != REDIS_REPLY_ERROR)
		return false;
	all->events->untracked(all->arg, what, reply->str);
	return true;
}

static void
on_cached(void *arg, redisReply *reply)
{
	(void)is_refused(arg, "CLIENT CACHING", reply);
}

static void
on_tracking(void *arg, redisReply *reply)
{
	(void)is_refused(arg, "CLIENT TRACKING", reply);
}

static void
on_subscribed(void *arg, redisReply *reply)
{
	(void)is_refused(arg, "SUBSCRIBE", reply);
}

/* A user without the right to a channel may neither send nor listen there; SUBSCRIBE would
 * then break the connection. */
static void
on_published(void *arg, redisReply *reply)
{
	struct pair *p = arg;

	if (reply != NULL && !is_refused(p->of, "PUBLISH", reply))
		subscribe(&p->wake, p->of->channel, on_subscribed);
}

static void
on_changed(const struct mq_loop *all, const redisReply *keys)
{
	size_t i;

	for (i = 0; i < keys->elements; i++)
		all->events->changed(
		    all->arg, keys->element[i]->str, keys->element[i]->len);
	/* FLUSHALL names no keys. */
	if (keys->type != REDIS_REPLY_ARRAY)
		all->events->changed(all->arg, NULL, 0);
}

/* All nodes of a cluster pass a call on; only that from the owner of its text's slot
 * counts. */
static void
on_called(const struct mq_loop *all, const struct mq_node *node,
    const redisReply *text)
{
	const struct mq_cluster *c = all->redis.cluster;

	if (c == NULL ||
	    c->map.owner[mq_slot_of(text->str, text->len)] == node->number)
		all->events->called(all->arg, text->str, text->len);
}

#define CHANGED "__redis__:invalidate"

/* A sentinel's message says "NAME OLD-ADDRESS OLD-PORT ADDRESS PORT". */
static void
on_message(struct line *line, const redisReply *message)
{
	const struct mq_loop *all = line->of;
	const redisReply *of = message->element[1], *text = message->element[2];
	const char *name = all->redis.server->url.path;
	bool words = text->type == REDIS_REPLY_STRING;
	size_t n;

	if (line->node == &all->sentinel_node) {
		n = strlen(name);
		if (words && strncmp(text->str, name, n) == 0 &&
		    text->str[n] == ' ')
			all->events->down(all->arg, "the master has changed");
	} else if (strcmp(of->str, CHANGED) == 0) {
		on_changed(all, text);
	} else if (words) {
		on_called(all, line->pair->main.node, text);
	}
}

/* --- the end of the former connection --------------------------------------------- */

/*
 * The server may still have unread commands of a connection that was given up, and carry
 * them out after those of the next connection, which therefore kills it first.  If the
 * server refuses CLIENT LIST or CLIENT KILL, ready() is called all the same.
 */

static void
on_id(void *arg, redisReply *reply)
{
	struct pair *p = arg;

	if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
		p->former = reply->integer;
}

static void on_ready(struct pair *);

/* Names this connection and asks for its CLIENT ID, for the next one to kill it. */
static void
mark_connection(struct pair *p)
{
	struct mq_command cmd = {0};

	mq_command_plain(&cmd, "CLIENT SETNAME");
	mq_command_str(&cmd, p->of->name);
	tell(&p->main, &cmd, NULL, NULL);
	mq_command_plain(&cmd, "CLIENT ID");
	tell(&p->main, &cmd, on_id, p);
	on_ready(p);
}

/* After a restart of the server, another client may have the former CLIENT ID, but not the
 * name as well. */
static void
on_listed(void *arg, redisReply *reply)
{
	struct pair *p = arg;
	struct mq_command cmd = {0};
	char name[64];

	if (reply == NULL)
		return;
	snprintf(name, sizeof(name), " name=%s ", p->of->name);
	if (reply->str != NULL && strstr(reply->str, name) != NULL) {
		mq_command_plain(&cmd, "CLIENT KILL ID");
		mq_command_int(&cmd, p->former);
		tell(&p->main, &cmd, NULL, NULL);
	}
	mark_connection(p);
}

/* The listening connection has its CLIENT ID, to which that for commands redirects its
 * tracking. */
static void
on_listener_id(void *arg, redisReply *reply)
{
	struct pair *p = arg;
	struct mq_command cmd = {0};

	if (reply == NULL)
		return;
	if (reply->type == REDIS_REPLY_INTEGER) {
		subscribe(&p->wake, CHANGED, on_subscribed);
		mq_command_plain(&cmd, "CLIENT TRACKING ON OPTIN REDIRECT");
		mq_command_int(&cmd, reply->integer);
		tell(&p->main, &cmd, on_tracking, p->of);
		/* Tests the rights to the channel, where nobody listens yet. */
		mq_command_plain(&cmd, "PUBLISH");
		mq_command_str(&cmd, p->of->channel);
		mq_command_str(&cmd, "");
		cmd.tracked = true;
		tell(&p->main, &cmd, on_published, p);
	} else {
		on_tracking(p->of, reply);
	}
	if (p->former == 0) {
		mark_connection(p);
		return;
	}
	mq_command_plain(&cmd, "CLIENT LIST ID");
	mq_command_int(&cmd, p->former);
	tell(&p->main, &cmd, on_listed, p);
}

static int
open_pair(struct pair *p, const char **why)
{
	struct mq_command cmd = {0};

	if (open_line(&p->main, why) == -1 ||
	    (p->of->channel != NULL && open_line(&p->wake, why) == -1))
		return -1;
	if (p->of->channel == NULL)
		return 0;
	mq_command_plain(&cmd, "CLIENT ID");
	tell(&p->wake, &cmd, on_listener_id, p);
	return 0;
}

static void
close_pair(struct pair *p)
{
	p->open = p->main.node->ready = false;
	mq_timer_stop(&p->patience);
	close_line(&p->main);
	close_line(&p->wake);
}

/* --- later ------------------------------------------------------------------------ */

/*
 * Timers.  SOON, in the next turn: answers missed commands, and ends a connection that has
 * failed.  RETRY: sends again what no node took.  NEWS, after a slot has moved: reports any
 * key as changed, since no node may have reported a change meanwhile.  LOOK: looks for nodes
 * that are away.
 */
enum { SOON, RETRY, NEWS, LOOK };
static const double after_s[MQ_LOOP_TIMERS] = {
    [RETRY] = 0.05, [NEWS] = 1.0, [LOOK] = 1.0};

static void
start_timer(struct mq_loop *all, int which)
{
	struct mq_timer *timer = &all->timers[which];

	if (!mq_timer_runs(timer))
		mq_timer_start(timer, after_s[which], 0);
}

/* --- nodes of a cluster ----------------------------------------------------------- */

/* Longest wait for a node to be ready, and for replies to optional commands. */
#define PATIENCE_S 4.0
#define AWAY_S	   1.0 /* pause before a node that is away is tried again */
#define ANEW_S	   2.0 /* a needed node that is not ready for longer is away */

static bool
is_away(const struct mq_node *node)
{
	return node != NULL && node->missing != NULL;
}

static void
fail(struct mq_loop *all, const struct pair *p, const char *why)
{
	snprintf(all->why, sizeof(all->why), "%s: %s",
	    p->main.node->server->name, why);
	start_timer(all, SOON);
}

/* A pair is lost: the others go on without its node if they can.  If the connection fails,
 * down() follows in the next turn, as other links may be in the middle of something.  The
 * first node cannot be missed: it knows the others. */
static void
lose_pair(struct pair *p, const char *why)
{
	struct mq_loop *all = p->of;
	struct mq_node *node = p->main.node;
	double now = mq_clock_steady_s();
	bool goes_on = all->known &&
	    (!node->needed || (!node->ready && now - p->tried_s >= ANEW_S));

	if (node->ready)
		p->tried_s = now;
	node->ready = false;
	if (!goes_on) {
		fail(all, p, why);
		close_line(&p->main);
		close_line(&p->wake);
		return;
	}
	p->missing_s = now;
	ev_io_stop(all->loop, &p->main.io);
	mq_route_miss(&all->redis, node, why);
	close_pair(p);
	if (node->needed)
		start_timer(all, LOOK);
}

static void
on_down(struct line *line, const char *why)
{
	struct mq_loop *all = line->of;

	if (line->node == &all->sentinel_node) {
		close_line(line);
	} else if (all->redis.cluster != NULL) {
		lose_pair(line->pair, why);
	} else {
		close_line(line);
		all->events->down(all->arg, why);
	}
}

static void
on_patience(void *arg)
{
	struct pair *p = arg;
	const struct mq_node *node = p->main.node;

	if (p->open && !(node->ready && node->needed))
		lose_pair(p, MQ_REDIS_LATE);
}

static void
be_patient(struct pair *p)
{
	if (p->main.node->optional > 0 || !p->main.node->ready)
		mq_timer_start(&p->patience, PATIENCE_S, 0);
	else
		mq_timer_stop(&p->patience);
}

static int
slots_away(const struct mq_loop *all)
{
	const struct mq_redis *r = &all->redis;
	int slot, n = 0;

	for (slot = 0; slot < MQ_SLOTS; slot++)
		n += is_away(mq_route_known(r, r->cluster->map.owner[slot]));
	return n;
}

static void
on_slots(void *arg, redisReply *reply)
{
	struct pair *p = arg;
	struct mq_loop *all = p->of;
	int away = slots_away(all);

	if (reply == NULL)
		return;
	if (reply->type == REDIS_REPLY_ERROR) {
		fail(all, p, reply->str);
	} else if (mq_topology_update(&all->redis.cluster->map, reply,
		       p->main.node->number) == -1) {
		fail(all, p, "unexpected reply");
	} else if (!all->known) {
		all->known = true;
		all->events->ready(all->arg);
	} else if (slots_away(all) < away) {
		fail(all, p, "the cluster has changed");
	}
}

static void
ask_slots(struct pair *p)
{
	struct mq_command c = {0};

	mq_command_plain(&c, "CLUSTER SLOTS");
	tell(&p->main, &c, on_slots, p);
}

static void
on_ready(struct pair *p)
{
	struct mq_loop *all = p->of;
	struct mq_node *node = p->main.node;

	if (all->redis.cluster == NULL) {
		all->events->ready(all->arg);
		return;
	}
	node->ready = true;
	p->tried_s = 0;
	be_patient(p);
	if (is_away(node) && node->needed)
		fail(all, p, "the node answers again");
	free(node->missing);
	node->missing = NULL;
	if (!all->known)
		ask_slots(p);
	mq_route_ready(&all->redis, node);
}

static struct pair *
pair_new(struct mq_loop *all, struct mq_node *node)
{
	struct pair *p = mq_xcalloc(1, sizeof(*p));

	p->of = all;
	p->waker.number = -1;
	p->waker.server = node->server;
	p->main = (struct line){.of = all, .node = node, .pair = p};
	p->wake = (struct line){.of = all, .node = &p->waker, .pair = p};
	p->waker.own = &p->wake;
	mq_timer_init(&p->patience, all->loop, on_patience, p);
	node->own = &p->main;
	return p;
}

static struct pair *
pair_of(const struct mq_node *node)
{
	const struct line *line = node != NULL ? node->own : NULL;

	return line != NULL ? line->pair : NULL;
}

static void
connect_pair(struct pair *p)
{
	struct mq_node *node = p->main.node;
	const struct mq_place_of_node *at =
	    &p->of->redis.cluster->map.nodes[node->number];
	struct mq_server *server = node->server;
	const char *why = "its address is not known";

	p->open = true;
	if (p->tried_s == 0)
		p->tried_s = mq_clock_steady_s();
	be_patient(p);
	strlcpy(server->host, at->host, sizeof(server->host));
	strlcpy(server->address, at->address, sizeof(server->address));
	server->port = at->port;
	if (*at->address == '\0' || open_pair(p, &why) == -1)
		lose_pair(p, why);
}

/* --- driver ----------------------------------------------------------------------- */

/* Begins to connect to the node, unless it was away for less than AWAY_S. */
static bool
connect_node(
    struct mq_redis *r, struct mq_node **at, const struct mq_request *q)
{
	struct mq_loop *all = (struct mq_loop *)r;
	struct mq_node *node = *at;
	struct pair *p = pair_of(node);

	if (!all->known)
		return false;
	if (p == NULL)
		p = pair_new(all, node);
	node->needed |= !q->optional;
	if (!p->open &&
	    (!is_away(node) || mq_clock_steady_s() - p->missing_s >= AWAY_S))
		connect_pair(p);
	return p->open;
}

/* If a single server is busy, the caller of the command gets its error, and decides. */
static enum mq_redirect
refused(struct mq_redis *r, const struct mq_request *q, redisReply **reply,
    enum mq_redirect how)
{
	struct mq_loop *all = (struct mq_loop *)r;

	(void)q;
	(void)reply;
	if (r->cluster == NULL)
		return MQ_STAYS;
	start_timer(all, NEWS);
	return how;
}

static void
changed(struct mq_redis *r, struct mq_node *node)
{
	struct mq_loop *all = (struct mq_loop *)r;
	struct pair *p = pair_of(node);

	if (r->missed.first != NULL)
		start_timer(all, SOON);
	if (r->later.first != NULL)
		start_timer(all, RETRY);
	if (node == NULL || node->link.context == NULL)
		return;
	watch(node->own);
	if (node->optional > 0 && p != NULL && !mq_timer_runs(&p->patience))
		be_patient(p);
}

static const struct mq_driver driver = {.connect = connect_node,
    .refused = refused,
    .changed = changed,
    .cached = on_cached};

/* --- timers ----------------------------------------------------------------------- */

/* Tries to connect to nodes that are away, and asks another node for their slots. */
static void
on_look(void *arg)
{
	struct mq_loop *all = arg;
	struct mq_redis *r = &all->redis;
	struct pair *p, *ready = NULL;
	struct mq_node *node;
	bool away = false;
	int i = 0;

	while ((node = mq_route_next(r, &i)) != NULL) {
		p = pair_of(node);
		if (p != NULL && is_away(node) && node->needed) {
			away = true;
			if (!p->open)
				connect_pair(p);
		} else if (p != NULL && node->ready) {
			ready = p;
		}
	}
	if (away)
		start_timer(all, LOOK);
	if (away && ready != NULL)
		ask_slots(ready);
}

static void
on_soon(void *arg)
{
	struct mq_loop *all = arg;
	char why[sizeof(all->why)];

	mq_route_missed(&all->redis);
	strlcpy(why, all->why, sizeof(why));
	all->why[0] = '\0';
	if (*why != '\0')
		all->events->down(all->arg, why);
}

static void
on_retry(void *arg)
{
	struct mq_loop *all = arg;

	mq_route_retry(&all->redis);
}

static void
on_news(void *arg)
{
	const struct mq_loop *all = arg;

	all->events->changed(all->arg, NULL, 0);
}

static void (*const fire[MQ_LOOP_TIMERS])(void *) = {
    [SOON] = on_soon, [RETRY] = on_retry, [NEWS] = on_news, [LOOK] = on_look};

/* --- beginning and end ------------------------------------------------------------ */

void
mq_loop_init(struct mq_loop *all, struct ev_loop *loop,
    struct mq_server *server, const char *channel, const char *name,
    const struct mq_loop_events *events, void *arg)
{
	struct mq_redis *r = &all->redis;
	int i;

	*all = (struct mq_loop){.redis = {.server = server,
				    .only.server = server,
				    .home = -1,
				    .driver = &driver},
	    .loop = loop,
	    .channel = channel,
	    .name = name,
	    .events = events,
	    .arg = arg};
	if (server->url.kind == MQ_URL_CLUSTER)
		mq_route_cluster(r);
	else
		(void)pair_new(all, &r->only);
	(void)pair_new(all, &all->sentinel_node);
	for (i = 0; i < MQ_LOOP_TIMERS; i++)
		mq_timer_init(&all->timers[i], loop, fire[i], all);
}

/* A failure does not matter: the master's own connection will end, too. */
static void
open_sentinel(struct mq_loop *all)
{
	const struct mq_server *server = all->redis.server;
	struct mq_server *s = &all->sentinel;
	const char *why;

	mq_server_behind(s, server, &server->url.hosts[server->sentinel], true);
	s->port = s->url.hosts->port;
	strlcpy(s->host, s->url.hosts->name, sizeof(s->host));
	strlcpy(s->address, server->sentinel_address, sizeof(s->address));
	all->sentinel_node.server = s;
	if (open_line(all->sentinel_node.own, &why) == 0)
		subscribe(all->sentinel_node.own, "+switch-master", NULL);
}

int
mq_loop_open(struct mq_loop *all, const char **why)
{
	struct mq_redis *r = &all->redis;
	const struct mq_server *server = r->server;
	struct mq_place_of_node *place;
	struct mq_node *node;
	struct pair *p;

	if (r->cluster == NULL) {
		if (open_pair(pair_of(&r->only), why) == -1)
			return -1;
		if (server->url.kind == MQ_URL_SENTINEL)
			open_sentinel(all);
		return 0;
	}
	r->cluster->last =
	    mq_topology_node(&r->cluster->map, server->host, server->port);
	place = &r->cluster->map.nodes[r->cluster->last];
	strlcpy(place->address, server->address, sizeof(place->address));
	node = mq_route_node(r, r->cluster->last);
	p = pair_of(node);
	connect_pair(p != NULL ? p : pair_new(all, node));
	return 0;
}

void
mq_loop_close(struct mq_loop *all)
{
	struct mq_redis *r = &all->redis;
	struct mq_node *node;
	int i;

	all->known = false;
	all->why[0] = '\0';
	for (i = 0; i < MQ_LOOP_TIMERS; i++)
		mq_timer_stop(&all->timers[i]);
	close_pair(pair_of(&all->sentinel_node));
	for (i = 0; (node = mq_route_next(r, &i)) != NULL;) {
		free(node->missing);
		node->missing = NULL;
		node->needed = false;
		if (pair_of(node) != NULL)
			close_pair(pair_of(node));
	}
	mq_route_drop(r);
}

void
mq_loop_free(struct mq_loop *all)
{
	struct mq_redis *r = &all->redis;
	struct mq_node *node;
	int i = 0;

	mq_loop_close(all);
	free(pair_of(&all->sentinel_node));
	while ((node = mq_route_next(r, &i)) != NULL)
		free(pair_of(node));
	mq_route_close(r);
}

void
mq_loop_flush(struct mq_redis *r)
{
	struct mq_node *node;
	int i = 0;

	while ((node = mq_route_next(r, &i)) != NULL)
		if (mq_link_unwritten(&node->link)) {
			mq_link_move(&node->link, POLLOUT);
			watch(node->own);
		}
}
