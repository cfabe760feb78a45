/*
 * The comparison checks the messages that the server holds for us against ours.
 * After each join it compares the messages.  A stalled server may carry out a
 * command of an old connection later.  So once a second, while no message
 * moves, it compares their number.
 */
#ifndef MQ_CONSUME_COMPARISON_H
#define MQ_CONSUME_COMPARISON_H

#include "mq-consume/inbox/inbox.h"
#include "mq-consume/outbox/outbox.h"

struct comparison {
	struct inbox *inbox;
	struct outbox *outbox;
	struct mq_consumer *server;
	const char *server_name;
	bool quiet;
	const struct session *session;
	fact_fn *hear;
	void *arg;
};

/* Once a second; all: also the queues of which we have no message. */
void comparison_tick(struct comparison *, int queue_count, bool all);
/* The server has answered which messages it holds. */
void comparison_held(struct comparison *, int queue, struct mq_held *);

#endif
