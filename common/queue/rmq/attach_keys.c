/*
 * The rmq layout: the keys of attachments, where {SET} keeps them in one slot:
 *
 *	mq::attach::{SET}::refs		hash: the ids of the messages that refer to the
 *					set, and when each was noted, unix ms
 *	mq::attach::{SET}::files	hash: by name "FIRST SIZE SHA256": the number of
 *					its first chunk, bytes, and the hexadecimal sum
 *	mq::attach::{SET}::N		a chunk, from 0 on
 *	mq::attach::sets		set: all sets that may be there
 */
#include "rmq.h"

#include <stdio.h>
#include <string.h>

#include "queue/attach.h"

void
rmq_attach_key(struct mq_command *c, const char *set, const char *what)
{
	const struct mq_part parts[] = {{"mq::attach::{", 13},
	    {set, strlen(set)}, {"}::", 3}, {what, strlen(what)}};

	mq_command_key(c, parts, 4);
}

void
rmq_attach_keys(struct mq_command *c, const struct mq_attach *a)
{
	char number[24];
	long long i;

	rmq_attach_key(c, a->set, "refs");
	rmq_attach_key(c, a->set, "files");
	for (i = 0; i < a->chunks; i++) {
		snprintf(number, sizeof(number), "%lld", i);
		rmq_attach_key(c, a->set, number);
	}
}

void
rmq_attach_sets(struct mq_command *c, const char *verb, const char *set)
{
	mq_command_plain(c, verb);
	mq_command_key(
	    c, &(struct mq_part){RMQ_ATTACH_SETS, strlen(RMQ_ATTACH_SETS)}, 1);
	if (set != NULL)
		mq_command_str(c, set);
}

void
rmq_attach_refer(
    struct mq_command *c, const char *set, const char *id, bool made)
{
	mq_command_script(c, &rmq_script_attach, 1);
	rmq_attach_key(c, set, "refs");
	mq_command_str(c, id);
	mq_command_str(c, made ? "new" : "");
}

/* --- commands ----------------------------------------------------------------- */

struct chunks {
	const char *set, *verb;
	long long done;
};

static void
ask_chunk(void *arg, size_t i, struct mq_command *c)
{
	const struct chunks *all = arg;
	char number[24];

	snprintf(number, sizeof(number), "%zu", i);
	mq_command_plain(c, all->verb);
	rmq_attach_key(c, all->set, number);
	if (strcmp(all->verb, "EXPIRE") == 0)
		mq_command_str(c, RMQ_ATTACH_S);
}

static int
take_chunk(void *arg, size_t i, redisReply *reply)
{
	struct chunks *all = arg;

	(void)i;
	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	all->done += reply->integer;
	return 0;
}

int
rmq_attach_each(struct mq_redis *r, const char *set, const char *verb,
    long long n, long long *done)
{
	struct chunks all = {set, verb, 0};
	int rv = mq_ask_all(r, (size_t)n, ask_chunk, take_chunk, &all);

	if (done != NULL)
		*done = all.done;
	return rv;
}

int
rmq_attach_one(struct mq_redis *r, const char *set, const char *verb,
    const char *what, long long *done)
{
	struct mq_command c = mq_redis_command(r);

	mq_command_plain(&c, verb);
	rmq_attach_key(&c, set, what);
	if (strcmp(verb, "EXPIRE") == 0)
		mq_command_str(&c, RMQ_ATTACH_S);
	return mq_call_number(r, &c, done);
}
