/*
 * The rsmq layout: queues that nobody lists, and names of queues that are not
 * there.  All keys are looked through; a key is judged here only by its name,
 * and again, by what the server knows at that moment, in the script.
 */
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/xalloc.h"
#include "clean.h"
#include "keys.h"
#include "scripts.h"

#define SCAN_COUNT 1000

/* Whether a key behind the namespace and a colon is of a queue; cuts off what
 * is behind its name. */
static bool
is_of_queue(char *key)
{
	static const char *const what[] = {
	    "Q", "X", "Xd", "Xpaused", "Xcounters", "Xrate", "Xlater"};
	char *colon = strchr(key, ':');
	size_t i;

	if (colon == NULL)
		return false;
	*colon = '\0';
	for (i = 0; i < sizeof(what) / sizeof(what[0]); i++)
		if (strcmp(colon + 1, what[i]) == 0)
			return rsmq_queue_error(key) == NULL;
	return false;
}

/* NAMESPACE:, and any key that begins so. */
static void
add_pattern(struct mq_command *c, const char *prefix)
{
	struct mq_buf pattern = {0};

	for (; *prefix != '\0'; prefix++) {
		if (strchr("*?[]\\^", *prefix) != NULL)
			mq_buf_add(&pattern, "\\", 1);
		mq_buf_add(&pattern, prefix, 1);
	}
	mq_buf_add(&pattern, "*", 1);
	mq_command_arg(c, pattern.data, pattern.len);
	mq_buf_free(&pattern);
}

/* One step of the walk through all keys; an empty cursor is its end. */
static int
scan(struct rsmq_round *w, const char *prefix, struct mq_names *found,
    char *cursor, size_t size)
{
	struct mq_command c = {0};
	redisReply *reply, *keys;
	size_t i;

	mq_command_plain(&c, "SCAN");
	mq_command_str(&c, cursor);
	mq_command_str(&c, "MATCH");
	add_pattern(&c, prefix);
	mq_command_str(&c, "COUNT");
	mq_command_int(&c, SCAN_COUNT);
	reply = mq_redis_call(w->r, &c);
	mq_command_free(&c);
	if (reply == NULL)
		return -1;
	*cursor = '\0';
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	    reply->element[0]->type == REDIS_REPLY_STRING &&
	    mq_reply_strings(reply->element[1])) {
		keys = reply->element[1];
		for (i = 0; i < keys->elements; i++)
			if (keys->element[i]->len >= strlen(prefix) &&
			    is_of_queue(keys->element[i]->str + strlen(prefix)))
				mq_names_add(found,
				    keys->element[i]->str + strlen(prefix),
				    NULL);
		if (strcmp(reply->element[0]->str, "0") != 0)
			strlcpy(cursor, reply->element[0]->str, size);
	}
	freeReplyObject(reply);
	return 0;
}

static int
find(struct rsmq_round *w, struct mq_names *found)
{
	const char *ns = w->r->server->url.ns;
	char *prefix = mq_xasprintf("%s:", ns != NULL ? ns : RSMQ_NAMESPACE);
	redisReply *listed = rsmq_listed(w->r);
	char cursor[32] = "0";
	size_t i;
	int rv = listed == NULL ? -1 : 0;

	for (i = 0; listed != NULL && i < listed->elements; i++)
		if (rsmq_is_name(listed->element[i]))
			mq_names_add(found, listed->element[i]->str, NULL);
	if (listed != NULL)
		freeReplyObject(listed);
	while (rv == 0 && *cursor != '\0')
		rv = scan(w, prefix, found, cursor, sizeof(cursor));
	mq_names_sort(found);
	free(prefix);
	return rv;
}

static void
build(struct rsmq_round *w, const char *name, struct mq_command *c)
{
	char *queue = rsmq_name(w->r, name);

	mq_command_script(c, &rsmq_script_enlist, 1 + RSMQ_HOME + 4);
	rsmq_key_common(c, queue, ":QUEUES");
	rsmq_key_home(c, queue);
	rsmq_key(c, queue, ":Xpaused");
	rsmq_key(c, queue, ":Xcounters");
	rsmq_key(c, queue, ":Xrate");
	rsmq_key(c, queue, ":Xlater");
	mq_command_str(c, name);
	mq_command_int(c, w->how->dry_run);
	free(queue);
}

static void
take(struct rsmq_round *w, const redisReply *reply)
{
	if (!mq_reply_good(w->r, &w->trouble, reply, REDIS_REPLY_ARRAY) ||
	    !rsmq_is(reply, "##"))
		return;
	w->out->adopted += (long)reply->element[0]->integer;
	w->out->orphans += (long)reply->element[1]->integer;
}

int
rsmq_enlist(struct rsmq_round *w)
{
	struct mq_names found = {0};
	size_t i, k, n;
	int rv = find(w, &found);

	for (i = 0; i < found.n && rv == 0; i += n) {
		n = found.n - i < MQ_PIPE_MAX ? found.n - i : MQ_PIPE_MAX;
		for (k = 0; k < n; k++)
			build(
			    w, found.list[i + k].name, mq_pipe_next(&w->pipe));
		rv = mq_pipe_run(w->r, &w->pipe);
		for (k = 0; k < n && rv == 0; k++)
			take(w, w->pipe.replies[k]);
		mq_pipe_clear(&w->pipe);
	}
	mq_names_free(&found);
	return rv;
}
