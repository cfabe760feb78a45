/*
 * One round of cleaning up.
 */
#ifndef MQ_CLEANING_H
#define MQ_CLEANING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"

/* Runs that a message may have: the default, and the highest limit. */
#define MQ_ATTEMPTS	15
#define MQ_ATTEMPTS_MAX 1000000

struct mq_clean {
	int limit;    /* runs that a message may have, crashes included, before
		       * it is rejected, if the consumer that died did not say */
	bool dry_run; /* only count what would be done */
	bool all;     /* also what is due, and orphans: all of the server's keys
		       * are looked through */
	/* Where to add the names of dead connections that were left alone, as
	 * they have keys in rmq's other form, or on a cluster messages of a
	 * scattered queue; and, on a cluster, of queues that are scattered, as only
	 * Go programs can use their names.  NULL: nowhere. */
	struct mq_names *cluster, *scattered;
	/* Unless all: where to go on with the search for messages that are in no
	 * known queue: 0, then scan_at of the round before. */
	unsigned long long scan_from;
	/* The connection of a consumer that cleans: when its lease is over, the
	 * round does nothing.  NULL: it has none. */
	const char *self;
};

/* The result of a round of cleaning. */
struct mq_cleaned {
	long connections; /* dead ones removed */
	long returned;	  /* messages put back to ready */
	long rejected;	  /* messages that had crashed too often */
	long due;	  /* delayed messages made ready, as they were due */
	long adopted;	  /* unacked lists without a listed connection: it is
			   * listed again, and cleaned */
	unsigned long long scan_at; /* the scan_from of the next round */
	long orphans;	  /* keys of our own removed that nobody needs */
	long transferred; /* messages that were on their way to another queue
			   * of a cluster, and have arrived */
	long expired;	  /* messages rejected that were too late */
	long refused;	  /* steps with a key that is not permitted */
	/* Queues whose keys and groups were left as they are, as a consumer
	 * died meanwhile, or the server was too slow to tell. */
	long unproven;
	long locks;	 /* keys and groups that nobody held, or nobody
			   * could get */
	int64_t next_ms; /* a connection will be found dead in so long; -1:
			   * none is on its way there */
};

#endif
