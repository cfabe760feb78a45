/*
 * The members of a set, read in steps: for a set of a million names, SMEMBERS would
 * keep all other clients waiting for a quarter of a second.
 */
#ifndef MQ_MEMBERS_H
#define MQ_MEMBERS_H

#include "round.h"

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
