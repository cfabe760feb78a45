/*
 * The rmq layout: unacked messages of connections that nobody lists.
 *
 * A Go program that was stopped, cleaned away, and goes on works under a name
 * that is in no set.  Only a look through all keys finds what it holds.  That
 * costs the server some 0.6 s for a million keys, in steps of 0.6 ms.
 */
#include "rmq.h"

#include <string.h>

#include "redis/ask.h"

void
rmq_add_names(struct mq_names *names, const redisReply *all)
{
	size_t i;

	for (i = 0; i < all->elements; i++)
		if (strlen(all->element[i]->str) == all->element[i]->len)
			mq_names_add(names, all->element[i]->str, NULL);
}

/* Such a key has two names in it.  Go programs take any names, so a key that
 * can be read in two ways is left alone. */
bool
rmq_unacked_key(char *key, size_t n, char **connection, char **queue)
{
	static const char before[] = "rmq::connection::",
			  behind[] = "]::unacked";
	static const char plain[] = "::queue::[", tagged[] = "::queue::{";
	size_t start = sizeof(before) - 1, tail = sizeof(behind) - 1;
	bool cluster = n > tail && key[n - tail] == '}';
	const char *mark = cluster ? tagged : plain;
	char *at;

	if (n <= start + tail || strlen(key) != n ||
	    strncmp(key, before, start) != 0 ||
	    strcmp(key + n - tail + 1, behind + 1) != 0 ||
	    (!cluster && key[n - tail] != ']'))
		return false;
	at = strstr(key + start, mark);
	if (at == NULL || at == key + start || strstr(at + 1, mark) != NULL ||
	    at + sizeof(plain) - 1 >= key + n - tail)
		return false;
	key[n - tail] = *at = '\0';
	*connection = key + start;
	*queue = at + sizeof(plain) - 1;
	return true;
}

static int
note_lists(void *lists, const redisReply *keys)
{
	char *connection, *queue;
	size_t i;

	for (i = 0; i < keys->elements; i++)
		if (rmq_unacked_key(keys->element[i]->str,
			keys->element[i]->len, &connection, &queue))
			mq_names_add(lists, connection, queue);
	return 0;
}

int
rmq_unacked_lists(struct mq_redis *r, long long most, struct mq_names *lists)
{
	/* A user who may not look is told nothing. */
	struct mq_round round = {.r = r};
	struct mq_sweep sweep = {.round = &round,
	    .pattern = mq_redis_command(r).cluster ?
		"rmq::connection::*}::unacked" :
		"rmq::connection::*]::unacked",
	    .type = "list",
	    .most = most,
	    .take = note_lists,
	    .arg = lists};
	int rv = mq_sweep_keys(&sweep);

	/* A walk may come by a key twice. */
	mq_names_sort(lists);
	return rv;
}

void
rmq_adopt(struct mq_command *c, const char *connection, const char *queue,
    bool dry_run)
{
	mq_command_script(c, &rmq_script_adopt);
	rmq_key_both(c, connection, queue, "unacked");
	rmq_key_all(c, RMQ_CONNECTIONS);
	rmq_key_connection(c, connection, "queues");
	mq_command_str(c, connection);
	mq_command_str(c, queue);
	mq_command_int(c, dry_run);
}
