/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* The kept output of a message, for tools that wait; mq-layout(7) describes its entries. */
#include "base/text.h"
#include "calls.h"
#include "layout.h"

#define ENTRIES 64 /* read at a time */

void
mq_extra_output(const struct mq_extra_keys *extra, struct mq_command *c,
    const char *queue, const char *id)
{
	char key[16 + MQ_ID_MAX];

	snprintf(key, sizeof(key), "output::%s", id);
	extra->key(c, queue, key);
}

struct finding {
	const struct mq_layout *layout;
	const struct mq_stats *stats;
	const char *id, **queue;
	long long most;
};

static void
ask_life(void *arg, size_t i, struct mq_command *c)
{
	const struct finding *f = arg;

	mq_command_plain(c, "PTTL");
	mq_extra_output(f->layout->extra, c, f->stats->queues[i].name, f->id);
}

/* After a push, the output in the queue that the message has left expires first. */
static int
store_life(void *arg, size_t i, redisReply *reply)
{
	struct finding *f = arg;

	if (reply->type != REDIS_REPLY_INTEGER)
		return -1;
	if (reply->integer <= f->most)
		return 0;
	f->most = reply->integer;
	*f->queue = f->stats->queues[i].name;
	return 0;
}

int
mq_output_find(struct mq_redis *r, const struct mq_layout *layout,
    const struct mq_stats *stats, const char *id, const char **queue)
{
	struct finding f = {layout, stats, id, queue, 0};

	*queue = NULL;
	if (!mq_id_safe(id, strlen(id)))
		return 0;
	return mq_ask_all(r, (size_t)stats->count, ask_life, store_life, &f);
}

void
mq_output_free(struct mq_output *o)
{
	freeReplyObject(o->reply);
	free(o->parts);
	o->reply = NULL;
	o->parts = NULL;
	o->count = 0;
}

/* Adds the parts of an entry; false: it makes no sense. */
static bool
add_entry(struct mq_output *o, const redisReply *entry)
{
	const redisReply *fields;
	size_t i;

	if (!mq_reply_is(entry, "$*"))
		return false;
	fields = entry->element[1];
	strlcpy(o->last, entry->element[0]->str, sizeof(o->last));
	o->parts = mq_xreallocarray(o->parts,
	    (size_t)o->count + fields->elements / 2 + 1, sizeof(*o->parts));
	for (i = 0; i + 1 < fields->elements; i += 2) {
		if (fields->element[i]->type != REDIS_REPLY_STRING ||
		    fields->element[i + 1]->type != REDIS_REPLY_STRING)
			return false;
		o->parts[o->count++] = (struct mq_output_part){
		    fields->element[i]->str, fields->element[i + 1]->str,
		    fields->element[i + 1]->len};
	}
	return true;
}

int
mq_output_read(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, const char *id, int64_t block_ms, struct mq_output *o)
{
	struct mq_command c = mq_redis_command(r);
	const redisReply *entries;
	size_t i;

	mq_output_free(o);
	mq_command_plain(&c, "XREAD COUNT");
	mq_command_int(&c, ENTRIES);
	if (block_ms > 0)
		mq_command_add(&c, "BLOCK %lld", (long long)block_ms);
	mq_command_str(&c, "STREAMS");
	mq_extra_output(layout->extra, &c, queue, id);
	mq_command_str(&c, *o->last != '\0' ? o->last : "0");
	o->reply = mq_call(r, &c, -1);
	if (o->reply == NULL)
		return -1;
	if (o->reply->type == REDIS_REPLY_NIL)
		return 0;
	if (o->reply->elements != 1 || !mq_reply_is(o->reply->element[0], "$*"))
		return mq_nonsense(r);
	entries = o->reply->element[0]->element[1];
	for (i = 0; i < entries->elements; i++)
		if (!add_entry(o, entries->element[i]))
			return mq_nonsense(r);
	return 0;
}

int
mq_output_last(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, const char *id, struct mq_output *o)
{
	struct mq_command c = mq_redis_command(r);
	size_t i;

	mq_output_free(o);
	mq_command_plain(&c, "XREVRANGE");
	mq_extra_output(layout->extra, &c, queue, id);
	mq_command_words(&c, "+ - COUNT");
	mq_command_int(&c, ENTRIES);
	o->reply = mq_call(r, &c, REDIS_REPLY_ARRAY);
	for (i = o->reply != NULL ? o->reply->elements : 0; i > 0; i--)
		if (!add_entry(o, o->reply->element[i - 1]))
			return mq_nonsense(r);
	return o->reply != NULL ? 0 : -1;
}

int
mq_output_alive(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, const char *connection, bool *alive)
{
	struct mq_command c = mq_redis_command(r);
	long long n = 0;
	int rv;

	mq_command_plain(&c, "EXISTS");
	layout->extra->other(&c, connection, queue, "lease");
	rv = mq_call_number(r, &c, &n);
	*alive = n > 0;
	return rv;
}
