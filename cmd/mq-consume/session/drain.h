/*
 * --drain: whether the queues have nothing more, and no consumer has.  A helper
 * process looks.
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
	void (*drained)(void *arg); /* the queues have nothing */
	void *arg;
	double next; /* steady time: not before */
	struct mq_helper helper;
};

/* Begins a look, unless one is under way or has just been. */
void drain_look(struct drain *);

/* Something has changed: the next look may be at once. */
void drain_soon(struct drain *);

/* A look under way is broken off. */
void drain_end(struct drain *);

#endif
