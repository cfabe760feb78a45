/*
 * Comparison: what the server holds for us against what we have, after each join
 * and now and then.  A command of a connection that was given up may be carried
 * out after the comparison of the next join, when the server was stalled.  So
 * the messages are counted once a second, while nothing is moving.
 */
#ifndef MQ_CONSUME_COMPARISON_H
#define MQ_CONSUME_COMPARISON_H

#include "inbox/inbox.h"
#include "outbox/outbox.h"

struct comparison {
	struct inbox *inbox;
	struct outbox *outbox;
	struct mq_consumer *server;
	const char *server_name;
	bool quiet;
	/* Whether the session is up. */
	bool (*online)(void *arg);
	/* Somebody else has the message now. */
	void (*taken)(void *arg, struct message *);
	/* Something has changed. */
	void (*wake)(void *arg);
	void *arg;
};

/* Once a second. */
void comparison_tick(struct comparison *, int queue_count);
/* The server has told what it holds. */
void comparison_held(struct comparison *, int queue, struct mq_held *);

#endif
