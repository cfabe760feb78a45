/*
 * The rsmq layout: removing a whole queue.
 */
#include "rsmq.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/exit.h"
#include "base/xalloc.h"

/* How often to try again when connections come and go. */
#define DELETE_TRIES 100

static void
add_all_keys(struct mq_command *c, const char *queue)
{
	rsmq_queue_keys(c, queue);
	rsmq_key(c, queue, ":Xcounters");
	rsmq_key(c, queue, ":Xpaused");
	rsmq_key(c, queue, ":Xrate");
	rsmq_key(c, queue, ":Xlater");
	rsmq_key(c, queue, ":Xwatch");
	rsmq_key(c, queue, ":Xidle");
	rsmq_key(c, queue, ":Xsettings");
}

static void
add_delete(struct mq_command *c, const char *queue, bool look,
    const redisReply *connections)
{
	char *rejected = mq_xasprintf("%s" RSMQ_REJECTED, queue);
	size_t i, n = connections->elements;

	mq_command_script(c, &rsmq_script_delete);
	rsmq_key_common(c, queue, ":QUEUES");
	rsmq_key_common(c, queue, "::connections");
	add_all_keys(c, queue);
	add_all_keys(c, rejected);
	for (i = 0; i < n; i++)
		rsmq_key_lease(c, connections->element[i]->str, queue);
	mq_command_str(c, rsmq_bare(queue));
	mq_command_str(c, rsmq_bare(rejected));
	mq_command_int(c, look);
	for (i = 0; i < n; i++)
		mq_command_arg(c, connections->element[i]->str,
		    connections->element[i]->len);
	free(rejected);
}

static void
read_deletion(redisReply *const *e, struct mq_deletion *out)
{
	out->consumers = (long)e[0]->integer;
	out->known = e[1]->integer != 0;
	out->ready = (long)e[2]->integer;
	out->delayed = (long)e[3]->integer;
	out->rejected = (long)e[4]->integer;
}

/* *done is false when the connections have changed in between. */
static int
try_delete(
    struct mq_redis *r, const char *queue, struct mq_deletion *out, bool *done)
{
	redisReply *reply, *connections = rsmq_connections(r, queue);
	struct mq_command c = {0};
	int rv = 0;

	if (connections == NULL)
		return -1;
	add_delete(&c, queue, out->dry_run || out->unacked > 0, connections);
	freeReplyObject(connections);
	reply = mq_call(r, &c, -1);
	if (reply == NULL)
		return -1;
	*done = reply->type != REDIS_REPLY_NIL;
	if (*done && rsmq_is(reply, "#####"))
		read_deletion(reply->element, out);
	else if (*done)
		rv = mq_nonsense(r);
	freeReplyObject(reply);
	return rv;
}

/* The step that deletes cannot know what programs of RSMQ have in hand. */
int
rsmq_delete_queue(
    struct mq_redis *r, const char *queue, struct mq_deletion *out)
{
	const struct mq_place place = {.queue = queue, .state = MQ_UNACKED};
	bool done = false;
	int tries;

	if (rsmq_place_count(r, &place, &out->unacked) == -1)
		return -1;
	for (tries = 0; tries < DELETE_TRIES; tries++) {
		if (try_delete(r, queue, out, &done) == -1)
			return -1;
		if (done)
			return 0;
	}
	r->status = MQ_EXIT_AGAIN;
	snprintf(r->error, sizeof(r->error),
	    "%s: its connections keep changing; try again", queue);
	return -1;
}
