/*
 * Transfers: on a cluster, messages that were pushed to a queue of another node are still
 * on that of their own.  A helper process brings them there.  What a crash leaves is
 * brought by any cleaner.
 */
#ifndef MQ_CONSUME_TRANSFERS_H
#define MQ_CONSUME_TRANSFERS_H

#include "mq-consume/options.h"
#include "process/helper.h"
#include "redis/server.h"

struct transfers {
	struct mq_children *children;
	struct mq_server *server;
	const struct options *opt;
	bool wanted;  /* some wait */
	bool failing; /* the last round has said why */
	struct mq_helper helper;
};

/* A message was pushed. */
void transfers_begin(struct transfers *);
/* Once a second: goes on after an error. */
void transfers_tick(struct transfers *);
/* Ends those that are left; waits for that. */
void transfers_end(struct transfers *);

#endif
