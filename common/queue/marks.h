/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Marks of a publisher's batches at the server, by which a new connection finds out which of them
 * were done; see lua/lib/marks.lua. */
#ifndef MQ_MARKS_H
#define MQ_MARKS_H

#include "calls.h"

/* The marks of a publisher for a queue. */
struct mq_marks {
	struct mq_redis *redis;
	const struct mq_layout *layout;
	const char *queue;
	const char *id; /* the publisher's */
	bool lasting;	/* for MQ_MARKS_LONG_MS, not MQ_MARKS_KEEP_MS */
};

/* A command about their key; the caller adds its other arguments, and frees it. */
struct mq_command mq_marks_about(const struct mq_marks *, const char *verb);
/* Builds the command that names the connection of the publisher with this id. */
void mq_marks_name(struct mq_command *, const char *id);

/* Reads the marks by HGETALL, after the publisher's former connection was killed, and this one is
 * named.  sent: messages in batches sent.  With scripts, all batches find their marks themselves,
 * and a refusal to kill it does not matter: *loose, its commands may still arrive.  A former reply
 * is freed, and the new one is the caller's; NULL: there is none. */
enum mq_call mq_marks_read(const struct mq_marks *, long long sent,
    bool scripts, bool *loose, redisReply **);

/* The reply to the batch with this number of messages before it, from HGETALL on the marks;
 * empty: all its messages were published; NULL: there is no mark.  *last: number of messages
 * before the last batch that was done; -1: none is known. */
const char *mq_mark_find(
    const redisReply *marks, long long before, long long *last);
/* The reply to the last batch with this place, and its number of messages before; NULL: none. */
const char *mq_mark_at(const redisReply *marks, int place, long long *before);

#endif
