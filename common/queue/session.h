/* A consumer's part of a queue, as its layout has to know it. */
#ifndef MQ_QUEUE_SESSION_H
#define MQ_QUEUE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

/* One consumer as the server knows it. */
struct mq_session {
	const char *connection; /* unique for ever; never reused */
	const char *consumer;
	bool
	    listed; /* a consumer's, on a cluster: the set of connections has it */
	const char *former; /* the connection whose lease its maker lost, though
			     * it is alive; NULL: none */
	double former_s; /* when that was renewed last, by the steady clock */
	const char *const *queues;
	int queue_count;
	const char *push;   /* where messages may be pushed to; NULL: nowhere */
	const char *notify; /* what hears of each end; NULL: what the settings
			     * of a queue say */
	const char
	    *wake;    /* its name in the channel that wakes it; NULL: it does
			   * not wait, or cannot be woken */
	bool make;    /* make the queues that do not exist */
	int slots;    /* how many messages can run at once */
	int attempts; /* how many runs a message may have here; -1: what the
		       * settings of a queue say */
	int64_t lease_ms; /* handed out by receipt: how long a renewal holds;
			   * 0: as the layout thinks */
};

#endif
