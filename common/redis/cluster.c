#include "cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "reply.h"

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

static void
send_to_owner(struct mq_cluster *all, struct mq_request *q)
{
	send_to(all, owner_of(all, q), q);
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
		send_to_owner(all, q);
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
		send_to_owner(all, q);
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

/* Its asker hears of it, but not before it has asked. */
static bool
miss(struct mq_cluster *all, struct mq_request *q)
{
	if (!all->known ||
	    (!q->command.optional &&
		away(&all->front, q->command.slot) == NULL))
		return false;
	TAILQ_INSERT_TAIL(&all->missed, q, link);
	ev_timer_start(all->front.loop, &all->missing);
	return true;
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
	const struct mq_pair *pair = q->async->arg;
	struct link *from;
	int slot, to;

	if (reply == NULL)
		return miss(all, q);
	from = pair->arg;
	if (q->command.optional)
		mq_link_heard(from);
	if (!mq_topology_redirects(reply) && !mq_reply_busy(reply))
		return false;
	to = mq_topology_redirect(&all->map, reply->str, from->number, &slot);
	ev_timer_start(front->loop, &all->news);
	if (to != -1 && reply->str[0] == 'M')
		all->map.owner[slot] = (int16_t)to;
	if (to == -1 || is_behind(all, q))
		send_later(all, q);
	else if (reply->str[0] == 'M')
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

struct mq_cluster *
mq_cluster_new(struct ev_loop *loop, const struct mq_server *server,
    const char *channel, const char *name, const struct mq_pair_events *events,
    void *arg)
{
	struct mq_cluster *all = mq_xcalloc(1, sizeof(*all));

	*all = (struct mq_cluster){.server = server,
	    .channel = channel,
	    .name = name,
	    .events = events,
	    .arg = arg,
	    .home = mq_slot_home(server->url.ns)};
	all->front = (struct mq_async){
	    .loop = loop, .route = &cluster_route, .arg = all};
	TAILQ_INIT(&all->later);
	TAILQ_INIT(&all->missed);
	mq_topology_init(&all->map);
	ev_timer_init(&all->retry, on_retry, RETRY_S, 0);
	ev_timer_init(&all->news, on_news, NEWS_S, 0);
	ev_timer_init(&all->failing, mq_link_failed, 0, 0);
	ev_timer_init(&all->missing, on_missing, 0, 0);
	ev_timer_init(&all->absence, mq_link_look, 0, LOOK_S);
	all->retry.data = all->news.data = all->failing.data = all;
	all->missing.data = all->absence.data = all;
	return all;
}

struct mq_async *
mq_cluster_async(struct mq_cluster *all)
{
	return &all->front;
}

/* If that fails, down() follows. */
void
mq_cluster_open(struct mq_cluster *all)
{
	const struct mq_server *server = all->server;
	struct mq_place_of_node *node;

	all->seed = mq_topology_node(&all->map, server->host, server->port);
	node = &all->map.nodes[all->seed];
	strlcpy(node->address, server->address, sizeof(node->address));
	(void)mq_link_open(all, all->seed, NULL);
}

static void
lose_all(struct mq_requests *list)
{
	struct mq_request *q;

	while ((q = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, q, link);
		mq_request_lose(q);
	}
}

void
mq_cluster_close(struct mq_cluster *all)
{
	struct ev_loop *loop = all->front.loop;
	struct link *link;
	int i;

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
mq_cluster_free(struct mq_cluster *all)
{
	struct link *link;
	int i;

	for (i = 0; i < all->map.count; i++) {
		link = mq_link_used(all, i);
		if (link == NULL)
			continue;
		mq_server_free(&link->server);
		free(link);
	}
	mq_topology_free(&all->map);
	free(all);
}
