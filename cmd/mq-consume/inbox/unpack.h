/*
 * Parses the envelope of a message that is about to start, and checks whether the
 * message may start.
 */
#ifndef MQ_CONSUME_UNPACK_H
#define MQ_CONSUME_UNPACK_H

#include "base/id.h"
#include "mq-consume/message.h"

struct unpack_limits {
	bool named;	/* a raw message needs an id, too */
	bool ids;	/* the layout has ids of its own */
	bool files;	/* a run can have attachments */
	int attempts;	/* runs after which the last one crashed; 0: no limit */
	int64_t now_ms; /* the server's clock, unix ms */
	int64_t tick;	/* of its queue */
};

/* Why a message may not start. */
struct unfit {
	enum {
		UNFIT_HEADER,  /* unreadable */
		UNFIT_FILES,   /* its attachments cannot go along */
		UNFIT_EXPIRED, /* its time, or its last tick, is over */
		UNFIT_CRASHED  /* the consumer of its last run died */
	} kind;
	char why[256]; /* empty for CRASHED */
};

/* Sets envelope, id, attempts and awaited.  If the header holds only the id, the
 * envelope has no headers.  False: the message may not start. */
bool unpack(struct message *, const struct unpack_limits *, struct mq_idgen *,
    struct unfit *);

#endif
