/*
 * Marks tell what has become of a publisher's batches: see lua/lib/marks.lua.  Each
 * batch is marked in the step that publishes it.
 */
#ifndef MQ_MARK_H
#define MQ_MARK_H

#include "queue.h"

/* The server keeps the marks of the last 16 batches; as many may be under way. */
#define MQ_MARKS 16
/* The marks go 10 minutes after the last of them. */
#define MQ_MARKS_KEEP_MS 600000
/* A mark that is not there was never made, as long as it could not be over. */
#define MQ_MARKS_SURE_MS (MQ_MARKS_KEEP_MS / 2)

/* Adds place and before to a command ('' without a mark). */
void mq_mark_add(struct mq_command *, const struct mq_mark *);
/*
 * Adds those, and behind, which is -1: no other batch has to be done first.  Where that
 * ends with the first n bytes of the command's wire, another number can be put there.
 */
void mq_mark_add_behind(struct mq_command *, const struct mq_mark *);
void mq_mark_put_behind(struct mq_command *, size_t n, long long behind);

/*
 * Looks a batch up in the reply to HGETALL on the marks.  NULL: it has not been
 * done.  Else *n bytes, maybe none: the answer to it, unless that says how many
 * messages there are now.
 */
const char *mq_mark_find(const redisReply *, const struct mq_mark *, size_t *n);

/* Of the last batch that was done, how many messages were before it; -1: none
 * is known. */
long long mq_marks_last(const redisReply *);

#endif
