/*
 * The rsmq layout: queues that nobody lists, and names of queues that are not
 * there.  All keys are looked through; a key is judged here only by its name,
 * and again, by what the server knows at that moment, in the script.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "rsmq.h"

/* Whether a key behind the namespace and a colon is of a queue; cuts off what
 * is behind its name. */
static bool
is_of_queue(char *key)
{
	static const char *const what[] = {
	    "Q", "X", "Xagain", "Xpaused", "Xcounters", "Xrate", "Xlater"};
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
add_pattern(struct mq_buf *pattern, const char *prefix)
{
	for (; *prefix != '\0'; prefix++) {
		if (strchr("*?[]\\^", *prefix) != NULL)
			mq_buf_add(pattern, "\\", 1);
		mq_buf_add(pattern, prefix, 1);
	}
	mq_buf_add(pattern, "*", 1);
}

static void
note_queues(const redisReply *keys, const char *prefix, struct mq_names *found)
{
	size_t i, n = strlen(prefix);

	for (i = 0; i < keys->elements; i++)
		if (keys->element[i]->len >= n &&
		    is_of_queue(keys->element[i]->str + n))
			mq_names_add(found, keys->element[i]->str + n, NULL);
}

/* Walks through all keys. */
static int
scan_keys(struct mq_redis *r, const char *prefix, struct mq_names *found)
{
	char cursor[MQ_CURSOR_SIZE] = "0";
	struct mq_buf pattern = {0};
	struct mq_command c = {0};
	redisReply *reply = NULL, *keys;

	add_pattern(&pattern, prefix);
	while (*cursor != '\0') {
		mq_keys_ask(&c, cursor, mq_buf_str(&pattern));
		reply = mq_redis_call(r, &c);
		if (reply == NULL)
			break;
		keys = mq_cursor_take(cursor, reply);
		if (keys != NULL)
			note_queues(keys, prefix, found);
		freeReplyObject(reply);
	}
	mq_command_free(&c);
	mq_buf_free(&pattern);
	return reply == NULL ? -1 : 0;
}

static int
find_queues(struct mq_redis *r, struct mq_names *found)
{
	const char *ns = r->server->url.ns;
	char *prefix = mq_xasprintf("%s:", ns != NULL ? ns : RSMQ_NAMESPACE);
	int rv = rsmq_add_listed(r, found);

	if (rv == 0)
		rv = scan_keys(r, prefix, found);
	mq_names_sort(found);
	free(prefix);
	return rv;
}

struct enlist {
	struct rsmq_cleaner *w;
	struct mq_names found;
};

static void
ask_enlist(void *arg, size_t i, struct mq_command *c)
{
	const struct enlist *l = arg;
	const char *name = l->found.list[i].name;
	char *queue = rsmq_name(l->w->round.r, name);

	mq_command_script(c, &rsmq_script_enlist);
	rsmq_key_common(c, queue, ":QUEUES");
	rsmq_queue_keys(c, queue);
	rsmq_key(c, queue, ":Xpaused");
	rsmq_key(c, queue, ":Xcounters");
	rsmq_key(c, queue, ":Xrate");
	rsmq_key(c, queue, ":Xlater");
	mq_command_str(c, name);
	mq_command_int(c, l->w->how->dry_run);
	free(queue);
}

static int
take_enlisted(void *arg, size_t i, redisReply *reply)
{
	struct rsmq_cleaner *w = ((struct enlist *)arg)->w;

	(void)i;
	if (!mq_round_good(&w->round, reply, REDIS_REPLY_ARRAY) ||
	    !rsmq_is(reply, "##"))
		return 0;
	w->out->adopted += (long)reply->element[0]->integer;
	w->out->orphans += (long)reply->element[1]->integer;
	return 0;
}

int
rsmq_enlist(struct rsmq_cleaner *w)
{
	struct enlist l = {.w = w};
	int rv = find_queues(w->round.r, &l.found);

	if (rv == 0)
		rv = mq_ask_each(
		    w->round.r, l.found.n, ask_enlist, take_enlisted, &l);
	mq_names_free(&l.found);
	return rv;
}
