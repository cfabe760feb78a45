#include "async.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "parts.h"

/* --- commands -------------------------------------------------------------------- */

static void
free_request(struct mq_request *q)
{
	mq_command_free(&q->command);
	free(q);
}

static bool
goes_again(struct mq_request *q, const redisReply *reply)
{
	struct mq_async *front = q->async->front;

	return front->route != NULL && front->route->again(front, q, reply);
}

void
mq_request_answer(struct mq_request *q, redisReply *reply)
{
	q->take(&q->asker, reply);
	free_request(q);
}

void
mq_request_lose(struct mq_request *q)
{
	if (!goes_again(q, NULL))
		mq_request_answer(q, NULL);
}

/* Hands over as much of the backlog as there is room for. */
static void
feed(struct mq_async *a)
{
	struct mq_request *q;
	const char *wire;
	size_t n, piece;

	while ((q = TAILQ_FIRST(&a->backlog)) != NULL) {
		wire = mq_command_wire(&q->command, &n);
		piece = mq_link_put(&a->link, wire + q->sent, n - q->sent);
		if (q->sent == 0 && piece > 0)
			mq_link_expect(&a->link);
		q->sent += piece;
		if (q->sent < n)
			return;
		TAILQ_REMOVE(&a->backlog, q, link);
		TAILQ_INSERT_TAIL(&a->sent, q, link);
		if (a->front == a && q->command.script == NULL)
			mq_command_free(&q->command);
	}
}

static void
watch(struct mq_async *a)
{
	short wants = mq_link_wants(&a->link);

	if (wants & POLLIN)
		ev_io_start(a->loop, &a->readable);
	else
		ev_io_stop(a->loop, &a->readable);
	if (wants & POLLOUT)
		ev_io_start(a->loop, &a->writable);
	else
		ev_io_stop(a->loop, &a->writable);
}

static void
on_caching(void *arg, redisReply *reply)
{
	const struct mq_async *front = arg;

	if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
		front->events->untracked(
		    front->arg, "CLIENT CACHING", reply->str);
}

void
mq_request_send(struct mq_async *a, struct mq_request *q)
{
	struct mq_command caching = {0};

	q->async = a;
	q->sent = 0;
	if (a->link.context == NULL) {
		mq_request_lose(q);
		return;
	}
	/* For the next command only, and so each time that this one is sent. */
	if (q->tracked) {
		mq_command_plain(&caching, "CLIENT CACHING YES");
		mq_async_send(a, &caching, on_caching, a->front);
	}
	TAILQ_INSERT_TAIL(&a->backlog, q, link);
	feed(a);
	watch(a);
}

/* The server may refuse a command that it has not whole. */
static void
take_reply(struct mq_async *a, redisReply *reply)
{
	struct mq_requests *list =
	    TAILQ_EMPTY(&a->sent) ? &a->backlog : &a->sent;
	struct mq_request *q = TAILQ_FIRST(list);
	struct mq_command eval;

	if (q == NULL) {
		mq_link_lose(&a->link, MQ_EXIT_UNAVAILABLE, "unexpected reply");
		return;
	}
	TAILQ_REMOVE(list, q, link);
	if (q->command.script != NULL && mq_reply_noscript(reply)) {
		eval = mq_command_eval(&q->command);
		mq_command_free(&q->command);
		q->command = eval;
		mq_request_send(a, q);
	} else if (!goes_again(q, reply)) {
		mq_request_answer(q, reply);
	}
}

void
mq_async_ask(struct mq_async *a, struct mq_command *c, mq_async_take *take,
    const struct mq_asker *asker)
{
	struct mq_request *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct mq_request){.async = a,
	    .take = take,
	    .asker = *asker,
	    .command = *c,
	    .tracked = c->tracked};
	*c = (struct mq_command){.cluster = c->cluster};
	if (a->route != NULL)
		a->route->ask(a, q);
	else
		mq_request_send(a, q);
}

static void
answer_asker(const struct mq_asker *asker, redisReply *reply)
{
	if (asker->raw != NULL)
		asker->raw(asker->arg, reply);
}

void
mq_async_send(
    struct mq_async *a, struct mq_command *c, mq_async_fn *fn, void *arg)
{
	struct mq_asker asker = {.raw = fn, .arg = arg};

	mq_async_ask(a, c, answer_asker, &asker);
}

void
mq_async_flush(struct mq_async *a)
{
	struct mq_async *node;

	for (node = a->behind; node != NULL; node = node->next)
		mq_async_flush(node);
	if (mq_link_unwritten(&a->link)) {
		mq_link_move(&a->link, POLLOUT);
		feed(a);
		watch(a);
	}
}

struct mq_command
mq_async_command(const struct mq_async *a)
{
	return (struct mq_command){.cluster = a->route != NULL};
}

const char *
mq_async_away(const struct mq_async *a, const struct mq_command *c)
{
	const struct mq_async *node =
	    a->route != NULL ? a->route->node(a, c->slot) : NULL;

	return node != NULL && node->missing[0] != '\0' ? node->missing : NULL;
}

bool
mq_async_moves(struct mq_async *a, const struct mq_command *c)
{
	const struct mq_async *node;
	size_t moved;

	if (a->route != NULL && c != NULL)
		a = a->route->node(a, c->slot);
	if (a == NULL)
		return false;
	moved = a->link.moved;
	for (node = a->behind; node != NULL; node = node->next)
		moved += node->link.moved;
	if (moved == a->moved_before)
		return false;
	a->moved_before = moved;
	return true;
}

/* --- channels -------------------------------------------------------------------- */

struct mq_listener {
	TAILQ_ENTRY(mq_listener) link;
	mq_async_fn *fn;
	void *arg;
	char channel[];
};

void
mq_async_subscribe(
    struct mq_async *a, const char *channel, mq_async_fn *fn, void *arg)
{
	struct mq_command c = {0};
	struct mq_listener *l = mq_xcalloc(1, sizeof(*l) + strlen(channel) + 1);

	l->fn = fn;
	l->arg = arg;
	memcpy(l->channel, channel, strlen(channel));
	TAILQ_INSERT_TAIL(&a->listeners, l, link);
	a->link.listens = true;
	mq_command_plain(&c, "SUBSCRIBE");
	mq_command_str(&c, channel);
	mq_async_send(a, &c, fn, arg);
}

/* Whether a reply is a message of a channel; whoever listens gets it. */
static bool
is_message(struct mq_async *a, redisReply *reply)
{
	struct mq_listener *l;

	if (!a->link.listens || !mq_reply_is(reply, "$$* *") ||
	    reply->elements != 3 ||
	    strcmp(reply->element[0]->str, "message") != 0)
		return false;
	TAILQ_FOREACH(l, &a->listeners, link)
		if (strcmp(reply->element[1]->str, l->channel) == 0) {
			l->fn(l->arg, reply);
			break;
		}
	return true;
}

/* --- link ------------------------------------------------------------------------ */

static void
drop_link(struct mq_async *a)
{
	struct mq_requests list = TAILQ_HEAD_INITIALIZER(list);
	struct mq_listener *l;
	struct mq_request *q;

	ev_io_stop(a->loop, &a->readable);
	ev_io_stop(a->loop, &a->writable);
	mq_link_close(&a->link);
	while ((l = TAILQ_FIRST(&a->listeners)) != NULL) {
		TAILQ_REMOVE(&a->listeners, l, link);
		free(l);
	}
	TAILQ_CONCAT(&list, &a->sent, link);
	TAILQ_CONCAT(&list, &a->backlog, link);
	while ((q = TAILQ_FIRST(&list)) != NULL) {
		TAILQ_REMOVE(&list, q, link);
		mq_request_lose(q);
	}
}

static void
end_link(struct mq_async *a)
{
	char why[sizeof(a->link.why)];

	if (a->link.context->err == REDIS_ERR_OOM)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	strlcpy(why, a->link.why, sizeof(why));
	drop_link(a);
	if (a->events->down != NULL)
		a->events->down(a->arg, why);
}

/* A callback may close the link. */
static void
on_ready(struct ev_loop *loop, ev_io *w, int events)
{
	struct mq_async *a = w->data;
	redisReply *reply;

	(void)loop;
	mq_link_move(&a->link, events & EV_WRITE ? POLLOUT : POLLIN);
	while ((reply = mq_link_next(&a->link)) != NULL) {
		if (!is_message(a, reply))
			take_reply(a, reply);
		freeReplyObject(reply);
	}
	if (a->link.state == MQ_LINK_LOST) {
		end_link(a);
	} else if (a->link.state != MQ_LINK_CLOSED) {
		feed(a);
		watch(a);
	}
}

int
mq_async_open(
    struct mq_async *a, const struct mq_server *server, const char **why)
{
	struct mq_link *l = &a->link;

	if (a->front == NULL)
		a->front = a;
	a->server = server;
	TAILQ_INIT(&a->sent);
	TAILQ_INIT(&a->backlog);
	TAILQ_INIT(&a->listeners);
	mq_link_open(l, server, server->socket[0] != '\0' ? NULL : server->host,
	    server->address, server->port, true);
	*why = l->why;
	if (l->state == MQ_LINK_LOST) {
		mq_link_close(l);
		return -1;
	}
	ev_io_init(&a->readable, on_ready, l->context->fd, EV_READ);
	ev_io_init(&a->writable, on_ready, l->context->fd, EV_WRITE);
	a->readable.data = a->writable.data = a;
	watch(a);
	return 0;
}

void
mq_async_close(struct mq_async *a)
{
	if (a->link.context != NULL)
		drop_link(a);
}
