/*
 * Opening a connection to one server that waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/exit.h"
#include "greeting.h"
#include "sentinel.h"

/* How long one connect may take. */
#define CONNECT_S 5
/* How long the search for all addresses of a host may take. */
#define SEARCH_S 15
/* How long the sentinels may take to hear of another master, and how often they
 * are asked. */
#define CHANGE_S	5
#define CHANGE_PAUSE_MS 100

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

/* hiredis takes a signal while it waits for a connection for the end of it. */
static redisContext *
connect_address(const char *address, int port, double until)
{
	redisContext *c = NULL;

	do {
		if (c != NULL)
			redisFree(c);
		c = redisConnectWithTimeout(
		    address, port, connect_timeout(until));
	} while (c != NULL && c->err == REDIS_ERR_IO && errno == EINTR);
	return c;
}

/* Each address of the host, until one takes the connection. */
static void
connect_host(struct mq_redis *r, const char *host, int port, double until)
{
	struct mq_server *server = r->server;
	double search = mq_clock_steady_s() + SEARCH_S;
	struct mq_addresses all;

	server->port = port;
	strlcpy(server->host, host, sizeof(server->host));
	mq_addresses_begin(&all, host, search < until ? search : until);
	while (mq_addresses_next(&all, server->address)) {
		mq_redis_close(r);
		r->context = connect_address(server->address, port, until);
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

/* Any node of a cluster will do. */
static void
connect_hosts(struct mq_redis *r, double until)
{
	const struct mq_url *u = &r->server->url;
	size_t i;

	for (i = 0; i < u->hosts_n; i++) {
		connect_host(r, u->hosts[i].name, u->hosts[i].port, until);
		if (!mq_redis_lost(r))
			return;
	}
}

static void
connect_socket(struct mq_redis *r, double until)
{
	r->context = redisConnectUnixWithTimeout(
	    r->server->socket, connect_timeout(until));
	if (mq_redis_lost(r))
		mq_redis_set_lost(r);
}

/* The handshake is part of connecting, for its time. */
static int
start_tls(struct mq_redis *r, double until)
{
	char why[256];
	int status;

	redisSetTimeout(r->context, connect_timeout(until));
	status = mq_tls_start(&r->tls, r->context, &r->server->url,
	    r->server->host, why, sizeof(why));
	return status == 0 ? 0 : mq_redis_fail(r, status, "%s", why);
}

/* Begins to speak, until then; each later read or write may take so long. */
static int
begin_talk(struct mq_redis *r, struct timeval patience, double until)
{
	redisContext *c = r->context;

	fcntl(c->fd, F_SETFD, FD_CLOEXEC);
	if (r->server->url.tls && start_tls(r, until) == -1)
		return -1;
	redisSetTimeout(c, patience);
	if (r->server->socket[0] == '\0')
		redisEnableKeepAlive(c);
	return greet_server(r);
}

/* --- sentinels --------------------------------------------------------------- */

struct question {
	mq_sentinel_ask_fn *ask;
	const char *name;
	void *answer;
};

/* One may be away for good: the next is asked soon; then all for longer. */
static const struct timeval soon = {.tv_usec = 500000};

/* Asks one sentinel, for about so long.  r->status is 0, or the reason is in r. */
static void
ask_sentinel(struct mq_redis *r, struct mq_server *sentinel,
    const struct question *q, struct timeval patience, double until)
{
	double end = mq_clock_steady_s() + (double)patience.tv_sec +
	    (double)patience.tv_usec / 1e6;

	*r = (struct mq_redis){.server = sentinel, .home = -1};
	if (end > until)
		end = until;
	connect_host(
	    r, sentinel->url.hosts->name, sentinel->url.hosts->port, end);
	if (!mq_redis_lost(r) && begin_talk(r, patience, end) == 0 &&
	    q->ask(r, q->name, q->answer) == 0)
		r->status = 0;
	mq_redis_close(r);
}

int
mq_redis_ask_sentinels(
    struct mq_redis *r, double until, mq_sentinel_ask_fn *ask, void *answer)
{
	const struct timeval patience[] = {soon, {.tv_sec = CONNECT_S}};
	const struct mq_url *u = &r->server->url;
	const struct question q = {ask, u->path, answer};
	struct mq_server sentinel;
	struct mq_redis one, worst = {.status = 0};
	size_t i, n = u->hosts_n;

	for (i = 0; i < 2 * n; i++) {
		if (i == n &&
		    (worst.status != MQ_EXIT_UNAVAILABLE ||
			mq_clock_steady_s() >= until))
			break;
		mq_sentinel_server(&sentinel, r->server, i % n);
		ask_sentinel(&one, &sentinel, &q, patience[i / n], until);
		if (one.status == 0) {
			r->server->sentinel = i % n;
			strlcpy(r->server->sentinel_address, sentinel.address,
			    sizeof(r->server->sentinel_address));
			return 0;
		}
		/* A sentinel that refuses is a greater error than none. */
		if (one.status > worst.status)
			worst = one;
	}
	return mq_redis_fail(r, worst.status, "%s%s",
	    worst.status == MQ_EXIT_UNAVAILABLE ? "no sentinel answers: " :
						  "sentinel ",
	    worst.error);
}

void
mq_redis_ask_each_sentinel(
    struct mq_redis *r, mq_sentinel_ask_fn *ask, void *answer)
{
	const struct question q = {ask, r->server->url.path, answer};
	struct mq_server sentinel;
	struct mq_redis one;
	size_t i;

	for (i = 0; i < r->server->url.hosts_n; i++) {
		mq_sentinel_server(&sentinel, r->server, i);
		ask_sentinel(&one, &sentinel, &q, soon, INFINITY);
	}
}

static void
connect_master(struct mq_redis *r, double until)
{
	struct mq_master master = {.port = 0};
	char why[sizeof(r->error)];

	if (mq_redis_ask_sentinels(r, until, mq_sentinel_master, &master) == -1)
		return;
	connect_host(r, master.host, master.port, until);
	if (!mq_redis_lost(r))
		return;
	strlcpy(why, r->error, sizeof(why));
	mq_redis_fail(r, r->status, "master %s:%d%s", master.host, master.port,
	    why + strlen(r->server->name));
}

/* --- any server -------------------------------------------------------------- */

int
mq_redis_reach(struct mq_redis *r, struct mq_server *server, double until)
{
	*r = (struct mq_redis){.server = server, .home = -1};
	r->status = mq_server_wake(server, r->error, sizeof(r->error));
	if (r->status != 0)
		return -1;
	if (server->url.kind == MQ_URL_SENTINEL)
		connect_master(r, until);
	else if (server->socket[0] == '\0')
		connect_hosts(r, until);
	else
		connect_socket(r, until);
	if (!mq_redis_lost(r))
		return 0;
	mq_redis_close(r);
	return -1;
}

static int
open_once(struct mq_redis *r, struct mq_server *server, double until)
{
	if (mq_redis_reach(r, server, until) == -1)
		return -1;
	if (begin_talk(r, io_timeout, until) == 0 &&
	    (server->url.kind != MQ_URL_SENTINEL || mq_redis_check(r) == 0))
		return 0;
	mq_redis_close(r);
	return -1;
}

/* A sentinel may not know yet that its master is a replica now. */
int
mq_redis_connect(struct mq_redis *r, struct mq_server *server, double until)
{
	const struct timespec pause = {.tv_nsec = CHANGE_PAUSE_MS * 1000000L};
	double end = mq_clock_steady_s() + CHANGE_S;
	int rv;

	while ((rv = open_once(r, server, until)) == -1 && r->unfit != NULL &&
	    strcmp(r->unfit, MQ_REDIS_REPLICA) == 0 &&
	    mq_clock_steady_s() < (end < until ? end : until))
		nanosleep(&pause, NULL);
	return rv;
}
