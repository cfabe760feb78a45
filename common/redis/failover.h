/*
 * One policy for all who meet a master that is about to be replaced: they try again for
 * 30 seconds, since a cluster takes 17 by default, or as long as their server says.  Then
 * the status is 75 if a failover was due or under way, else 69.
 */
#ifndef MQ_FAILOVER_H
#define MQ_FAILOVER_H

#include "connection.h"

/* Zeroed: nothing has failed. */
struct mq_failover {
	double until; /* steady seconds; 0: not begun */
	bool failed;  /* something has, since then */
	bool due; /* somebody has said that the master is down, or replaced */
};

/* From now on it counts how long it takes, if it does not yet. */
void mq_failover_begin(struct mq_failover *, const struct mq_server *);

/* r has failed: waits a little, with r's function if it has one.  False: time is over,
 * and the status of r says so. */
bool mq_failover_again(struct mq_failover *, struct mq_redis *r);

/* Waits until nodes or sentinels may know more. */
void mq_failover_pause(const struct mq_redis *);

#endif
