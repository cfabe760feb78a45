#include "async.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include <hiredis/adapters/libev.h>
#include <hiredis/sds.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "parts.h"

/* --- async --------------------------------------------------------------- */

/* hiredis moves all that is left of its output buffer after each write(2), which is
 * quadratic for a large command.  So such a command is handed over in pieces, and
 * whatever is sent after it waits in the backlog. */
#define PIECE ((size_t)128 * 1024)

static void
free_request(struct mq_request *q)
{
	mq_command_free(&q->command);
	free(q);
}

static void on_reply(redisAsyncContext *, void *, void *);

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

/* The library will not call back for this request. */
void
mq_request_lose(struct mq_request *q)
{
	if (!goes_again(q, NULL))
		mq_request_answer(q, NULL);
}

/* Hands over the next piece.  Returns 1 when it was the last, -1 on failure. */
static int
send_piece(struct mq_request *q)
{
	redisAsyncContext *context = q->async->context;
	const redisCallback *last = context->replies.tail;
	const char *wire;
	size_t n, piece;
	int rv;

	wire = mq_command_wire(&q->command, &n);
	piece = n - q->sent < PIECE ? n - q->sent : PIECE;
	/* The first piece brings the callback with it. */
	if (q->sent == 0)
		rv = redisAsyncFormattedCommand(
		    context, on_reply, q, wire, piece);
	else
		rv = redisAppendFormattedCommand(
		    &context->c, wire + q->sent, piece);
	if (rv != REDIS_OK)
		return -1;
	/*
	 * hiredis 0.14 does not tell that it had no memory for the command, or
	 * for its callback, which then would get the answer of another one.
	 */
	if (context->c.err == REDIS_ERR_OOM ||
	    (q->sent == 0 && context->replies.tail == last))
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	q->sent += piece;
	return q->sent == n;
}

static void
sent_whole(struct mq_request *q)
{
	if (q->async->front == q->async && q->command.script == NULL)
		mq_command_free(&q->command);
}

/* The socket takes more: as many commands, or pieces of one, as fit. */
static void
on_room(struct ev_loop *loop, ev_io *w, int events)
{
	struct mq_async *a = w->data;
	struct mq_request *q;
	int rv;

	(void)events;
	/* The handshake waits for the server; on_reply() goes on. */
	if (!mq_tls_ready(a->tls)) {
		ev_io_stop(loop, w);
		return;
	}
	a->moved++;
	while (a->context != NULL && sdslen(a->context->c.obuf) < PIECE &&
	    (q = TAILQ_FIRST(&a->backlog)) != NULL) {
		rv = send_piece(q);
		if (rv == -1) {
			redisAsyncDisconnect(a->context);
			return;
		}
		if (rv == 1) {
			TAILQ_REMOVE(&a->backlog, q, link);
			sent_whole(q);
		}
	}
	if (TAILQ_EMPTY(&a->backlog))
		ev_io_stop(loop, w);
	if (a->context != NULL)
		redisAsyncHandleWrite(a->context);
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
	int rv = 0;

	q->async = a;
	q->sent = 0;
	if (a->context == NULL) {
		mq_request_lose(q);
		return;
	}
	/* For the next command only, and so each time that this one is sent. */
	if (q->tracked) {
		mq_command_plain(&caching, "CLIENT CACHING YES");
		mq_async_send(a, &caching, on_caching, a->front);
	}
	if (TAILQ_EMPTY(&a->backlog))
		rv = send_piece(q);
	if (rv == 1)
		sent_whole(q);
	else if (rv == -1)
		mq_request_lose(q);
	else {
		TAILQ_INSERT_TAIL(&a->backlog, q, link);
		ev_io_start(a->loop, &a->room);
	}
}

/* No answer counts any more, and down() gets the reason.  A command whose asker is of the
 * connection itself is its greeting. */
static void
mq_async_give_up(struct mq_async *a, const char *why)
{
	strlcpy(a->refusal, why, sizeof(a->refusal));
	/* All commands that are under way fail as well. */
	if (a->context != NULL)
		redisAsyncDisconnect(a->context);
}

static void
on_reply(redisAsyncContext *context, void *reply, void *arg)
{
	struct mq_request *q = arg;
	struct mq_async *a = q->async;
	const char *why =
	    reply != NULL ? mq_reply_last(reply, a->server) : NULL;
	struct mq_command eval;

	(void)context;
	/* The connection ended in the middle of sending it. */
	if (TAILQ_FIRST(&a->backlog) == q)
		TAILQ_REMOVE(&a->backlog, q, link);
	if (a->context != NULL && !TAILQ_EMPTY(&a->backlog))
		ev_io_start(a->loop, &a->room);
	if (reply != NULL)
		mq_reply_strip_script(reply);
	if (reply != NULL && q->command.script != NULL &&
	    mq_reply_noscript(reply) && a->context != NULL) {
		eval = mq_command_eval(&q->command);
		mq_command_free(&q->command);
		q->command = eval;
		mq_request_send(a, q);
		return;
	}
	if (reply != NULL && goes_again(q, reply))
		return;
	a->moved++;
	a->front->moved++;
	if (why != NULL)
		mq_async_give_up(a, why);
	/* Given up, its answers say only that. */
	if (q->asker.of != a && a->refusal[0] != '\0')
		reply = NULL;
	if (reply == NULL)
		mq_request_lose(q);
	else
		mq_request_answer(q, reply);
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
take_reply(const struct mq_asker *asker, redisReply *reply)
{
	if (asker->fn != NULL)
		((mq_async_fn *)asker->fn)(asker->arg, reply);
}

void
mq_async_send(
    struct mq_async *a, struct mq_command *c, mq_async_fn *fn, void *arg)
{
	struct mq_asker asker = {(mq_callback *)fn, arg, NULL};

	mq_async_ask(a, c, take_reply, &asker);
}

void
mq_async_flush(struct mq_async *a)
{
	redisAsyncContext *context = a->context;
	struct mq_async *node;
	int done = 0;

	for (node = a->behind; node != NULL; node = node->next)
		mq_async_flush(node);
	/* On an error the library's own next write fails in the same way; after
	 * success it need not wait for room. */
	if (context != NULL && (context->c.flags & REDIS_CONNECTED) != 0 &&
	    mq_tls_ready(a->tls) && sdslen(context->c.obuf) > 0 &&
	    redisBufferWrite(&context->c, &done) == REDIS_OK && done)
		context->ev.delWrite(context->ev.data);
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
	moved = a->moved;
	if (a->context != NULL)
		moved += a->context->c.reader->len;
	for (node = a->behind; node != NULL; node = node->next)
		if (node->context != NULL)
			moved += node->context->c.reader->len;
	if (moved == a->moved_before)
		return false;
	a->moved_before = moved;
	return true;
}

static void
on_message(redisAsyncContext *context, void *reply, void *arg)
{
	struct mq_request *q = arg;

	(void)context;
	take_reply(&q->asker, reply);
	if (reply == NULL)
		free_request(q);
}

void
mq_async_subscribe(
    struct mq_async *a, const char *channel, mq_async_fn *fn, void *arg)
{
	struct mq_request *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct mq_request){
	    .async = a, .asker = {(mq_callback *)fn, arg, NULL}};
	if (a->context == NULL ||
	    redisAsyncCommand(a->context, on_message, q, "SUBSCRIBE %s",
		channel) != REDIS_OK) {
		fn(arg, NULL);
		free_request(q);
	}
}

/* --- link ---------------------------------------------------------------- */

static void
drop_connection(struct mq_async *a)
{
	struct mq_request *q;

	a->tls = NULL;
	a->context = NULL;
	ev_io_stop(a->loop, &a->room);
	while ((q = TAILQ_FIRST(&a->backlog)) != NULL) {
		TAILQ_REMOVE(&a->backlog, q, link);
		/* Not handed over at all: it has no callback in the library. */
		if (q->sent == 0)
			mq_request_lose(q);
	}
}

/* If a read before has found nothing, hiredis_ssl waits to read even after a write that
 * waits for room.  The server, which lacks the rest of a command, would say nothing. */
static void
stop_writing(void *events)
{
	const struct mq_async *a = ((redisLibevEvents *)events)->context->data;

	if (a == NULL || a->tls == NULL || !mq_tls_wants_room(a->tls))
		redisLibevDelWrite(events);
}

static void
on_disconnect(const redisAsyncContext *context, int status)
{
	struct mq_async *a = context->data;
	redisContext *c = (redisContext *)(uintptr_t)&context->c;

	(void)status;
	if (a == NULL)
		return;
	if (context->c.err == REDIS_ERR_OOM)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	if (a->refusal[0] == '\0' &&
	    mq_tls_failure(a->tls, false, a->refusal) == 0 &&
	    !mq_last_words(c, a->refusal))
		strlcpy(a->refusal,
		    context->c.err != 0 ? context->c.errstr :
					  "connection closed",
		    sizeof(a->refusal));
	mq_error_strip(a->refusal);
	/* The library frees the context after this. */
	drop_connection(a);
	if (a->events->down != NULL)
		a->events->down(a->arg, a->refusal);
}

static void
on_connect(const redisAsyncContext *context, int status)
{
	if (status != REDIS_OK)
		on_disconnect(context, status);
}

/* The reply to AUTH or SELECT, which is of the connection; or to HELLO. */
static void
on_greeting(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_async *a = asker->arg;
	const char *why = NULL;

	if (reply == NULL)
		return;
	if (asker->of == NULL) {
		why = mq_reply_unfit(reply, a->server);
	} else if (reply->type == REDIS_REPLY_ERROR) {
		why = reply->str;
	}
	if (why != NULL)
		mq_async_give_up(a, why);
}

int
mq_async_open(
    struct mq_async *a, const struct mq_server *server, const char **why)
{
	redisAsyncContext *context = server->socket[0] != '\0' ?
	    redisAsyncConnectUnix(server->socket) :
	    redisAsyncConnect(server->address, server->port);
	bool fails = context == NULL || context->err != 0;
	struct mq_command c = {0};
	int step;

	if (a->front == NULL)
		a->front = a;
	*why = a->refusal;
	if (fails)
		strlcpy(a->refusal,
		    context == NULL		    ? "out of memory" :
			mq_redis_lacks(&context->c) ? strerror(errno) :
						      context->errstr,
		    sizeof(a->refusal));
	else if (server->url.tls)
		fails = mq_tls_start(&a->tls, &context->c, &server->url,
			    server->host, a->refusal) > 0;
	if (fails) {
		if (context != NULL)
			redisAsyncFree(context);
		return -1;
	}
	/* The library sets no close-on-exec flag. */
	fcntl(context->c.fd, F_SETFD, FD_CLOEXEC);
	if (server->socket[0] == '\0')
		redisEnableKeepAlive(&context->c);
	context->data = a;
	a->context = context;
	a->server = server;
	a->refusal[0] = '\0';
	TAILQ_INIT(&a->backlog);
	ev_io_init(&a->room, on_room, context->c.fd, EV_WRITE);
	a->room.data = a;
	redisLibevAttach(a->loop, context);
	if (a->tls != NULL)
		context->ev.delWrite = stop_writing;
	redisAsyncSetConnectCallback(context, on_connect);
	redisAsyncSetDisconnectCallback(context, on_disconnect);
	for (step = 0; mq_redis_greeting(server, step, &c); step++)
		mq_async_ask(
		    a, &c, on_greeting, &(struct mq_asker){NULL, a, a});
	mq_command_plain(&c, "HELLO");
	mq_async_ask(a, &c, on_greeting, &(struct mq_asker){NULL, a, NULL});
	return 0;
}

void
mq_async_close(struct mq_async *a)
{
	redisAsyncContext *context = a->context;

	if (context == NULL)
		return;
	context->data = NULL;
	drop_connection(a);
	redisAsyncFree(context);
}
