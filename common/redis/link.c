/*
 * Opening and closing an asynchronous connection.
 */
#include "async.h"

#include <fcntl.h>

#include <hiredis/adapters/libev.h>

#include "base/exit.h"
#include "base/say.h"
#include "greeting.h"
#include "reply.h"

static void
drop_connection(struct mq_async *a)
{
	mq_tls_free(a->tls);
	a->tls = NULL;
	a->context = NULL;
	mq_async_drop_backlog(a);
}

static void
report_down(struct mq_async *a, const redisAsyncContext *context)
{
	if (context->c.err == REDIS_ERR_OOM)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	if (a->refusal[0] == '\0' &&
	    mq_tls_failure(a->tls, false, a->refusal, sizeof(a->refusal)) == 0)
		strlcpy(a->refusal,
		    context->c.err != 0 ? context->c.errstr :
					  "connection closed",
		    sizeof(a->refusal));
	/* The library frees the context after this. */
	drop_connection(a);
	if (a->down != NULL)
		a->down(a->arg, a->refusal);
}

/*
 * If a read before has found nothing, hiredis_ssl waits to read even after a write that
 * waits for room.  The server, which lacks the rest of a command, would say nothing.
 */
static void
stop_writing(void *events)
{
	const struct mq_async *a = ((redisLibevEvents *)events)->context->data;

	if (a == NULL || a->tls == NULL || !mq_tls_wants_room(a->tls))
		redisLibevDelWrite(events);
}

static void
on_connect(const redisAsyncContext *context, int status)
{
	if (status != REDIS_OK && context->data != NULL)
		report_down(context->data, context);
}

static void
on_disconnect(const redisAsyncContext *context, int status)
{
	(void)status;
	if (context->data != NULL)
		report_down(context->data, context);
}

static void
on_greeting(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_async *a = asker->arg;

	if (reply == NULL || reply->type != REDIS_REPLY_ERROR)
		return;
	/* The owner tries again. */
	a->refused(a->arg, reply->str);
	mq_async_give_up(a, reply->str);
}

static void
on_hello(void *arg, redisReply *reply)
{
	struct mq_async *a = arg;
	const char *why = reply != NULL ?
	    mq_reply_unfit(reply, a->server, a->front != NULL) :
	    NULL;

	if (why != NULL)
		mq_async_give_up(a, why);
}

/* Begins to connect, and TLS where the URL has it. */
static redisAsyncContext *
connect_to(struct mq_async *a, const struct mq_server *server)
{
	redisAsyncContext *context;

	if (server->socket[0] != '\0')
		context = redisAsyncConnectUnix(server->socket);
	else
		context = redisAsyncConnect(server->address, server->port);
	if (context == NULL || context->err != 0)
		strlcpy(a->refusal,
		    context != NULL ? context->errstr : "out of memory",
		    sizeof(a->refusal));
	else if (!server->url.tls ||
	    mq_tls_start(&a->tls, &context->c, &server->url, server->host,
		a->refusal, sizeof(a->refusal)) == 0)
		return context;
	if (context != NULL)
		redisAsyncFree(context);
	return NULL;
}

int
mq_async_open(
    struct mq_async *a, const struct mq_server *server, const char **why)
{
	redisAsyncContext *context = connect_to(a, server);
	struct mq_command c = {0};
	int step;

	if (context == NULL) {
		*why = a->refusal;
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
	mq_async_init_backlog(a);
	redisLibevAttach(a->loop, context);
	if (a->tls != NULL)
		context->ev.delWrite = stop_writing;
	redisAsyncSetConnectCallback(context, on_connect);
	redisAsyncSetDisconnectCallback(context, on_disconnect);
	for (step = 0; mq_redis_greeting(server, step, &c); step++)
		mq_async_ask(
		    a, &c, on_greeting, &(struct mq_asker){NULL, a, a});
	mq_redis_hello(&c);
	mq_async_send(a, &c, on_hello, a);
	mq_command_free(&c);
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
