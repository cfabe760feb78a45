/*
 * Messages that may have the same bytes.  The server cannot tell equal elements
 * of a list apart, and removes the oldest of them, whichever of them has ended.
 */
#ifndef MQ_CONSUME_EQUALS_H
#define MQ_CONSUME_EQUALS_H

#include "mq-consume/message.h"

#define EQUALS_BUCKETS 1024

LIST_HEAD(equals_bucket, message);

/* Zeroed, it has none. */
struct equals {
	struct equals_bucket buckets[EQUALS_BUCKETS];
};

void equals_add(struct equals *, struct message *);
void equals_remove(struct message *);
/* While reconciling, for a message that is not seen: an equal one that is seen,
 * although its settlement was sent (earlier, if both were) and no answer can
 * come any more.  Of several, the one that was sent first; NULL: none. */
struct message *equals_settled(const struct equals *, const struct message *);

#endif
