/*
 * --drain: a helper process looks whether the queues are empty, with no message
 * in flight at any consumer.
 */
#ifndef MQ_CONSUME_DRAIN_H
#define MQ_CONSUME_DRAIN_H

#include "mq-consume/options.h"
#include "process/helper.h"
#include "redis/server.h"

struct drain {
	struct mq_children *children;
	struct mq_server *server;
	const struct options *opt;
	void (*drained)(void *arg); /* the queues are empty */
	void *arg;
	double next; /* steady time before which no look begins */
	struct mq_helper helper;
};

/* Begins a look unless one is under way, or ended less than 0.9 s ago. */
void drain_look(struct drain *);

/* Allows the next look at once. */
void drain_soon(struct drain *);

/* Breaks off a look under way. */
void drain_end(struct drain *);

#endif
