/* What becomes of a message by the end of its run, or without one: its outcome, new header,
 * delay, news, and what others hear of it, all of which are set in the message. */
#ifndef MQ_CONSUME_VERDICT_H
#define MQ_CONSUME_VERDICT_H

#include "fact.h"

/* Why a message is rejected without a verdict. */
enum unfit {
	UNFIT_HEADER,  /* unreadable */
	UNFIT_RUN,     /* no run can take it; or it is too long to be pushed */
	UNFIT_EXPIRED, /* its time, or its last tick, is over */
	UNFIT_SPENT,   /* its attempts are; without a text */
	UNFIT_CRASHED /* the same, as the consumer of its last run died; without a text */
};

/* host: the name of this machine, empty: not known; tick: of its queue.  ending: as in a
 * fact; NULL: done. */
void verdict_ended(const struct options *, const char *host, int64_t tick,
    struct message *, const struct ending *);
void verdict_unfit(const struct options *, const char *host, struct message *,
    enum unfit, const char *why);

#endif
