/* The keys of attachments, and commands on all of a set; see attach_keys.c.  For this
 * folder only.  Errors are as in redis/ask.h. */
#ifndef MQ_RMQ_ATTACH_KEYS_H
#define MQ_RMQ_ATTACH_KEYS_H

#include "queue/attach.h"
#include "redis/ask.h"

#define RMQ_ATTACH_SETS "mq::attach::sets"
/* How long keys of attachments live without a message, in seconds. */
#define RMQ_ATTACH_S "3600"
/* Bytes of all chunks of a file but the last. */
#define RMQ_ATTACH_CHUNK (1LL << 20)

/* Appends a key of a set. */
void rmq_attach_key(struct mq_command *, const char *set, const char *what);
/* Appends all keys of a set that is complete: two more than it has chunks. */
void rmq_attach_keys(struct mq_command *, const struct mq_attach *);
/* SADD or SREM; or, with NULL, SCARD. */
void rmq_attach_sets(struct mq_command *, const char *verb, const char *set);

/* EXISTS, PTTL, PERSIST, EXPIRE (RMQ_ATTACH_S) or UNLINK: of one key, or of n chunks; *done
 * (there may be NULL) is how many were there, and had it done to them. */
int rmq_attach_one(struct mq_redis *, const char *set, const char *verb,
    const char *what, long long *done);
int rmq_attach_each(struct mq_redis *, const char *set, const char *verb,
    long long n, long long *done);

/* The files, as HGETALL has them, and how many chunks they have together. */
redisReply *rmq_attach_files(
    struct mq_redis *, const char *set, long long *chunks);
/* The parts of the table, and that; see queue/attach.h. */
int rmq_attach_fetch(struct mq_redis *, const char *set, const char *id,
    int dir, struct mq_buf *why);
int rmq_attach_release(struct mq_redis *, const char *set, const char *id);
void rmq_attach_refer(
    struct mq_command *, const char *set, const char *id, bool made);
extern const struct mq_attachments rmq_attachments;
/* Removes the files of a set to which no message refers. */
int rmq_attach_remove(struct mq_redis *, const char *set);
/*
 * Lets sets expire in an hour to which no message refers any more, whoever has ended
 * the last one; *n is how many.
 */
int rmq_attach_sweep(struct mq_redis *, bool dry_run, long *n);

#endif
