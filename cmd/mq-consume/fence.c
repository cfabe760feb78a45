/*
 * The end of a connection that was given up.  Commands of it may still be
 * unread at the server.  An ack among them, carried out after
 * settle_reconcile(), could remove a message that runs here and has the same
 * bytes.  Therefore the next connection kills the old one before it compares.
 * After a restart of the server, another client may have the old number, but
 * never the old name as well.
 */
#include <stdio.h>
#include <string.h>

#include "consume.h"

#define NAME "mq-consume:"

static void
on_id(void *arg, redisReply *reply)
{
	struct consumer *c = arg;

	if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
		c->main_id = reply->integer;
}

static void
start(struct mq_command *cmd, const char *what)
{
	mq_command_plain(cmd, "CLIENT");
	mq_command_str(cmd, what);
}

/* Names this connection and asks for its number, for the next one to kill. */
static void
mark(struct consumer *c)
{
	struct mq_command cmd = {0};

	if (c->main_name[0] == '\0') {
		strlcpy(c->main_name, NAME, sizeof(c->main_name));
		mq_id_random(
		    &c->ids, c->main_name + strlen(NAME), MAIN_NAME_RANDOM);
	}
	start(&cmd, "SETNAME");
	mq_command_str(&cmd, c->main_name);
	mq_async_send(&c->main, &cmd, NULL, NULL);
	start(&cmd, "ID");
	mq_async_send(&c->main, &cmd, on_id, c);
	mq_command_free(&cmd);
}

static void
on_listed(void *arg, redisReply *reply)
{
	struct consumer *c = arg;
	char name[sizeof(" name= ") + sizeof(c->main_name)];
	struct mq_command cmd = {0};

	if (reply == NULL || c->link != LINK_OPENING)
		return;
	snprintf(name, sizeof(name), " name=%s ", c->main_name);
	if (reply->str != NULL && strstr(reply->str, name) != NULL) {
		start(&cmd, "KILL");
		mq_command_str(&cmd, "ID");
		mq_command_int(&cmd, c->main_id);
		mq_async_send(&c->main, &cmd, NULL, NULL);
		mq_command_free(&cmd);
	}
	mark(c);
	c->fenced(c);
}

void
fence(struct consumer *c, void (*then)(struct consumer *))
{
	struct mq_command cmd = {0};

	if (c->main_id == 0) {
		mark(c);
		then(c);
		return;
	}
	c->fenced = then;
	start(&cmd, "LIST");
	mq_command_str(&cmd, "ID");
	mq_command_int(&cmd, c->main_id);
	mq_async_send(&c->main, &cmd, on_listed, c);
	mq_command_free(&cmd);
}
