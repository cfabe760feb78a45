/*
 * Messages that may have the same bytes.  The server cannot tell equal elements of
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

void equals_add(struct equals *, struct message *);
void equals_remove(struct message *);
/* While reconciling, for an unseen message: an equal one that is seen, whose
 * settlement was sent (earlier, if both were) and can get no answer any more.
 * Of several, the one that was sent first; NULL: none. */
struct message *equals_settled(const struct equals *, const struct message *);

#endif
