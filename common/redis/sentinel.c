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

static int
take_master(
    struct mq_redis *r, const char *name, const redisReply *reply, void *out)
{
	struct mq_master *master = out;
	const char *why;

	if (reply->type == REDIS_REPLY_NIL)
		return mq_redis_fail(
		    r, MQ_EXIT_CONFIG, "no master has the name %s", name);
	if (!mq_reply_strings(reply) || reply->elements != 2 ||
	    strlcpy(master->host, reply->element[0]->str,
		sizeof(master->host)) >= sizeof(master->host))
		return mq_nonsense(r);
	master->port = (int)strtonum(reply->element[1]->str, 1, 65535, &why);
	return why == NULL ? 0 : mq_nonsense(r);
}

const struct mq_sentinel_question mq_sentinel_master = {
    "SENTINEL get-master-addr-by-name", take_master};

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

const struct mq_sentinel_question mq_sentinel_state = {
    "SENTINEL master", take_state};

/* Whether a replica that sentinels know by this address is online.  Where a replica
 * announces a name, sentinels may still know the address. */
static bool
is_online(const struct mq_info *i, const char *address, const char *port)
{
	const char *line, *end, *space;
	size_t len;
	bool named;

	for (line = i->online; (end = strchr(line, '\n')) != NULL;
	     line = end + 1) {
		space = memchr(line, ' ', (size_t)(end - line));
		if (space == NULL ||
		    strlen(port) != (size_t)(end - space - 1) ||
		    strncmp(space + 1, port, strlen(port)) != 0)
			continue;
		len = (size_t)(space - line);
		named = memchr(line, ':', len) == NULL &&
		    strspn(line, "0123456789.") < len;
		if (named ||
		    (strlen(address) == len &&
			strncmp(line, address, len) == 0))
			return true;
	}
	return false;
}

/* The master comes last: if it has changed meanwhile, that shows. */
static int
take_heirs(
    struct mq_redis *r, const char *name, const redisReply *reply, void *heirs)
{
	struct mq_heirs *h = heirs;
	struct mq_master master = {.port = 0};
	struct mq_command c = {0};
	const redisReply *one;
	redisReply *place;
	const char *flags;
	bool silent;
	size_t i;
	int rv;

	for (i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements;
	     i++) {
		one = reply->element[i];
		flags = mq_reply_value(one, "flags");
		/* A replica that does not answer for long is not made the master, but
		 * may be busy as it has just been chosen.  One whose connection has just
		 * ended may be the master already: it drops its clients then. */
		silent = strstr(flags, "s_down") != NULL &&
		    strstr(flags, "promoted") == NULL;
		if (!is_online(h->info, mq_reply_value(one, "ip"),
			mq_reply_value(one, "port"))) {
			h->missing += !silent;
			h->silent += silent;
		} else if (!silent) {
			h->connected++;
		}
	}
	mq_command_plain(&c, mq_sentinel_master.words);
	mq_command_str(&c, name);
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

const struct mq_sentinel_question mq_sentinel_heirs = {
    "SENTINEL replicas", take_heirs};
