/*
 * What a duplicate looks like.
 */
#ifndef MQ_CONSUME_COPY_H
#define MQ_CONSUME_COPY_H

#include "base/id.h"
#include "message/envelope.h"
#include "queue/dup.h"
#include "queue/queue.h"

struct message;

/* Where duplicates are made. */
struct copy_origin {
	const struct mq_layout *layout; /* of their messages */
	const char *host;		/* the name of this machine */
	struct mq_idgen *ids;
};

struct copy {
	char id[MQ_ID_LEN + 1];
	struct mq_publishing how;
	struct mq_envelope envelope;
};

/* A duplicate of a message for a queue of that layout; copy_free() frees it in any
 * case.  False: the layout cannot carry it, and why is appended. */
bool copy_make(struct copy *, const struct copy_origin *,
    const struct message *, const struct mq_dup *, const struct mq_layout *,
    struct mq_buf *why);
void copy_free(struct copy *);

#endif
