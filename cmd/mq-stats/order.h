/* Which queues a table shows, and in which order. */
#ifndef MQ_STATS_ORDER_H
#define MQ_STATS_ORDER_H

#include <stdbool.h>

enum order_key {
	ORDER_NONE, /* as they come */
	ORDER_NAME,
	ORDER_READY,
	ORDER_DELAYED,
	ORDER_UNACKED,
	ORDER_REJECTED,
	ORDER_CONSUMERS,
	ORDER_AGE,
	ORDER_IN,
	ORDER_OUT,
	ORDER_KEYS
};

/* Starts zeroed: all queues, as they come. */
struct order {
	enum order_key key; /* names ascend, numbers descend */
	bool reverse;
	bool nonempty; /* only queues that have a message, or may have one */
	long limit;    /* queues at most; 0: all */
};

struct model;

/* Returns false if there is no such key. */
bool order_key_parse(const char *name, enum order_key *);

/* The places of the queues in m->stats.queues, without regard to the limit; the
 * caller frees. */
int *order_rows(const struct model *, int *count);

#endif
