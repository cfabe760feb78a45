/*
 * A walk through all keys that match, of all nodes side by side.
 */
#ifndef MQ_SWEEP_H
#define MQ_SWEEP_H

#include "round.h"

struct mq_sweep {
	struct mq_round *round;
	const char *pattern;
	const char *type; /* of the keys; NULL: any */
	long long most;	  /* nodes with more keys are left out; 0: none are */
	/* Gets the keys of a step, strings; a walk may come by a key twice.  Returns 0,
	 * or -1 when the connection is lost. */
	int (*take)(void *arg, const redisReply *keys);
	void *arg;
	bool
	    part; /* set: some keys were not shown, or are those of a lost node */
};

/* Returns 0, or -1 when the connection is lost. */
int mq_sweep_keys(struct mq_sweep *);

#endif
