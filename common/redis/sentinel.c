#include "parts.h"

#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/exit.h"

void
mq_sentinel_server(
    struct mq_server *sentinel, const struct mq_server *server, size_t i)
{
	struct mq_url *u = &sentinel->url;

	*sentinel = (struct mq_server){.url = server->url};
	u->kind = MQ_URL_REDIS;
	u->user = NULL;
	u->password = server->sentinel_password;
	u->hosts = &server->url.hosts[i];
	u->hosts_n = 1;
	u->path = u->layout = u->ns = NULL;
	u->db = 0;
	mq_url_show(u, sentinel->name, sizeof(sentinel->name));
}

void
mq_sentinel_command(struct mq_command *c, const char *what, const char *name)
{
	mq_command_plain(c, "SENTINEL");
	mq_command_str(c, what);
	mq_command_str(c, name);
}

static int
take_place(const redisReply *reply, struct mq_master *master)
{
	const char *why;

	if (!mq_reply_strings(reply) || reply->elements != 2 ||
	    strlcpy(master->host, reply->element[0]->str,
		sizeof(master->host)) >= sizeof(master->host))
		return -1;
	master->port = (int)strtonum(reply->element[1]->str, 1, 65535, &why);
	return why == NULL ? 0 : -1;
}

static int
take_master(
    struct mq_redis *r, const char *name, const redisReply *reply, void *master)
{
	if (reply->type == REDIS_REPLY_NIL)
		return mq_redis_fail(
		    r, MQ_EXIT_CONFIG, "no master has the name %s", name);
	return take_place(reply, master) == 0 ? 0 : mq_nonsense(r);
}

const struct mq_sentinel_question mq_sentinel_master = {
    "get-master-addr-by-name", take_master};

static int
take_state(
    struct mq_redis *r, const char *name, const redisReply *reply, void *out)
{
	struct mq_sentinel_state *state = out;
	const char *flags = mq_reply_value(reply, "flags");
	const char *replicas = mq_reply_value(reply, "num-slaves");

	(void)r;
	(void)name;
	state->down =
	    strstr(flags, "_down") != NULL || strstr(flags, "failover") != NULL;
	if (*replicas != '\0')
		state->replicas = atoi(replicas);
	return 0;
}

const struct mq_sentinel_question mq_sentinel_state = {"master", take_state};

/* Where a replica announces a name, sentinels may still know the address. */
static bool
may_be_address(const char *of, size_t len, const char *address)
{
	bool is_name =
	    memchr(of, ':', len) == NULL && strspn(of, "0123456789.") < len;

	return is_name ||
	    (strlen(address) == len && strncmp(of, address, len) == 0);
}

/* Whether a replica that sentinels know by this address is online. */
static bool
is_online(const struct mq_info *i, const char *address, const char *port)
{
	const char *line, *space;
	size_t len = strlen(port);

	for (line = i->online; *line != '\0'; line = space + 1) {
		space = line + strcspn(line, " \n");
		if (*space == ' ' && strncmp(space + 1, port, len) == 0 &&
		    space[1 + len] == '\n' &&
		    may_be_address(line, (size_t)(space - line), address))
			return true;
		space += strcspn(space, "\n");
		if (*space == '\0')
			break;
	}
	return false;
}

/*
 * A replica that does not answer for long is not made the master, but may be busy as it
 * has just been chosen.  One whose connection has just ended may be the master already:
 * it drops its clients then.
 */
static void
count_replica(struct mq_heirs *h, const redisReply *replica)
{
	const char *flags = mq_reply_value(replica, "flags");
	bool silent = strstr(flags, "s_down") != NULL &&
	    strstr(flags, "promoted") == NULL;

	if (!is_online(h->info, mq_reply_value(replica, "ip"),
		mq_reply_value(replica, "port"))) {
		h->missing += !silent;
		h->silent += silent;
	} else if (!silent) {
		h->connected++;
	}
}

/* The master comes last: if it has changed meanwhile, that shows. */
static int
take_heirs(
    struct mq_redis *r, const char *name, const redisReply *reply, void *heirs)
{
	struct mq_heirs *h = heirs;
	struct mq_master master = {.port = 0};
	struct mq_command c = {0};
	redisReply *place;
	size_t i;
	int rv;

	for (i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements;
	     i++)
		count_replica(h, reply->element[i]);
	mq_sentinel_command(&c, mq_sentinel_master.what, name);
	place = mq_call(r, &c, -1);
	if (place == NULL)
		return -1;
	rv = take_master(r, name, place, &master);
	freeReplyObject(place);
	h->moved |= rv == 0 &&
	    (master.port != h->server->port ||
		strcmp(master.host, h->server->host) != 0);
	return rv;
}

const struct mq_sentinel_question mq_sentinel_heirs = {"replicas", take_heirs};
