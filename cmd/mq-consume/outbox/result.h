/*
 * The result of a message: sent with its settlement to the publisher that waits
 * for it (Mq-Reply-To), and kept for others with --keep.
 */
#ifndef MQ_CONSUME_RESULT_H
#define MQ_CONSUME_RESULT_H

#include "message/history.h"
#include "message/result.h"
#include "mq-consume/message.h"

struct result_rules {
	const struct options *opt;
	const char *host; /* NULL: unknown */
};

/* Whether anybody hears how a message has ended. */
bool result_wanted(const struct result_rules *, const struct message *);
/* Writes the result of the last run into the message. */
void result_note(const struct result_rules *, struct message *, enum mq_end,
    const struct mq_failure *f);
/* Sets *out to the result to send with a settlement; its text is the message's.
 * NULL: none. */
const struct mq_result *result_of(const struct result_rules *, struct message *,
    const struct mq_settlement *, struct mq_result *out);
/* The same, after it, for the notice; the caller frees the element. */
const struct mq_notice *result_notice(const struct result_rules *,
    const struct message *, const struct mq_settlement *, struct mq_idgen *,
    struct mq_notice *out);

#endif
