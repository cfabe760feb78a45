/*
 * What has become of a publisher's batches, as the server keeps it: see
 * lua/lib/marks.lua.  Each is marked in the step that does it.
 */
#ifndef MQ_MARK_H
#define MQ_MARK_H

#include "queue.h"

/* So many batches are known; as many may be under way. */
#define MQ_MARKS 16
/* So long after the last of them. */
#define MQ_MARKS_KEEP_MS 600000
/* A mark that is not there was never made, as long as it could not be over. */
#define MQ_MARKS_SURE_MS (MQ_MARKS_KEEP_MS / 2)

/* The marks of one publisher; freed by mq_marks_free(). */
struct mq_marks {
	redisReply *reply; /* to HGETALL */
};
void mq_marks_free(struct mq_marks *);

/* Adds place and before to a command ('' without a mark). */
void mq_mark_add(struct mq_command *, const struct mq_mark *);

/*
 * Looks a batch up.  NULL: it has not been done.  Else *n bytes, maybe none: what it
 * was answered, unless that says how many there are now.
 */
const char *mq_mark_find(
    const struct mq_marks *, const struct mq_mark *, size_t *n);

/* Of the last batch that was done, how many messages were before it; -1: none
 * is known. */
long long mq_marks_last(const struct mq_marks *);

#endif
