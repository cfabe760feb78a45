/*
 * The reports of INFO and CONFIG: where a server keeps data, whether it may drop some,
 * and what it tells of itself to its operator.
 */
#ifndef MQ_INFO_H
#define MQ_INFO_H

#include <stdbool.h>

#include <hiredis/hiredis.h>

#include "ask.h"

struct mq_info {
	char run_id[48]; /* changes with each start of the server */
	bool is_replica;
	int replicas;	   /* of its own, online... */
	char online[1024]; /* ...a line "ADDRESS PORT" for each that fits in */
	bool had_replica;  /* within the last hour, or it was one */
	bool aof;	   /* the server has an append-only file... */
	bool aof_later;	   /* ...which counts only after its first rewrite */
	char fsync[16];	   /* appendfsync; "": unknown */
	bool lax;	   /* no fsync while the file is rewritten */
	char policy[32];   /* maxmemory-policy; "": unknown */
};

/* Takes the text of a reply to INFO; missing fields stay zero. */
void mq_info_take(struct mq_info *, const char *text);
/* Takes the reply to CONFIG GET *appendfsync*, which may be an error. */
void mq_info_take_config(struct mq_info *, const redisReply *);

/* Whether a replica that sentinels know by this address is online. */
bool mq_info_has_replica(
    const struct mq_info *, const char *address, const char *port);

/* Whether the server drops keys when its memory is full.  Having no limit now is no
 * promise. */
bool mq_info_evicts(const struct mq_info *);

/*
 * Asks for the policy: 0, or -1 when the connection is lost.  Where INFO is
 * refused, the server does not say.
 */
int mq_info_ask_policy(struct mq_redis *, struct mq_info *);

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
