#include "async.h"

#include <stdio.h>
#include <string.h>

#include "parts.h"

/* --- tracking ------------------------------------------------------------------- */

/* Of a message, what it says; NULL: the reply is none. */
static const redisReply *
message_in(const redisReply *reply)
{
	if (reply == NULL || reply->elements != 3 ||
	    reply->element[0]->type != REDIS_REPLY_STRING ||
	    strcmp(reply->element[0]->str, "message") != 0)
		return NULL;
	return reply->element[2];
}

static void
on_changed(void *arg, redisReply *reply)
{
	struct mq_pair *p = arg;
	const redisReply *keys = message_in(reply);
	size_t i;

	if (keys == NULL)
		return;
	for (i = 0; i < keys->elements; i++)
		p->main.events->changed(
		    p->main.arg, keys->element[i]->str, keys->element[i]->len);
	/* FLUSHALL names none. */
	if (keys->type != REDIS_REPLY_ARRAY)
		p->main.events->changed(p->main.arg, NULL, 0);
}

static void
on_called(void *arg, redisReply *reply)
{
	struct mq_pair *p = arg;
	const redisReply *text = message_in(reply);

	if (text != NULL && text->type == REDIS_REPLY_STRING)
		p->main.events->called(p->main.arg, text->str, text->len);
}

static bool
is_refused(struct mq_pair *p, const char *what, const redisReply *reply)
{
	if (reply == NULL || reply->type != REDIS_REPLY_ERROR)
		return false;
	p->main.events->untracked(p->main.arg, what, reply->str);
	return true;
}

static void
on_tracking(void *arg, redisReply *reply)
{
	(void)is_refused(arg, "CLIENT TRACKING", reply);
}

/* Who may not send to a channel may not listen there: then the connection would
 * break. */
static void
on_published(void *arg, redisReply *reply)
{
	struct mq_pair *p = arg;

	if (reply != NULL && !is_refused(p, "PUBLISH", reply))
		mq_async_subscribe(&p->wake, p->channel, on_called, p);
}

/* --- the end of the former connection --------------------------------------------- */

/*
 * Commands of a connection that was given up may still be unread at the server, and
 * would be carried out behind what the next one has found there.  Therefore the next one
 * kills it first: also when the server refuses CLIENT LIST or CLIENT KILL, what it sends
 * from ready() on is carried out after the last command of the one before.
 */

static void
on_id(void *arg, redisReply *reply)
{
	struct mq_pair *p = arg;

	if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
		p->former = reply->integer;
}

/* Names this connection and asks for its number, for the next one to kill. */
static void
mark_connection(struct mq_pair *p)
{
	struct mq_command cmd = {0};

	mq_command_plain(&cmd, "CLIENT SETNAME");
	mq_command_str(&cmd, p->name);
	mq_async_send(&p->main, &cmd, NULL, NULL);
	mq_command_plain(&cmd, "CLIENT ID");
	mq_async_send(&p->main, &cmd, on_id, p);
	p->main.events->ready(p->main.arg);
}

/* After a restart of the server, another client may have the old number, but
 * never the old name as well. */
static void
on_listed(void *arg, redisReply *reply)
{
	struct mq_pair *p = arg;
	struct mq_command cmd = {0};
	char name[64];

	if (reply == NULL)
		return;
	snprintf(name, sizeof(name), " name=%s ", p->name);
	if (reply->str != NULL && strstr(reply->str, name) != NULL) {
		mq_command_plain(&cmd, "CLIENT KILL ID");
		mq_command_int(&cmd, p->former);
		mq_async_send(&p->main, &cmd, NULL, NULL);
	}
	mark_connection(p);
}

/* The listener is there: the reader can ask for its news to be sent to it. */
static void
on_listener_id(void *arg, redisReply *reply)
{
	struct mq_pair *p = arg;
	struct mq_command cmd = {0};

	if (reply == NULL)
		return;
	if (reply->type == REDIS_REPLY_INTEGER) {
		mq_async_subscribe(
		    &p->wake, "__redis__:invalidate", on_changed, p);
		mq_command_plain(&cmd, "CLIENT TRACKING ON OPTIN REDIRECT");
		mq_command_int(&cmd, reply->integer);
		mq_async_send(&p->main, &cmd, on_tracking, p);
		/* Nobody listens yet.  The command only shows what others may
		 * send. */
		mq_command_plain(&cmd, "PUBLISH");
		mq_command_str(&cmd, p->channel);
		mq_command_str(&cmd, "");
		cmd.tracked = true;
		mq_async_send(&p->main, &cmd, on_published, p);
	} else {
		on_tracking(p, reply);
	}
	if (p->former == 0) {
		mark_connection(p);
		return;
	}
	mq_command_plain(&cmd, "CLIENT LIST ID");
	mq_command_int(&cmd, p->former);
	mq_async_send(&p->main, &cmd, on_listed, p);
}

/* --- both ------------------------------------------------------------------------- */

void
mq_pair_init(struct mq_pair *p, struct ev_loop *loop,
    const struct mq_server *server, const char *channel, const char *name,
    struct mq_async *front, const struct mq_async_events *events, void *arg)
{
	const struct mq_async init = {
	    .loop = loop, .events = events, .arg = arg, .front = front};

	*p = (struct mq_pair){.server = server,
	    .channel = channel,
	    .name = name,
	    .main = init,
	    .wake = init};
}

int
mq_pair_open(struct mq_pair *p, const char **why)
{
	struct mq_command cmd = {0};

	if (mq_async_open(&p->main, p->server, why) == -1 ||
	    mq_async_open(&p->wake, p->server, why) == -1)
		return -1;
	mq_command_plain(&cmd, "CLIENT ID");
	mq_async_send(&p->wake, &cmd, on_listener_id, p);
	return 0;
}

void
mq_pair_close(struct mq_pair *p)
{
	mq_async_close(&p->main);
	mq_async_close(&p->wake);
}

/* --- switch ------------------------------------------------------------------------ */

/* A message says "NAME OLD-ADDRESS OLD-PORT ADDRESS PORT". */
static void
on_switch(void *arg, redisReply *reply)
{
	struct mq_switch *s = arg;
	size_t n = strlen(s->name);
	const redisReply *text;

	if (reply == NULL || reply->elements != 3)
		return;
	text = reply->element[2];
	if (text->type == REDIS_REPLY_STRING &&
	    strncmp(text->str, s->name, n) == 0 && text->str[n] == ' ')
		s->changed(s->arg);
}

void
mq_switch_listen(struct mq_switch *s, const struct mq_server *server)
{
	static const struct mq_async_events none;
	const char *why;

	mq_switch_close(s);
	if (server->url.kind != MQ_URL_SENTINEL)
		return;
	mq_sentinel_server(&s->sentinel, server, server->sentinel);
	s->sentinel.port = s->sentinel.url.hosts->port;
	strlcpy(s->sentinel.host, s->sentinel.url.hosts->name,
	    sizeof(s->sentinel.host));
	strlcpy(s->sentinel.address, server->sentinel_address,
	    sizeof(s->sentinel.address));
	s->name = server->url.path;
	s->async = (struct mq_async){.loop = s->loop, .events = &none};
	if (mq_async_open(&s->async, &s->sentinel, &why) == 0)
		mq_async_subscribe(&s->async, "+switch-master", on_switch, s);
}

void
mq_switch_close(struct mq_switch *s)
{
	mq_async_close(&s->async);
}
