/* Copies of messages, with ids of their own; those that are copied stay as they are. */
#ifndef MQ_CLONE_H
#define MQ_CLONE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/id.h"
#include "queue/publisher.h"

/* Starts zeroed but for redis, layout, to and ids. */
struct clones {
	struct mq_redis *redis;
	const struct mq_layout *layout;
	const char *to; /* the queue of the copies */
	json_t *ids;	/* of the copies, a list; NULL: they are printed */
	/* Set by the module. */
	struct mq_publisher publisher;
	struct mq_idgen random;
	int64_t clock_us; /* the server's clock minus the steady one */
	uint64_t start_us, last_us;
	bool open;
	bool unsure; /* after an error: whether there is one copy more */
};

/*
 * Makes the chosen ones of the current slice ready once more; each copy is published
 * and counted in one step.  Messages that were published since the first call are
 * left out, as the copies are among them.  As layout->take() otherwise.
 */
int clones_make(
    struct clones *, const struct mq_scan *, const bool *chosen, long *made);
void clones_end(struct clones *);

#endif
