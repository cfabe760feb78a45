#include "tracking.h"

#include <string.h>

static void
on_message(void *arg, redisReply *reply)
{
	struct mq_tracking *t = arg;
	const redisReply *keys;
	size_t i;

	if (reply == NULL || reply->elements != 3 ||
	    reply->element[0]->type != REDIS_REPLY_STRING ||
	    strcmp(reply->element[0]->str, "message") != 0)
		return;
	keys = reply->element[2];
	for (i = 0; i < keys->elements; i++)
		t->changed(
		    t->arg, keys->element[i]->str, keys->element[i]->len);
	/* FLUSHALL names none. */
	if (keys->type != REDIS_REPLY_ARRAY)
		t->changed(t->arg, NULL, 0);
}

static void
on_tracking(void *arg, redisReply *reply)
{
	struct mq_tracking *t = arg;

	if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
		t->refused(t->arg, reply->str);
}

/* The listener is there: the reader can ask for its news to be sent to it. */
static void
on_listener_id(void *arg, redisReply *reply)
{
	struct mq_tracking *t = arg;
	struct mq_command cmd = {0};

	if (reply == NULL)
		return;
	if (reply->type == REDIS_REPLY_INTEGER) {
		mq_async_subscribe(
		    t->listener, "__redis__:invalidate", on_message, t);
		mq_command_plain(&cmd, "CLIENT TRACKING ON REDIRECT");
		mq_command_int(&cmd, reply->integer);
		mq_command_str(&cmd, "NOLOOP");
		mq_async_send(t->reader, &cmd, on_tracking, t);
		mq_command_free(&cmd);
	} else {
		on_tracking(t, reply);
	}
	t->started(t->arg);
}

void
mq_tracking_start(struct mq_tracking *t)
{
	struct mq_command cmd = {0};

	mq_command_plain(&cmd, "CLIENT ID");
	mq_async_send(t->listener, &cmd, on_listener_id, t);
	mq_command_free(&cmd);
}
