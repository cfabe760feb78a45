/*
 * Claims: what a consumer asks for, and what it gets.
 */
#ifndef MQ_CLAIMING_H
#define MQ_CLAIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rate.h"

enum { MQ_CLAIM_BAD = -1, MQ_CLAIM_LOST = -2 };

/* A message as it is kept: bytes. */
struct mq_element {
	char *data;
	size_t len;
};

/* How a consumer hears of the next message of a queue; see lua/lib/role.lua. */
enum mq_role {
	MQ_ROLE_NONE,  /* in no way: it has room for no more, or must look */
	MQ_ROLE_WATCH, /* by CLIENT TRACKING */
	MQ_ROLE_IDLE,  /* by another consumer, over its channel */
	MQ_ROLE_CLAIM  /* in no way yet: a tracked claim may begin a watch */
};

struct mq_claim {
	int max;      /* messages; 0: only look whether the queue is paused
		       * (due_ms is -1 then unless it is) */
	size_t bytes; /* about; but at least one message */
	enum mq_why {
		MQ_CLAIM_OWN,	 /* renews its watch, too */
		MQ_CLAIM_CALLED, /* a key has changed, or it was woken */
		MQ_CLAIM_LOOK	 /* the consumer on watch may be dead */
	} why;
	bool tracked;	     /* the server reports changes from now on */
	struct mq_rate rate; /* of claims, which all consumers of the queue
			      * share; 0: no limit */
	size_t copied;	     /* bytes that the claim may copy; 0: any number */
};
/* The error of a claim begins like this when all it could claim is to be copied, and
 * that is more. */
#define MQ_CLAIM_NO_ROOM "no room to copy"

struct mq_claimed {
	size_t first; /* index of the first element in the reply */
	/* Only for callbacks: see consumer.h. */
	struct mq_element *elements;
	int n;
	int64_t due_ms; /* until there may be more to claim without anything
			 * having changed: the next delayed message is due, or
			 * the pause is over, or the shared rate allows it;
			 * -1: never */
	bool paused;	/* the queue is; nothing is claimed then */
	enum mq_role role;
	int64_t now_ms; /* the server's clock, unix ms */
	int64_t tick;	/* the queue's; 0: it never had one */
	bool missing;	/* there is no such queue; it may be found out only
			 * when it has nothing to claim */
};

#endif
