/*
 * Rounds that reclaim dead connections, each in a helper process.
 */
#ifndef MQ_CONSUME_CLEANING_H
#define MQ_CONSUME_CLEANING_H

#include <stdbool.h>

#include "process/helper.h"
#include "queue/queue.h"

struct cleaning {
	struct mq_children *children;
	struct mq_server *server;
	const struct mq_layout *layout;
	const char *connection; /* of this consumer */
	bool wanted, quiet, verbose;
	double next;		      /* steady time of the next round */
	unsigned long long scan_from; /* of the next round */
	struct mq_helper helper;
};

/* Begins a round if one is due. */
void cleaning_tick(struct cleaning *);

/* Makes the next round due at once. */
void cleaning_soon(struct cleaning *);

/* Whether the first round is over and no other is under way.  Begins the first. */
bool cleaning_is_over(struct cleaning *);

/* Breaks off a round under way. */
void cleaning_end(struct cleaning *);

#endif
