/*
 * What a server says of itself: where it keeps what is written to it.
 */
#ifndef MQ_INFO_H
#define MQ_INFO_H

#include <stdbool.h>

#include <hiredis/hiredis.h>

struct mq_info {
	char run_id[48]; /* another one each time it is started */
	bool is_replica; /* it is one itself */
	int replicas;	 /* that it has, and that are online */
	bool aof;	 /* it keeps an append-only file... */
	bool aof_later;	 /* ...which does not count before it is written once */
	char fsync[16];	 /* appendfsync; "": it does not say */
	bool lax;	 /* that does not hold while the file is rewritten */
};

/* Takes the text of a reply to INFO; what it does not say stays zero. */
void mq_info_take(struct mq_info *, const char *text);
/* The same for the reply to CONFIG GET *appendfsync*, whatever it is. */
void mq_info_take_config(struct mq_info *, const redisReply *);

#endif
