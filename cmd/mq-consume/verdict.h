/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* Verdicts: sets in a message its outcome, new header, delay, news and result, at the end of its
 * run or without a run. */
#ifndef MQ_CONSUME_VERDICT_H
#define MQ_CONSUME_VERDICT_H

#include "fact.h"

/* Why a message is rejected without a verdict. */
enum unfit {
	UNFIT_HEADER, /* unreadable header */
	UNFIT_RUN, /* no run can take the message; or it is too long to be pushed */
	UNFIT_EXPIRED, /* time or last tick over */
	UNFIT_BATCH,   /* messages that it has waited for were rejected */
	UNFIT_SPENT,   /* attempts used up; no text */
	UNFIT_CRASHED /* attempts used up, the last by a consumer that died; no text */
};

/* host: the name of this machine, empty: unknown; tick: the queue's.  ending: as in a fact;
 * NULL: done. */
void verdict_ended(const struct options *, const char *host, int64_t tick,
    struct message *, const struct ending *);
void verdict_unfit(const struct options *, const char *host, struct message *,
    enum unfit, const char *why);
/* The message goes on in this queue, by mq_message_to(). */
void verdict_passed(
    const struct options *, const char *host, struct message *, const char *to);

#endif
