/*
 * Messages that have the same bytes.  The server cannot tell equal elements of
 * a list apart: it removes the oldest one, whichever message has ended.
 */
#ifndef MQ_CONSUME_EQUALS_H
#define MQ_CONSUME_EQUALS_H

#include "mq-consume/message.h"

#define EQUALS_BUCKETS 1024

LIST_HEAD(equals_bucket, message);

/* Zeroed: empty. */
struct equals {
	struct equals_bucket buckets[EQUALS_BUCKETS];
};

/* While reconciling: an unseen message with this element, rather one whose settlement
 * was not sent, and of these the oldest; NULL: none.  At most one settlement of equal
 * messages is under way, so those that are left were settled by it. */
struct message *equals_unseen(
    const struct equals *, int queue, const char *element, size_t len);

#endif
