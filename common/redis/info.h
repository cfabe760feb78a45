/*
 * What a server says of itself: where it keeps what is written to it, and
 * whether it keeps it.
 */
#ifndef MQ_INFO_H
#define MQ_INFO_H

#include <stdbool.h>

#include <hiredis/hiredis.h>

#include "connection.h"

struct mq_info {
	char run_id[48]; /* another one each time it is started */
	bool is_replica; /* it is one itself */
	int replicas;	 /* that it has, and that are online */
	bool aof;	 /* it keeps an append-only file... */
	bool aof_later;	 /* ...which does not count before it is written once */
	char fsync[16];	 /* appendfsync; "": it does not say */
	bool lax;	 /* that does not hold while the file is rewritten */
	char policy[32]; /* maxmemory-policy; "": it does not say */
};

/* Takes the text of a reply to INFO; what it does not say stays zero. */
void mq_info_take(struct mq_info *, const char *text);
/* The same for the reply to CONFIG GET *appendfsync*, whatever it is. */
void mq_info_take_config(struct mq_info *, const redisReply *);

/* Whether the server drops keys of its own accord when its memory is full; that
 * it has no limit now is no promise. */
bool mq_info_evicts(const struct mq_info *);

/*
 * Asks for the policy: 0, or -1 when the connection is lost.  Where INFO is
 * refused, the server does not say.
 */
int mq_info_ask_policy(struct mq_redis *, struct mq_info *);

#endif
