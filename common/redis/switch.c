#include "async.h"

#include <string.h>

#include "parts.h"

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
	mq_server_of_sentinel(&s->sentinel, server, server->sentinel);
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
