/*
 * The copy of a message that a duplicate is.
 */
#ifndef MQ_CONSUME_COPY_H
#define MQ_CONSUME_COPY_H

#include "base/id.h"
#include "message/envelope.h"
#include "queue/dup.h"
#include "queue/queue.h"

struct message;

/* The origin of duplicates: this consumer. */
struct copy_origin {
	const struct mq_layout *layout; /* of its messages */
	const char *host;		/* the name of this machine */
	struct mq_idgen *ids;
};

struct copy {
	char id[MQ_ID_LEN + 1];
	struct mq_publishing how;
	struct mq_envelope envelope;
};

/* Makes the copy of a message for a queue of that layout; to be freed with
 * copy_free() in any case.  False: the layout cannot carry the copy; the reason is
 * appended to why. */
bool copy_make(struct copy *, const struct copy_origin *,
    const struct message *, const struct mq_dup *, const struct mq_layout *,
    struct mq_buf *why);
void copy_free(struct copy *);

#endif
