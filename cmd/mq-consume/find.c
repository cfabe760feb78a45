/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "find.h"

#include <process/process.h> /* not that of this folder */

#include "base/text.h"

struct finder {
	struct mq_helper helper;
	struct mq_children *children;
	struct mq_server *server;
	find_found *found;
	void *arg;
};

const char *
find_cause(const struct mq_redis *r)
{
	size_t n = strlen(r->server->name);

	return strncmp(r->error, r->server->name, n) == 0 &&
		strncmp(r->error + n, ": ", 2) == 0 ?
	    r->error + n + 2 :
	    r->error;
}

/* The helper is a copy of this process: the pointers in its server are ours, too. */
static void
find_server(void *arg, void *result)
{
	const struct finder *f = arg;
	struct mq_server *found = result;
	struct mq_redis r;
	const char *why =
	    mq_redis_reach(&r, f->server) == -1 ? find_cause(&r) : "";

	*found = *f->server;
	strlcpy(found->error, why, sizeof(found->error));
}

static void
on_place(void *arg, const void *result)
{
	struct finder *f = arg;
	const struct mq_server *found = result;
	const char *why = NULL;

	if (found == NULL)
		why = "the search for its address ended early";
	else if (found->error[0] != '\0')
		why = found->error;
	else
		*f->server = *found;
	f->found(f->arg, why);
}

struct finder *
finder_new(struct mq_children *children, struct mq_server *server,
    find_found *found, void *arg)
{
	struct finder *f = mq_xcalloc(1, sizeof(*f));

	f->children = children;
	f->server = server;
	f->found = found;
	f->arg = arg;
	return f;
}

int
finder_start(struct finder *f)
{
	const struct mq_url *u = &f->server->url;

	/* A socket or an address needs no look-up. */
	if (u->kind == MQ_URL_UNIX ||
	    (u->kind == MQ_URL_REDIS && mq_address_is(u->hosts->name)))
		return 1;
	return mq_helper_start(&f->helper, f->children, sizeof(*f->server),
	    find_server, on_place, f);
}

void
finder_stop(struct finder *f)
{
	mq_helper_kill(&f->helper);
}

void
finder_free(struct finder *f)
{
	finder_stop(f);
	free(f);
}
