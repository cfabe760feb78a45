/*
 * Unacked messages of connections that nobody lists; see unlisted.c.  redis/ask.h tells of errors.  For this folder only.
 */
#ifndef MQ_RMQ_UNLISTED_H
#define MQ_RMQ_UNLISTED_H

#include "base/names.h"
#include "redis/members.h"

/* Adds the members of a set of names, but for those with a NUL: no key can be made of them here. */
void rmq_add_names(struct mq_names *, const redisReply *all);

/* Cuts the names out of a key of n bytes, in place; false: it is none of an
 * unacked list, or not for sure. */
bool rmq_unacked_key(char *key, size_t n, char **connection, char **queue);

/*
 * Adds connection and queue of all unacked lists that there are, and sorts
 * them: none of them if the user may not look, or if the server has more than
 * so many keys (0: any number).  Returns -1 when the connection is lost.
 */
int rmq_unacked_lists(
    struct mq_redis *, long long most, struct mq_names *lists);

/* Lists a connection and its queue again, if there is such a list; the reply
 * is 1, or 0 when there was nothing to do. */
void rmq_adopt(struct mq_command *, const char *connection, const char *queue,
    bool dry_run);

#endif
