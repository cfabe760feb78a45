/*
 * Rounds of cleaning after dead connections, each in a helper process.
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
	double next;		      /* steady time: not before; 0: at once */
	unsigned long long scan_from; /* of the next round */
	struct mq_helper helper;
};

/* Begins a round, if one is due. */
void cleaning_tick(struct cleaning *);

/* The next round is due at once. */
void cleaning_soon(struct cleaning *);

/* Whether no round is under way, and the first, if there are to be any, is over:
 * begins that. */
bool cleaning_is_over(struct cleaning *);

/* A round under way is broken off. */
void cleaning_end(struct cleaning *);

#endif
