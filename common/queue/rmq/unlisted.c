/*
 * The rmq layout: unacked messages of connections that nobody lists.
 *
 * A Go program that was stopped, cleaned away, and goes on works under a name
 * that is in no set.  Only a look through all keys finds what it holds.  That
 * costs the server some 0.6 s for a million keys, in steps of 0.6 ms.
 */
#include <string.h>

#include "ask.h"
#include "keys.h"
#include "unlisted.h"
#include "scripts.h"

#define SCAN_COUNT 1000

/* Such a key has two names in it.  Go programs take any names, so a key that
 * can be read in two ways is left alone. */
bool
rmq_unacked_key(char *key, size_t n, char **connection, char **queue)
{
	static const char before[] = "rmq::connection::", mark[] = "::queue::[",
			  behind[] = "]::unacked";
	size_t start = sizeof(before) - 1, tail = sizeof(behind) - 1;
	char *at;

	if (n <= start + tail || strlen(key) != n ||
	    strncmp(key, before, start) != 0 ||
	    strcmp(key + n - tail, behind) != 0)
		return false;
	at = strstr(key + start, mark);
	if (at == NULL || at == key + start || strstr(at + 1, mark) != NULL ||
	    at + sizeof(mark) - 1 >= key + n - tail)
		return false;
	key[n - tail] = *at = '\0';
	*connection = key + start;
	*queue = at + sizeof(mark) - 1;
	return true;
}

/* A reply of this type; NULL without an error: the user may not ask. */
static int
ask(struct mq_redis *r, struct mq_command *c, int type, redisReply **out)
{
	redisReply *reply = NULL;
	int rv = mq_redis_send(r, c);

	mq_command_free(c);
	*out = NULL;
	if (rv == 0)
		reply = mq_redis_reply(r);
	if (reply == NULL)
		return -1;
	if (reply->type == type)
		*out = reply;
	else
		freeReplyObject(reply);
	return 0;
}

static int
count_keys(struct mq_redis *r, long long *n)
{
	struct mq_command c = {0};
	redisReply *reply;

	*n = -1;
	mq_command_plain(&c, "DBSIZE");
	if (ask(r, &c, REDIS_REPLY_INTEGER, &reply) == -1)
		return -1;
	if (reply != NULL) {
		*n = reply->integer;
		freeReplyObject(reply);
	}
	return 0;
}

static void
note(const redisReply *keys, struct mq_names *lists)
{
	char *connection, *queue;
	size_t i;

	for (i = 0; i < keys->elements; i++)
		if (rmq_unacked_key(keys->element[i]->str,
			keys->element[i]->len, &connection, &queue))
			mq_names_add(lists, connection, queue);
}

/* One step; an empty cursor is the end. */
static int
step(struct mq_redis *r, char *cursor, size_t size, struct mq_names *lists)
{
	struct mq_command c = {0};
	redisReply *reply, **e;

	mq_command_plain(&c, "SCAN");
	mq_command_str(&c, cursor);
	mq_command_str(&c, "MATCH");
	mq_command_str(&c, "rmq::connection::*]::unacked");
	mq_command_str(&c, "COUNT");
	mq_command_int(&c, SCAN_COUNT);
	*cursor = '\0';
	if (ask(r, &c, REDIS_REPLY_ARRAY, &reply) == -1)
		return -1;
	if (reply == NULL)
		return 0;
	e = reply->element;
	if (reply->elements == 2 && e[0]->type == REDIS_REPLY_STRING &&
	    mq_reply_strings(e[1])) {
		note(e[1], lists);
		if (strcmp(e[0]->str, "0") != 0)
			strlcpy(cursor, e[0]->str, size);
	}
	freeReplyObject(reply);
	return 0;
}

int
rmq_unacked_lists(struct mq_redis *r, long long most, struct mq_names *lists)
{
	char cursor[32] = "0";
	long long n = 0;
	int rv = most > 0 ? count_keys(r, &n) : 0;

	if (rv == -1 || n < 0 || (most > 0 && n > most))
		return rv;
	while (rv == 0 && *cursor != '\0')
		rv = step(r, cursor, sizeof(cursor), lists);
	/* A walk may come by a key twice. */
	mq_names_sort(lists);
	return rv;
}

void
rmq_adopt(struct mq_command *c, const char *connection, const char *queue,
    bool dry_run)
{
	mq_command_script(c, &rmq_script_adopt, 3);
	rmq_key_both(c, connection, queue, "unacked");
	mq_command_str(c, RMQ_CONNECTIONS);
	rmq_key_connection(c, connection, "queues");
	mq_command_str(c, connection);
	mq_command_str(c, queue);
	mq_command_int(c, dry_run);
}
