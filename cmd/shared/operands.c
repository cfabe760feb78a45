#include "options.h"

#include <sys/resource.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "queue/calls.h"
#include "queue/rights.h"

/* The layout that was given last in this order; rmq if none was. */
static int
find_layout(struct mq_shared *o, const struct mq_server *server, char *error,
    size_t error_size)
{
	const char *name = server->url.layout, *where = server->name;

	if (o->layout != NULL)
		return 0;
	if (name == NULL) {
		where = "MQ_LAYOUT";
		name = getenv(where);
	}
	if ((name == NULL || *name == '\0') && server->layout != NULL) {
		where = server->layout_from;
		name = server->layout;
	}
	if (name == NULL || *name == '\0')
		name = "rmq";
	o->layout = mq_layout_find(name);
	if (o->layout != NULL)
		return 0;
	snprintf(error, error_size, "%s: unknown layout %s; use rmq or rsmq",
	    where, name);
	return MQ_EXIT_CONFIG;
}

int
mq_option_find(struct mq_shared *o, struct mq_server *server, char *error,
    size_t error_size)
{
	int status = mq_server_find(server, o->url, error, error_size);
	const struct mq_url *u = &server->url;
	struct rlimit core;

	if (status != 0)
		return status;
	/* A core dump would have the password in it. */
	if (u->password != NULL && getrlimit(RLIMIT_CORE, &core) == 0) {
		core.rlim_cur = 0;
		setrlimit(RLIMIT_CORE, &core);
	}
	if (server->note[0] != '\0' && !o->quiet)
		mq_say("%s", server->note);
	status = find_layout(o, server, error, error_size);
	if (status != 0)
		return status;
	if (u->ns != NULL && o->layout->ns == NULL) {
		snprintf(error, error_size,
		    "%s: the layout %s has no namespaces; remove ns=",
		    server->name, o->layout->name);
		return MQ_EXIT_CONFIG;
	}
	if (u->kind == MQ_URL_CLUSTER && u->db != 0) {
		snprintf(error, error_size,
		    "%s: a cluster has no databases; remove the number",
		    server->name);
		return MQ_EXIT_USAGE;
	}
	/* All keys of the layout rsmq must lie together, as its namespace makes
	 * them. */
	if (u->kind == MQ_URL_CLUSTER && o->layout->ns != NULL &&
	    (u->ns == NULL || u->ns[0] != '{' || u->ns[1] == '}' ||
		strchr(u->ns, '}') == NULL)) {
		snprintf(error, error_size,
		    "%s: on a cluster, the layout %s needs a namespace in "
		    "braces; add ?ns={%s}",
		    server->name, o->layout->name, o->layout->ns);
		return MQ_EXIT_CONFIG;
	}
	if (o->verbose && o->names_server)
		mq_say("%s, layout %s", server->name, o->layout->name);
	return 0;
}

const struct mq_layout *
mq_option_server(struct mq_shared *o, struct mq_server *server)
{
	char error[512];
	int status = mq_option_find(o, server, error, sizeof(error));

	if (status != 0)
		mq_die(status, "%s", error);
	return o->layout;
}

const char *
mq_option_queue(
    struct mq_shared *o, const struct mq_server *server, const char *queue)
{
	const char *why;
	char *name = mq_layout_queue(o->layout, server->url.ns, queue, &why);

	if (name == NULL)
		mq_die(MQ_EXIT_USAGE, "%s: %s", queue, why);
	o->names =
	    mq_xreallocarray(o->names, o->name_count + 1, sizeof(*o->names));
	o->names[o->name_count++] = name;
	return name;
}

void
mq_option_queues(struct mq_shared *o, const struct mq_server *server,
    char *operands[], int count)
{
	int i;

	for (i = 0; i < count; i++) {
		(void)mq_option_queue(o, server, operands[i]);
		operands[i] = o->names[o->name_count - 1];
	}
}

void
mq_option_target(struct mq_shared *o, const char *queue)
{
	if (queue != NULL)
		o->targets[o->target_count++] = queue;
}

void
mq_option_rights(
    struct mq_shared *o, unsigned tool, char *operands[], int count)
{
	struct mq_buf rules = {0};
	struct mq_server server;
	int i;

	if (!o->print_acl)
		return;
	(void)mq_option_server(o, &server);
	if (server.url.kind == MQ_URL_CLUSTER)
		tool |= MQ_ON_CLUSTER;
	if (count == 0)
		mq_rights_add(&rules, o->layout, tool, NULL, server.url.ns);
	for (i = 0; i < count; i++)
		mq_rights_add(&rules, o->layout, tool,
		    mq_option_queue(o, &server, operands[i]), NULL);
	for (i = 0; i < o->target_count; i++)
		mq_rights_add(&rules, o->layout, MQ_TARGETS,
		    mq_option_queue(o, &server, o->targets[i]), NULL);
	mq_rights_end(&rules, server.url.kind == MQ_URL_CLUSTER, server.url.db);
	mq_buf_addstr(&rules, "\n");
	mq_option_print(mq_buf_str(&rules));
}

void
mq_option_unknown(
    struct mq_redis *r, const struct mq_layout *layout, const char *queue)
{
	const char *why = mq_queue_unlisted(r, layout, queue);
	char *hint;

	if (why != NULL) {
		mq_say("%s: not listed yet: %s", queue, why);
		return;
	}
	hint = mq_known_hint(r, layout, queue);
	mq_say("%s: no such queue%s", queue, hint);
	free(hint);
}

void
mq_option_made(const struct mq_shared *o, struct mq_redis *r, const char *queue)
{
	const char *why = mq_queue_unlisted(r, o->layout, queue);
	char *hint;

	if (why != NULL && !o->quiet)
		mq_say("%s: not listed yet: %s", queue, why);
	if (why != NULL || o->quiet || o->fresh)
		return;
	hint = mq_known_hint(r, o->layout, queue);
	if (o->verbose || *hint != '\0' || isatty(STDERR_FILENO))
		mq_say("%s: made a new queue%s", queue, hint);
	free(hint);
}

void
mq_option_needs(const struct mq_shared *o, const char *option, unsigned what)
{
	static const char *const names[] = {"keys", "groups", "ticks",
	    "priorities below 0", "results", "attributes of queues",
	    "notifications of new messages", "ids without headers"};
	size_t i = 0;

	if (o->layout->has & what)
		return;
	while (!(what & 1U << i))
		i++;
	mq_die(MQ_EXIT_USAGE, "%s: the layout %s has no %s", option,
	    o->layout->name, names[i]);
}

void
mq_option_check(const struct mq_shared *o)
{
	size_t i;

	for (i = 0; i < sizeof(o->needing) / sizeof(o->needing[0]); i++)
		if (o->needing[i] != NULL)
			mq_option_needs(o, o->needing[i], 1U << i);
}
