#include "sentinel.h"

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

static redisReply *
ask_sentinel(struct mq_redis *r, const char *what, const char *name)
{
	struct mq_command c = {0};
	redisReply *reply;

	mq_command_plain(&c, "SENTINEL");
	mq_command_str(&c, what);
	mq_command_str(&c, name);
	reply = mq_call(r, &c, -1);
	/* A server that answers, but not to this, is none. */
	if (reply == NULL && !mq_redis_lost(r) &&
	    r->status == MQ_EXIT_UNAVAILABLE)
		r->status = MQ_EXIT_CONFIG;
	return reply;
}

static int
take_master(const redisReply *reply, struct mq_master *master)
{
	const char *why;

	if (!mq_reply_strings(reply) || reply->elements != 2 ||
	    strlcpy(master->host, reply->element[0]->str,
		sizeof(master->host)) >= sizeof(master->host))
		return -1;
	master->port = (int)strtonum(reply->element[1]->str, 1, 65535, &why);
	return why == NULL ? 0 : -1;
}

int
mq_sentinel_master(struct mq_redis *r, const char *name, void *master)
{
	redisReply *reply = ask_sentinel(r, "get-master-addr-by-name", name);
	int rv;

	if (reply == NULL)
		return -1;
	if (reply->type == REDIS_REPLY_NIL)
		rv = mq_redis_fail(
		    r, MQ_EXIT_CONFIG, "no master has the name %s", name);
	else if ((rv = take_master(reply, master)) == -1)
		(void)mq_nonsense(r);
	freeReplyObject(reply);
	return rv;
}

static const char *
find_value(const redisReply *pairs, const char *name)
{
	size_t i;

	for (i = 0; mq_reply_strings(pairs) && i + 1 < pairs->elements; i += 2)
		if (strcmp(pairs->element[i]->str, name) == 0)
			return pairs->element[i + 1]->str;
	return "";
}

/*
 * A replica that does not answer for long is not made the master, but may be busy as it
 * has just been chosen.  One whose connection has just ended may be the master already:
 * it drops its clients then.
 */
static void
count_replica(struct mq_heirs *h, const redisReply *replica)
{
	const char *flags = find_value(replica, "flags");
	bool silent = strstr(flags, "s_down") != NULL &&
	    strstr(flags, "promoted") == NULL;

	if (!mq_info_has_replica(h->info, find_value(replica, "ip"),
		find_value(replica, "port"))) {
		h->missing += !silent;
		h->silent += silent;
	} else if (!silent) {
		h->connected++;
	}
}

/* The master comes last: if it has changed meanwhile, that shows. */
int
mq_sentinel_heirs(struct mq_redis *r, const char *name, void *heirs)
{
	redisReply *reply = ask_sentinel(r, "replicas", name);
	struct mq_heirs *h = heirs;
	struct mq_master master = {.port = 0};
	size_t i;

	if (reply == NULL)
		return -1;
	for (i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements;
	     i++)
		count_replica(h, reply->element[i]);
	freeReplyObject(reply);
	if (mq_sentinel_master(r, name, &master) == -1)
		return -1;
	h->moved |= master.port != h->server->port ||
	    strcmp(master.host, h->server->host) != 0;
	return 0;
}
