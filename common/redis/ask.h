/* Commands whose replies have a type: one at a time, and many in one pipeline.  All return
 * -1 or NULL with the error in struct mq_redis. */
#ifndef MQ_ASK_H
#define MQ_ASK_H

#include <stdint.h>

#include "base/names.h"
#include "connection.h"

/* The type of a reply is one of hiredis, or this; -1: any but an error. */
#define MQ_STRINGS (-2) /* an array of strings */

/* As mq_redis_answer(); the reply must be of this type, or an integer; an error is none.
 * The command is freed. */
redisReply *mq_call(struct mq_redis *, struct mq_command *, int type);
int mq_call_number(struct mq_redis *, struct mq_command *, long long *n);
/* The same when any reply but an error will do, or none to an optional command. */
int mq_call_done(struct mq_redis *, struct mq_command *);

/* As mq_call(), for a reply of such a form. */
redisReply *mq_call_form(
    struct mq_redis *, struct mq_command *, const char *form);

/* The reply made no sense: sets the error, and gives -1. */
int mq_nonsense(struct mq_redis *);

/*
 * Any number of commands: they are sent and answered in bounded batches, so that
 * the server has the next ones while we look at the replies.
 *
 * ask() builds command number i, on a single key or a few.  take() takes its reply, in
 * order: 0; MQ_KEEP, and the reply is the caller's; or -1 when it
 * makes no sense.  An error reply ends mq_ask_all(), but for those of lost nodes, which
 * it passes over (mq_reply_missing()); mq_ask_each() gives it to take(), which may be NULL.
 */
#define MQ_KEEP 1
typedef void mq_ask_fn(void *arg, size_t i, struct mq_command *);
typedef int mq_take_fn(void *arg, size_t i, redisReply *);
int mq_ask_all(
    struct mq_redis *, size_t n, mq_ask_fn *ask, mq_take_fn *take, void *arg);
int mq_ask_each(
    struct mq_redis *, size_t n, mq_ask_fn *ask, mq_take_fn *take, void *arg);
/* As mq_ask_all(), but take() also gets errors of keys that hold another type; a plain
 * command's key is added to wrong. */
int mq_ask_typed(struct mq_redis *, size_t n, mq_ask_fn *ask, mq_take_fn *take,
    void *arg, struct mq_names *wrong);

/* The server's clock in unix milliseconds; and what a reply to TIME says of
 * it: -1 when that makes no sense. */
int mq_server_time(struct mq_redis *, int64_t *ms);
int mq_reply_time(const redisReply *, int64_t *ms);
int mq_reply_time_us(const redisReply *, int64_t *us);

/* A walk through all keys, or the fields of a hash: "0" begins it, and an empty cursor is
 * its end.  mq_keys_ask() builds one step through the keys that match; mq_cursor_take()
 * takes the reply to any step, and returns the array in it.  NULL: it makes no sense, and
 * the walk is over. */
#define MQ_CURSOR_SIZE 32
#define MQ_CURSOR_STEP 1000
void mq_keys_ask(struct mq_command *, const char *cursor, const char *pattern);
redisReply *mq_cursor_take(char cursor[MQ_CURSOR_SIZE], const redisReply *);

/* --- round ------------------------------------------------------------- */

/* Commands about many keys, where an error reply about one must not keep a caller from the
 * others: the first error is noted, and returned at the end.  All functions return -1 only
 * when the connection is lost.  Starts zeroed but for r. */
struct mq_round {
	struct mq_redis *r;
	/* Replies that said that a key is not permitted: no error, as the key is
	 * none of ours then. */
	long refused;
	int status; /* of the first error; 0: there was none */
	char error[512];
};

/* Whether a reply is of this type; if not, that is noted. */
bool mq_round_good(struct mq_round *, const redisReply *, int type);
/* Notes that a reply makes no sense; false. */
bool mq_round_nonsense(struct mq_round *);

/* Calls and frees a command.  *reply is the caller's; NULL when it is not good. */
int mq_round_call(
    struct mq_round *, struct mq_command *, int type, redisReply **reply);
/* The same for a number, which is added to *sum. */
int mq_round_add(struct mq_round *, struct mq_command *, long *sum);

/* 0, or -1 with the first error in struct mq_redis. */
int mq_round_end(struct mq_round *);

/* A walk through all keys that match, of all nodes side by side. */
struct mq_sweep {
	struct mq_round *round;
	const char *pattern;
	const char *type; /* of the keys; NULL: any */
	long long most;	  /* nodes with more keys are left out; 0: none are */
	/* Gets the keys of a step, strings; a walk may come by a key twice.  Returns 0,
	 * or -1 when the connection is lost. */
	int (*take)(void *arg, const redisReply *keys);
	void *arg;
	bool
	    part; /* set: some keys were not shown, or are those of a lost node */
};

/* Returns 0, or -1 when the connection is lost. */
int mq_sweep_keys(struct mq_sweep *);

/*
 * All members that stay in a set meanwhile, each once, as an array of strings, which
 * the caller frees.  Errors are as in mq_call(), or as in mq_round_call().  They are read
 * in steps: for a set of a million names, SMEMBERS would keep all other clients waiting
 * for a quarter of a second.  A user without the right to SSCAN reads them with SMEMBERS.
 */
redisReply *mq_call_members(struct mq_redis *, const char *key);
int mq_round_members(struct mq_round *, const char *key, redisReply **);
/* One step of it, from "0" until the cursor is empty; a member may come twice. */
int mq_round_some_members(struct mq_round *, const char *key,
    char cursor[MQ_CURSOR_SIZE], redisReply **);

#endif
