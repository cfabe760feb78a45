/*
 * Many commands, in few round trips.
 */
#ifndef MQ_ROUND_H
#define MQ_ROUND_H

#include "ask.h"

/* --- round ------------------------------------------------------------- */

/*
 * Commands about many keys, where an error reply about one must not keep a caller
 * from the others: the first error is noted, and returned at the end.  Knows no queues.
 * All functions return -1 only when the connection is lost.
 */

/* Starts zeroed but for r. */
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
/* The same for an array of strings. */
int mq_round_call_strings(
    struct mq_round *, struct mq_command *, redisReply **reply);
/* The same for a number, which is added to *sum. */
int mq_round_add(struct mq_round *, struct mq_command *, long *sum);

/* 0, or -1 with the first error in struct mq_redis. */
int mq_round_end(struct mq_round *);

/* --- sweep -------------------------------------------------------------- */

/*
 * A walk through all keys that match, of all nodes side by side.
 */

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

/* --- members ------------------------------------------------------------ */

/*
 * The members of a set, read in steps: for a set of a million names, SMEMBERS would
 * keep all other clients waiting for a quarter of a second.
 */

/*
 * All members that stay in the set meanwhile, each once, as an array of strings, which
 * the caller frees.  Errors are as in mq_call(), or as in mq_round_call().  A user
 * without the right to SSCAN reads them with SMEMBERS.
 */
redisReply *mq_call_members(struct mq_redis *, const char *key);
int mq_round_members(struct mq_round *, const char *key, redisReply **);
/* One step of it, from "0" until the cursor is empty; a member may come twice. */
int mq_round_some_members(struct mq_round *, const char *key,
    char cursor[MQ_CURSOR_SIZE], redisReply **);

#endif
