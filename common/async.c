#include "async.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include <hiredis/adapters/libev.h>

#include "redis.h"
#include "say.h"
#include "xalloc.h"

/* One command under way.  A script keeps its arguments until the server is
 * known to have it. */
struct request {
	struct mq_async *async;
	mq_async_fn *fn;
	void *arg;
	struct mq_command script; /* zeroed for a plain command */
};

static void
request_free(struct request *q)
{
	mq_command_free(&q->script);
	free(q);
}

static void on_reply(redisAsyncContext *, void *, void *);

/* The whole call again with the text of the script; q lives on. */
static void
send_text(struct request *q)
{
	struct mq_buf wire = {0};
	const char *args;
	size_t n;

	mq_command_eval_head(&q->script, &wire);
	args = mq_command_args(&q->script, &n);
	mq_buf_add(&wire, args, n);
	mq_command_free(&q->script);
	q->script.script = NULL;
	redisAsyncFormattedCommand(
	    q->async->context, on_reply, q, wire.data, wire.len);
	mq_buf_free(&wire);
}

static void
on_reply(redisAsyncContext *context, void *reply, void *arg)
{
	struct request *q = arg;

	(void)context;
	if (reply != NULL && q->script.script != NULL &&
	    mq_reply_noscript(reply) && q->async->context != NULL) {
		send_text(q);
		return;
	}
	if (q->fn != NULL)
		q->fn(q->arg, reply);
	request_free(q);
}

void
mq_async_send(
    struct mq_async *a, struct mq_command *c, mq_async_fn *fn, void *arg)
{
	struct request *q = mq_xcalloc(1, sizeof(*q));
	const char *wire;
	size_t n;

	*q = (struct request){.async = a, .fn = fn, .arg = arg};
	wire = mq_command_wire(c, &n);
	if (a->context == NULL ||
	    redisAsyncFormattedCommand(a->context, on_reply, q, wire, n) !=
		REDIS_OK) {
		/* Nobody will call back for it. */
		if (fn != NULL)
			fn(arg, NULL);
		free(q);
		return;
	}
	if (c->script != NULL) {
		q->script = *c;
		*c = (struct mq_command){0};
	}
}

static void
on_message(redisAsyncContext *context, void *reply, void *arg)
{
	struct request *q = arg;

	(void)context;
	q->fn(q->arg, reply);
	if (reply == NULL)
		request_free(q);
}

void
mq_async_subscribe(
    struct mq_async *a, const char *channel, mq_async_fn *fn, void *arg)
{
	struct request *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct request){.async = a, .fn = fn, .arg = arg};
	if (a->context == NULL ||
	    redisAsyncCommand(a->context, on_message, q, "SUBSCRIBE %s",
		channel) != REDIS_OK) {
		fn(arg, NULL);
		request_free(q);
	}
}

static void
report(struct mq_async *a, const redisAsyncContext *context)
{
	/* The library frees the context after this. */
	a->context = NULL;
	if (a->down != NULL)
		a->down(a->arg,
		    context->err != 0 ? context->errstr : "connection closed");
}

static void
on_connect(const redisAsyncContext *context, int status)
{
	if (status != REDIS_OK && context->data != NULL)
		report(context->data, context);
}

static void
on_disconnect(const redisAsyncContext *context, int status)
{
	(void)status;
	if (context->data != NULL)
		report(context->data, context);
}

static void
on_greeting(void *arg, redisReply *reply)
{
	struct mq_async *a = arg;

	if (reply == NULL || reply->type != REDIS_REPLY_ERROR)
		return;
	mq_say("%s", reply->str);
	/* Whatever was sent behind it fails as well; the owner tries again. */
	if (a->context != NULL)
		redisAsyncDisconnect(a->context);
}

int
mq_async_open(
    struct mq_async *a, const struct mq_server *server, const char **why)
{
	struct mq_command c = {0};
	redisAsyncContext *context;
	int step;

	if (server->socket[0] != '\0')
		context = redisAsyncConnectUnix(server->socket);
	else
		context = redisAsyncConnect(server->url.host, server->url.port);
	if (context == NULL || context->err != 0) {
		*why = "cannot connect";
		if (context != NULL)
			redisAsyncFree(context);
		return -1;
	}
	/* The library leaves it open for whatever this process executes. */
	fcntl(context->c.fd, F_SETFD, FD_CLOEXEC);
	if (server->socket[0] == '\0')
		redisEnableKeepAlive(&context->c);
	context->data = a;
	a->context = context;
	redisLibevAttach(a->loop, context);
	redisAsyncSetConnectCallback(context, on_connect);
	redisAsyncSetDisconnectCallback(context, on_disconnect);
	for (step = 0; mq_redis_greeting(server, step, &c); step++)
		mq_async_send(a, &c, on_greeting, a);
	mq_command_free(&c);
	return 0;
}

void
mq_async_close(struct mq_async *a)
{
	redisAsyncContext *context = a->context;

	if (context == NULL)
		return;
	a->context = NULL;
	context->data = NULL;
	redisAsyncFree(context);
}
