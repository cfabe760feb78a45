#include "pair.h"

#include <stdio.h>
#include <string.h>

static void
on_id(void *arg, redisReply *reply)
{
	struct mq_fence *f = arg;

	if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
		f->id = reply->integer;
}

/* Names this connection and asks for its number, for the next one to kill. */
static void
mark_connection(struct mq_fence *f)
{
	struct mq_command cmd = {0};

	mq_command_plain(&cmd, "CLIENT SETNAME");
	mq_command_str(&cmd, f->name);
	mq_async_send(f->async, &cmd, NULL, NULL);
	mq_command_plain(&cmd, "CLIENT ID");
	mq_async_send(f->async, &cmd, on_id, f);
	mq_command_free(&cmd);
}

/* After a restart of the server, another client may have the old number, but
 * never the old name as well. */
static void
on_listed(void *arg, redisReply *reply)
{
	struct mq_fence *f = arg;
	char name[sizeof(" name= ") + sizeof(f->name)];
	struct mq_command cmd = {0};

	if (reply == NULL)
		return;
	snprintf(name, sizeof(name), " name=%s ", f->name);
	if (reply->str != NULL && strstr(reply->str, name) != NULL) {
		mq_command_plain(&cmd, "CLIENT KILL ID");
		mq_command_int(&cmd, f->id);
		mq_async_send(f->async, &cmd, NULL, NULL);
		mq_command_free(&cmd);
	}
	mark_connection(f);
	f->then(f->arg);
}

void
mq_fence(struct mq_fence *f)
{
	struct mq_command cmd = {0};

	if (f->id == 0) {
		mark_connection(f);
		f->then(f->arg);
		return;
	}
	mq_command_plain(&cmd, "CLIENT LIST ID");
	mq_command_int(&cmd, f->id);
	mq_async_send(f->async, &cmd, on_listed, f);
	mq_command_free(&cmd);
}
