/*
 * Listening for the end of a message.
 */
#ifndef MQ_ENDING_H
#define MQ_ENDING_H

#include "message/result.h"
#include "post.h"
#include "queue.h"

/*
 * Asks what became of a message, and waits for its end up to block_ms (0: not at
 * all).  *ended says whether *ending was filled in, for mq_ending_free().  AGAIN: the
 * server cannot say now, or not in this way, as a full one lets nobody wait.
 */
enum mq_call mq_ending_ask(struct mq_redis *, const struct mq_layout *,
    const char *queue, const char *id, int64_t block_ms, bool *ended,
    struct mq_ending *ending);

#endif
