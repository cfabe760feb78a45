/*
 * The engine owns all modules, and alone knows them all:
 *
 *	session		connections, lease, joining, leaving	policy.h
 *	inbox		claims and unstarted messages		verdict.h
 *	executor	running messages			process/
 *	outbox		settlements, results, counters
 *
 * The engine calls modules.  Events come back as functions that note what
 * happened and mark the engine; once per turn of the loop the engine decides.
 */
#ifndef MQ_CONSUME_ENGINE_H
#define MQ_CONSUME_ENGINE_H

#include "options.h"
#include "process/process.h"
#include "redis/server.h"
#include "service.h"

/* Consumes until it is over; make: queues that do not exist.  Returns the exit
 * status, or ends the program by a signal. */
int engine_run(const struct options *, struct mq_server *,
    struct mq_worker_setup *, struct service *, bool make);

#endif
