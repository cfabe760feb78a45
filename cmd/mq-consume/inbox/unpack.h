/*
 * Takes a message's envelope apart when it is about to start, and finds out
 * whether it still may.
 */
#ifndef MQ_CONSUME_UNPACK_H
#define MQ_CONSUME_UNPACK_H

#include "base/id.h"
#include "mq-consume/message.h"

struct unpack_limits {
	bool plain;   /* nothing but the id and the payload is needed */
	bool ids;     /* the layout has ids of its own */
	int attempts; /* with so many runs, its last consumer died; 0: never */
	int64_t now_ms; /* the server's clock, unix ms */
	int64_t tick;	/* of its queue */
};

/* Why a message may not start. */
struct unfit {
	enum {
		UNFIT_HEADER,  /* it cannot be read */
		UNFIT_EXPIRED, /* its time, or its last tick, is over */
		UNFIT_CRASHED  /* it had its last run, whose consumer died */
	} kind;
	char why[256]; /* not of CRASHED */
};

/* Sets envelope, id, attempts and awaited.  False: it may not start. */
bool unpack(struct message *, const struct unpack_limits *, struct mq_idgen *,
    struct unfit *);

#endif
