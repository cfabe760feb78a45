/*
 * The meaning of replies; the texts of errors are in error.h.
 */
#ifndef MQ_REPLY_H
#define MQ_REPLY_H

#include <stdbool.h>

#include <hiredis/hiredis.h>

#include "answer.h"

/* Whether the server does not know a script. */
bool mq_reply_noscript(const redisReply *);

/* Whether the server runs a long script, or loads its data.  The command was not
 * carried out, and can be sent again. */
bool mq_reply_busy(const redisReply *);

/*
 * Whether it is an error of ours, "node HOST:PORT: why": the node of a cluster that has
 * the key is away.  An optional command gets it, and the connection goes on; another
 * one costs the connection, unless that is of a reader (see partial.h).  The node may
 * have carried out the command.
 */
#define MQ_MISSING "node "
bool mq_reply_missing(const redisReply *);

/* Leaves of errors of a script, alone or in a transaction, what the command in it got.
 * An error of the script itself keeps its line. */
void mq_reply_strip_script(redisReply *);

/* Whether a key is not permitted to the user. */
bool mq_reply_barred(const redisReply *);

/* Fills *a and returns it, or NULL for no reply.  A reply of another type than
 * REDIS_REPLY_* type is an error, too; with -1, any type will do. */
const struct mq_answer *mq_answer_to(
    const redisReply *, int type, struct mq_answer *a);

#endif
