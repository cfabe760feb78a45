#include "pair.h"

#include <string.h>

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
on_change(void *arg, redisReply *reply)
{
	struct mq_tracking *t = arg;
	const redisReply *keys = message_in(reply);
	size_t i;

	if (keys == NULL)
		return;
	for (i = 0; i < keys->elements; i++)
		t->changed(
		    t->arg, keys->element[i]->str, keys->element[i]->len);
	/* FLUSHALL names none. */
	if (keys->type != REDIS_REPLY_ARRAY)
		t->changed(t->arg, NULL, 0);
}

static void
on_call(void *arg, redisReply *reply)
{
	struct mq_tracking *t = arg;
	const redisReply *text = message_in(reply);

	if (text != NULL && text->type == REDIS_REPLY_STRING)
		t->called(t->arg, text->str, text->len);
}

static bool
is_refused(struct mq_tracking *t, const char *what, const redisReply *reply)
{
	if (reply == NULL || reply->type != REDIS_REPLY_ERROR)
		return false;
	t->refused(t->arg, what, reply->str);
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
	struct mq_tracking *t = arg;

	if (reply != NULL && !is_refused(t, "PUBLISH", reply))
		mq_async_subscribe(t->listener, t->channel, on_call, t);
}

static void
ask_to_track(struct mq_tracking *t, long long listener)
{
	struct mq_command cmd = {0};

	mq_command_plain(&cmd, "CLIENT TRACKING ON OPTIN REDIRECT");
	mq_command_int(&cmd, listener);
	mq_async_send(t->reader, &cmd, on_tracking, t);
	/* Nobody listens yet.  The command only shows what others may send. */
	mq_command_plain(&cmd, "PUBLISH");
	mq_command_str(&cmd, t->channel);
	mq_command_str(&cmd, "");
	cmd.tracked = true;
	mq_async_send(t->reader, &cmd, on_published, t);
	mq_command_free(&cmd);
}

/* The listener is there: the reader can ask for its news to be sent to it. */
static void
on_listener_id(void *arg, redisReply *reply)
{
	struct mq_tracking *t = arg;

	if (reply == NULL)
		return;
	if (reply->type == REDIS_REPLY_INTEGER) {
		mq_async_subscribe(
		    t->listener, "__redis__:invalidate", on_change, t);
		ask_to_track(t, reply->integer);
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
