/*
 * What an error reply means, by its text, which differs between servers and their
 * versions.
 */
#ifndef MQ_REPLY_H
#define MQ_REPLY_H

#include <stdbool.h>

#include <hiredis/hiredis.h>

#include "answer.h"

/* Whether the server does not know a script. */
bool mq_reply_noscript(const redisReply *);

/* Whether a key is not permitted to the user. */
bool mq_reply_barred(const redisReply *);

/* The mq_exit status that fits the text of an error reply. */
int mq_reply_status(const char *error);

/* The words to add for people if something is not permitted; else "".  Constant
 * text. */
const char *mq_reply_hint(const char *error);

/* Fills *a and returns it, or NULL for no reply.  A reply of another type than
 * REDIS_REPLY_* type is an error, too; with -1, any type will do. */
const struct mq_answer *mq_answer_to(
    const redisReply *, int type, struct mq_answer *a);

#endif
