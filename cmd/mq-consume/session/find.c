#include "session.h"

#include <string.h>

#include "redis/connection.h"
#include "redis/server.h"

/* The result of the helper. */
struct place {
	char error[512];	 /* empty: none */
	struct mq_server server; /* only where it is */
};

static void
copy_place(struct mq_server *to, const struct mq_server *from)
{
	strlcpy(to->socket, from->socket, sizeof(to->socket));
	strlcpy(to->host, from->host, sizeof(to->host));
	strlcpy(to->address, from->address, sizeof(to->address));
	to->port = from->port;
	to->sentinel = from->sentinel;
	strlcpy(to->sentinel_address, from->sentinel_address,
	    sizeof(to->sentinel_address));
}

/* Whether the server can be connected to without a look-up. */
static bool
is_found(struct mq_server *server)
{
	if (server->url.kind == MQ_URL_UNIX)
		return true;
	if (server->url.kind != MQ_URL_REDIS ||
	    !mq_address_is(server->url.hosts[0].name))
		return false;
	strlcpy(server->address, server->url.hosts[0].name,
	    sizeof(server->address));
	strlcpy(server->host, server->address, sizeof(server->host));
	server->port = server->url.hosts[0].port;
	return true;
}

/* Copies the error without the name of the server in front. */
static void
note_error(struct place *place, const struct mq_redis *r)
{
	size_t n = strlen(r->server->name);
	const char *why = r->error;

	if (strncmp(why, r->server->name, n) == 0 &&
	    strncmp(why + n, ": ", 2) == 0)
		why += n + 2;
	strlcpy(place->error, why, sizeof(place->error));
}

static void
find_server(void *arg, void *result)
{
	const struct finder *f = arg;
	struct place *place = result;
	struct mq_redis r;

	if (mq_redis_reach(&r, f->server) == -1)
		note_error(place, &r);
	copy_place(&place->server, f->server);
}

static void
on_found(void *arg, const void *result)
{
	struct finder *f = arg;
	const struct place *place = result;

	if (place == NULL) {
		f->found(f->arg, "the search for its address ended early");
		return;
	}
	if (place->error[0] != '\0') {
		f->found(f->arg, place->error);
		return;
	}
	copy_place(f->server, &place->server);
	f->found(f->arg, NULL);
}

int
find_start(struct finder *f, struct mq_children *children,
    struct mq_server *server, find_found *found, void *arg)
{
	if (is_found(server))
		return 1;
	f->server = server;
	f->found = found;
	f->arg = arg;
	return mq_helper_start(&f->helper, children, sizeof(struct place),
	    find_server, on_found, f);
}
