/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Commands whose replies have a type: one at a time, and many in one pipeline.  After a
 * failure, -1 or NULL is returned, and struct mq_redis has the error. */
#ifndef MQ_ASK_H
#define MQ_ASK_H

#include <stdint.h>

#include "base/names.h"
#include "connection.h"

/* The type of a reply is REDIS_REPLY_..., MQ_STRINGS, or -1: any but an error. */
#define MQ_STRINGS (-2) /* an array of strings */

/* mq_redis_answer() for a reply of this type, or for an integer; other replies are
 * failures.  The command is freed. */
redisReply *mq_call(struct mq_redis *, struct mq_command *, int type);
int mq_call_number(struct mq_redis *, struct mq_command *, long long *n);
/* mq_call() for any reply but an error; an optional command may have none. */
int mq_call_done(struct mq_redis *, struct mq_command *);

/* mq_call() for a reply that mq_reply_is() of this form. */
redisReply *mq_call_form(
    struct mq_redis *, struct mq_command *, const char *form);

/* Sets the error for a reply that makes no sense, and returns -1. */
int mq_nonsense(struct mq_redis *);

/*
 * Any number of commands, sent and answered in bounded batches: while replies are parsed,
 * the server has the next commands.
 *
 * ask() builds command number i, on one key or a few.  take() gets the replies in order, and
 * returns 0; MQ_KEEP, and the reply is the caller's; or -1: the reply makes no sense.  An
 * error reply ends mq_ask_all(), unless its node is lost (mq_reply_missing()): that is
 * skipped.  mq_ask_each() gives errors to take(), which may be NULL.
 */
#define MQ_KEEP 1
typedef void mq_ask_fn(void *arg, size_t i, struct mq_command *);
typedef int mq_take_fn(void *arg, size_t i, redisReply *);
int mq_ask_all(
    struct mq_redis *, size_t n, mq_ask_fn *ask, mq_take_fn *take, void *arg);
int mq_ask_each(
    struct mq_redis *, size_t n, mq_ask_fn *ask, mq_take_fn *take, void *arg);
/* mq_ask_all(), but take() also gets errors of keys that hold another type, and the key of a
 * plain command is added to wrong. */
int mq_ask_typed(struct mq_redis *, size_t n, mq_ask_fn *ask, mq_take_fn *take,
    void *arg, struct mq_names *wrong);

/* Parse a reply to TIME, unix time in milli- or microseconds; -1: it makes no sense. */
int mq_reply_time(const redisReply *, int64_t *ms);
int mq_reply_time_us(const redisReply *, int64_t *us);

/* A walk through all keys, or the fields of a hash, begins with the cursor "0" and ends with
 * an empty one.  mq_keys_ask() builds one step through the keys that match;
 * mq_cursor_take() stores the next cursor from the reply to a step, and returns the array
 * in it.  NULL: the reply makes no sense, and the walk is over. */
#define MQ_CURSOR_SIZE 32
#define MQ_CURSOR_STEP 1000
void mq_keys_ask(struct mq_command *, const char *cursor, const char *pattern);
redisReply *mq_cursor_take(char cursor[MQ_CURSOR_SIZE], const redisReply *);

/* --- round ------------------------------------------------------------- */

/* Commands about many keys, where an error reply for one key must not stop the others: the
 * first error is noted, and returned at the end.  Functions return -1 only when the
 * connection is lost.  Starts zeroed except r. */
struct mq_round {
	struct mq_redis *r;
	/* Replies that forbid a key: no errors, since such a key is not a queue's. */
	long refused;
	int status; /* mq_exit of the first error; 0: none */
	char error[512];
};

/* Whether a reply is of this type; if not, notes the error. */
bool mq_round_good(struct mq_round *, const redisReply *, int type);
/* Notes that a reply makes no sense, and returns false. */
bool mq_round_nonsense(struct mq_round *);

/* Calls and frees a command.  *reply is the caller's; NULL: an error was noted. */
int mq_round_call(
    struct mq_round *, struct mq_command *, int type, redisReply **reply);
/* mq_round_call() for an integer, which is added to *sum. */
int mq_round_add(struct mq_round *, struct mq_command *, long *sum);

/* 0, or -1 with the first error in struct mq_redis. */
int mq_round_end(struct mq_round *);

/* A walk through all keys that match, of all nodes side by side. */
struct mq_sweep {
	struct mq_round *round;
	const char *pattern;
	const char *type; /* type of the keys; NULL: any */
	long long most;	  /* skip nodes with more keys; 0: skip none */
	/* Most steps from the cursor `at` on, which is set to where the next walk goes on, 0 at
	 * the end; on one server only.  0: all keys. */
	int steps;
	unsigned long long at;
	/* Gets the keys of a step, strings; a key may come twice.  Returns 0, or -1 when
	 * the connection is lost. */
	int (*take)(void *arg, const redisReply *keys);
	void *arg;
	bool incomplete; /* set: a node was skipped, lost, or refused */
};

/* Returns 0, or -1 when the connection is lost. */
int mq_sweep_keys(struct mq_sweep *);

/*
 * The members of a set that stay in it during the call, each once, as an array of strings
 * that the caller frees.  SSCAN reads them in steps: with a million names, SMEMBERS would
 * stop all other clients for 0.25 s.  A user without the right to SSCAN reads them with
 * SMEMBERS.
 */
redisReply *mq_call_members(struct mq_redis *, const char *key);
int mq_round_members(struct mq_round *, const char *key, redisReply **);
/* One step of mq_round_members(): the cursor is "0" at first, and empty in the end; a member
 * may come twice. */
int mq_round_some_members(struct mq_round *, const char *key,
    char cursor[MQ_CURSOR_SIZE], redisReply **);

#endif
