/* What a server tells of itself to its operator. */
#ifndef MQ_REPORT_H
#define MQ_REPORT_H

#include <stdbool.h>

#include "connection.h"

/* Numbers below 0 and empty texts are not known: rented servers tell less. */
struct mq_report {
	char version[80]; /* "redis 7.0.15" */
	char dir[512];	  /* where its files are, on its host */
	char policy[32];  /* maxmemory-policy */
	char fsync[16];	  /* appendfsync */
	long long pid, uptime_s;
	long long memory, maxmemory; /* bytes; maxmemory 0: no limit */
	long long aof_bytes;	     /* of the append-only file */
	long long disk_free,
	    disk_bytes;	  /* of the file system of a private one */
	int aof;	  /* whether there is such a file */
	int snapshots;	  /* whether it saves them by itself */
	bool save_failed; /* the last snapshot... */
	bool aof_failed;  /* ...or write of the file, or its rewrite */
};

/* Asks with INFO and CONFIG, which may be refused.  Not for a cluster.  Returns 0, or
 * -1 when the connection is lost. */
int mq_report_ask(struct mq_redis *, struct mq_report *);

#endif
