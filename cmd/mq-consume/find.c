/*
 * Finding out where a server is, by a child: to look for the addresses of a host,
 * or to start a private server, takes its time.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "consume.h"
#include "redis/address.h"
#include "redis/connection.h"

bool
find_at_once(struct mq_server *server)
{
	if (server->url.kind == MQ_URL_UNIX)
		return true;
	if (server->url.kind != MQ_URL_REDIS ||
	    !mq_address_is(server->url.host))
		return false;
	strlcpy(server->address, server->url.host, sizeof(server->address));
	return true;
}

/* What a connection that waits would say, without the name of the server. */
static void
tell_why(struct aside_result *result, const struct mq_redis *r)
{
	size_t n = strlen(r->server->name);
	const char *why = r->error;

	if (strncmp(why, r->server->name, n) == 0 &&
	    strncmp(why + n, ": ", 2) == 0)
		why += n + 2;
	result->status = r->status;
	strlcpy(result->error, why, sizeof(result->error));
}

static void
do_find(struct aside *a, struct aside_result *result)
{
	struct mq_server *server = a->server;
	struct mq_redis r;

	if (mq_redis_reach(&r, server, INFINITY) == -1)
		tell_why(result, &r);
	mq_redis_close(&r);
	strlcpy(result->socket, server->socket, sizeof(result->socket));
	strlcpy(result->address, server->address, sizeof(result->address));
}

static void
found(struct aside *a, const struct aside_result *result)
{
	struct mq_server *server = a->server;

	if (result->status != 0) {
		a->found(a,
		    result->error[0] != '\0' ?
			result->error :
			"the search for its address ended early");
		return;
	}
	strlcpy(server->socket, result->socket, sizeof(server->socket));
	strlcpy(server->address, result->address, sizeof(server->address));
	a->found(a, NULL);
}

bool
find_start(struct consumer *c, struct aside *a, struct mq_server *server,
    aside_found *fn)
{
	a->server = server;
	a->found = fn;
	aside_start(c, a, do_find, found);
	return a->pid != 0;
}
