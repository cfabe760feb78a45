/*
 * Rounds that reclaim dead connections, each in a helper process.  Of all consumers
 * of a server, one does them, about once a minute.  They compete for a key of the
 * server.  A consumer that is refused that key, as it has no rights for everything,
 * competes for a key of each of its queues; and so does one while the node that has the
 * other key is away.
 */
#ifndef MQ_CONSUME_CLEANING_H
#define MQ_CONSUME_CLEANING_H

#include <stdbool.h>

#include "process/helper.h"
#include "queue/consumer.h"

struct cleaning {
	struct mq_children *children;
	struct mq_server *server;
	const struct mq_layout *layout;
	const char *connection; /* of this consumer */
	bool wanted, quiet, verbose;
	struct mq_consumer *consumer;
	bool by_queue;		      /* the key of the server is refused, */
	bool away;		      /* or its node is away, this time */
	bool ours;		      /* some key is */
	int answers;		      /* missing: whose the keys are */
	long long wait_ms;	      /* until the first key may be free */
	double next;		      /* steady time of the next competition */
	unsigned long long scan_from; /* of the next round */
	struct mq_helper helper;
};

/* Competes for a round if one is due, and begins it. */
void cleaning_tick(struct cleaning *);

/* Makes the next round due at once. */
void cleaning_soon(struct cleaning *);

/* Whether the first round is over, or another consumer's, and no other is under way.
 * Begins the first. */
bool cleaning_is_over(struct cleaning *);

/* The consumer leaves: another one may clean. */
void cleaning_resign(struct cleaning *);

/* Breaks off a round under way. */
void cleaning_end(struct cleaning *);

#endif
