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
report_down(struct mq_async *a, const redisAsyncContext *context)
{
	if (context->c.err == REDIS_ERR_OOM)
		mq_die(MQ_EXIT_AGAIN, "out of memory");
	/* The library frees the context after this. */
	a->context = NULL;
	mq_async_drop_backlog(a);
	if (a->down == NULL)
		return;
	if (a->refusal[0] != '\0')
		a->down(a->arg, a->refusal);
	else
		a->down(a->arg,
		    context->c.err != 0 ? context->c.errstr :
					  "connection closed");
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
give_up_connection(struct mq_async *a, const char *why)
{
	strlcpy(a->refusal, why, sizeof(a->refusal));
	/* All commands behind the greeting fail as well. */
	if (a->context != NULL)
		redisAsyncDisconnect(a->context);
}

static void
on_greeting(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_async *a = asker->arg;

	if (reply == NULL || reply->type != REDIS_REPLY_ERROR)
		return;
	/* The owner tries again. */
	a->refused(a->arg, reply->str);
	give_up_connection(a, reply->str);
}

static void
on_hello(void *arg, redisReply *reply)
{
	if (reply != NULL && mq_reply_cluster(reply))
		give_up_connection(arg, MQ_REDIS_CLUSTER);
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
		context = redisAsyncConnect(
		    server->address, server->url.hosts[0].port);
	if (context == NULL || context->err != 0) {
		strlcpy(a->refusal,
		    context != NULL ? context->errstr : "out of memory",
		    sizeof(a->refusal));
		*why = a->refusal;
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
	a->refusal[0] = '\0';
	mq_async_init_backlog(a);
	redisLibevAttach(a->loop, context);
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
	a->context = NULL;
	context->data = NULL;
	mq_async_drop_backlog(a);
	redisAsyncFree(context);
}
