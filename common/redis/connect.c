/*
 * Opening a connection to one server that waits.
 */
#include <fcntl.h>

#include "base/clock.h"
#include "base/exit.h"
#include "connection.h"
#include "greeting.h"

/* How long one connect may take. */
#define CONNECT_S 5
/* How long the search for all addresses of a host may take. */
#define SEARCH_S 15

static const struct timeval io_timeout = {
    .tv_sec = MQ_REDIS_PATIENCE_MS / 1000};

static int
greet_server(struct mq_redis *r)
{
	struct mq_command c = {0};
	redisReply *reply;
	int step, rv = 0;

	for (step = 0; rv == 0 && mq_redis_greeting(r->server, step, &c);
	     step++) {
		reply = mq_redis_call(r, &c);
		if (reply == NULL)
			rv = -1;
		else
			freeReplyObject(reply);
	}
	if (rv == 0) {
		mq_redis_hello(&c);
		rv = mq_redis_append(r, &c);
		r->asked = true;
	}
	mq_command_free(&c);
	return rv;
}

static struct timeval
connect_timeout(double until)
{
	double left = until - mq_clock_steady_s();

	if (left >= CONNECT_S)
		return (struct timeval){.tv_sec = CONNECT_S};
	/* 0 would be for ever. */
	if (left < 0.001)
		left = 0.001;
	return (struct timeval){
	    (time_t)left, (suseconds_t)((left - (double)(time_t)left) * 1e6)};
}

/* Each address of the host, until one takes the connection. */
static void
connect_host(struct mq_redis *r, double until)
{
	struct mq_server *server = r->server;
	double search = mq_clock_steady_s() + SEARCH_S;
	struct mq_addresses all;

	mq_addresses_begin(
	    &all, server->url.hosts[0].name, search < until ? search : until);
	while (mq_addresses_next(&all, server->address)) {
		mq_redis_close(r);
		r->context = redisConnectWithTimeout(server->address,
		    server->url.hosts[0].port, connect_timeout(until));
		if (r->context == NULL || r->context->err != 0)
			mq_redis_set_lost(r);
		if (r->context == NULL || r->context->err == 0)
			break;
	}
	if (all.found == 0)
		mq_redis_fail(r,
		    all.pid == 0 ? MQ_EXIT_AGAIN : MQ_EXIT_UNAVAILABLE, "%s",
		    all.why);
	mq_addresses_end(&all);
}

int
mq_redis_reach(struct mq_redis *r, struct mq_server *server, double until)
{
	*r = (struct mq_redis){.server = server, .home = -1};
	r->status = mq_server_wake(server, r->error, sizeof(r->error));
	if (r->status != 0)
		return -1;
	if (server->socket[0] == '\0') {
		connect_host(r, until);
	} else {
		r->context = redisConnectUnixWithTimeout(
		    server->socket, connect_timeout(until));
		if (mq_redis_lost(r))
			mq_redis_set_lost(r);
	}
	if (!mq_redis_lost(r))
		return 0;
	mq_redis_close(r);
	return -1;
}

/* The handshake is part of connecting, for its time. */
static int
start_tls(struct mq_redis *r, double until)
{
	char why[256];
	int status;

	redisSetTimeout(r->context, connect_timeout(until));
	status = mq_tls_start(&r->tls, r->context, &r->server->url,
	    r->server->url.hosts[0].name, why, sizeof(why));
	return status == 0 ? 0 : mq_redis_fail(r, status, "%s", why);
}

int
mq_redis_connect(struct mq_redis *r, struct mq_server *server, double until)
{
	redisContext *c;
	int rv = 0;

	if (mq_redis_reach(r, server, until) == -1)
		return -1;
	c = r->context;
	fcntl(c->fd, F_SETFD, FD_CLOEXEC);
	if (server->url.tls)
		rv = start_tls(r, until);
	redisSetTimeout(c, io_timeout);
	if (server->socket[0] == '\0')
		redisEnableKeepAlive(c);
	if (rv == 0)
		rv = greet_server(r);
	if (rv == -1)
		mq_redis_close(r);
	return rv;
}
