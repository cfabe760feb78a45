/*
 * What has become of a publisher's batches, as the server keeps it: see
 * lua/lib/marks.lua.  Each is marked in the step that does it.
 */
#ifndef MQ_MARK_H
#define MQ_MARK_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

#include "queue.h"

/* So many batches are known; as many may be under way. */
#define MQ_MARKS 16
/* So long after the last of them. */
#define MQ_MARKS_KEEP_MS 600000

/* Adds place and before to a command ('' without a mark). */
void mq_mark_add(struct mq_command *, const struct mq_mark *);

/*
 * Looks a batch up in the reply to HGETALL on the marks.  NULL: it has not been
 * done.  Else *n bytes, maybe none: what it was answered, unless that says how
 * many there are now.
 */
const char *mq_mark_find(const redisReply *, const struct mq_mark *, size_t *n);

/* Of the last batch that was done, how many messages were before it; -1: none
 * is known. */
long long mq_marks_last(const redisReply *);

#endif
