/*
 * What is told of a message that has come to its end: to those who wait for
 * it (Mq-Reply-To), and with --keep to those who ask later.
 */
#ifndef MQ_CONSUME_RESULT_H
#define MQ_CONSUME_RESULT_H

#include "message/history.h"
#include "message/result.h"
#include "mq-consume/message.h"

struct result_rules {
	int64_t keep_ms;  /* of every result; 0: only if it is asked for */
	const char *host; /* NULL: not known */
};

/* Whether its end is to be told. */
bool result_wanted(const struct result_rules *, const struct message *);
/* How a run that ends its message went; f may be NULL. */
void result_note(const struct result_rules *, struct message *, enum mq_end,
    const struct mq_failure *f);
/* What to tell with a settlement, in *out; NULL: nothing.  It is the
 * message's. */
const struct mq_result *result_of(const struct result_rules *, struct message *,
    const struct mq_settlement *, struct mq_result *out);

#endif
