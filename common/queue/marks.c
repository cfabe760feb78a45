/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "marks.h"

#include "base/text.h"

#define NAME_START "mq-publish:" /* a connection's name, before the id */

struct mq_command
mq_marks_about(const struct mq_marks *m, const char *verb)
{
	struct mq_command c = mq_redis_command(m->redis);

	mq_command_plain(&c, verb);
	mq_extra_marks(m->layout->extra, &c, m->queue, m->id);
	return c;
}

void
mq_marks_name(struct mq_command *c, const char *id)
{
	mq_command_plain(c, "CLIENT SETNAME");
	mq_command_fmt(c, NAME_START "%s", id);
}

/*
 * Batches of the former connection may still arrive.  A script finds its mark and does
 * nothing; a transaction does not, so the former connection must be gone before the marks
 * are read.  Its name identifies it: after a restart of the server, CLIENT IDs begin anew.
 */

/* Kills connections with the publisher's name, which the new one has not got yet. */
static enum mq_call
kill_former(const struct mq_marks *m)
{
	char name[sizeof(" name=" NAME_START " ") + MQ_ID_LEN];
	struct mq_command c = mq_redis_command(m->redis);
	enum mq_call result;
	redisReply *reply;
	unsigned long long id;
	char *rest, *line;

	snprintf(name, sizeof(name), " name=" NAME_START "%s ", m->id);
	mq_command_plain(&c, "CLIENT LIST");
	result = mq_call_once(m->redis, &c, &reply);
	if (result != MQ_CALL_DONE)
		return result;
	rest = reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
	while (result == MQ_CALL_DONE && (line = strsep(&rest, "\n")) != NULL) {
		if (strstr(line, name) == NULL ||
		    sscanf(line, "id=%llu ", &id) != 1)
			continue;
		mq_command_plain(&c, "CLIENT KILL ID");
		mq_command_fmt(&c, "%llu", id);
		result = mq_call_once(m->redis, &c, NULL);
	}
	freeReplyObject(reply);
	return result;
}

enum mq_call
mq_marks_read(const struct mq_marks *m, long long sent, bool scripts,
    bool *loose, redisReply **marks)
{
	struct mq_command c = mq_redis_command(m->redis);
	enum mq_call result;

	result = kill_former(m);
	if (result == MQ_CALL_DONE) {
		mq_marks_name(&c, m->id);
		result = mq_call_once(m->redis, &c, NULL);
	}
	if (result == MQ_CALL_REFUSED && scripts) {
		*loose = true;
		result = MQ_CALL_DONE;
	}
	if (result != MQ_CALL_DONE)
		return result;
	/* A user without the right to write the marks has left none, whatever was done:
	 * a write before the read tells. */
	c = mq_marks_about(m, "HSET");
	mq_command_add(&c, "resumed %lld", sent);
	result = mq_call_once(m->redis, &c, NULL);
	if (result == MQ_CALL_DONE || result == MQ_CALL_AGAIN) {
		c = mq_marks_about(m, "PEXPIRE");
		mq_command_int(
		    &c, m->lasting ? MQ_MARKS_LONG_MS : MQ_MARKS_KEEP_MS);
		result = mq_call_once(m->redis, &c, NULL);
	}
	/* AGAIN: memory is full, but the right was tested. */
	if (result == MQ_CALL_LOST || result == MQ_CALL_REFUSED)
		return result;
	c = mq_marks_about(m, "HGETALL");
	freeReplyObject(*marks);
	*marks = NULL;
	return mq_call_once(m->redis, &c, marks);
}

/* The number of messages before a batch, and its reply behind the blank, from the text of its mark;
 * -1: it is no mark. */
static long long
read_mark(const redisReply *value, const char **reply)
{
	size_t len;

	if (value->type != REDIS_REPLY_STRING)
		return -1;
	len = strcspn(value->str, " ");
	if (value->str[len] != ' ')
		return -1;
	*reply = value->str + len + 1;
	return mq_number(value->str, len, INT64_MAX);
}

const char *
mq_mark_find(const redisReply *marks, long long before, long long *last)
{
	const char *found = NULL, *reply = NULL;
	long long of;
	size_t i;

	*last = -1;
	for (i = 1; i < marks->elements; i += 2) {
		of = read_mark(marks->element[i], &reply);
		*last = MAX(*last, of);
		if (of != -1 && of == before)
			found = reply;
	}
	return found;
}

const char *
mq_mark_at(const redisReply *marks, int place, long long *before)
{
	const redisReply *field;
	const char *reply = NULL;
	char name[12];
	size_t i;

	snprintf(name, sizeof(name), "%d", place);
	for (i = 1; i < marks->elements; i += 2) {
		field = marks->element[i - 1];
		if (field->type == REDIS_REPLY_STRING &&
		    strcmp(field->str, name) == 0 &&
		    (*before = read_mark(marks->element[i], &reply)) != -1)
			return reply;
	}
	return NULL;
}
