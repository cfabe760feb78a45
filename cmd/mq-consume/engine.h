/*
 * The engine: everything of mq-consume that runs.  Its modules are
 *
 *	session		the connections, the lease, joining and leaving
 *	inbox		claims, and what is claimed and not started
 *	executor	what runs: fork.c, batch.c, stream.c, print.c
 *	outbox		settlements, results, counters
 *	policy		the rate, caution, stop levels and signals
 *	process		commands, their environment and output
 *
 * beside smaller ones: verdict.h, comparison.h, requests.h, cleaning.h, drain.h,
 * running.h.  Calls go down from here; what happens comes up by functions that
 * note it and mark the engine.  Once per turn of the loop it decides.
 */
#ifndef MQ_CONSUME_ENGINE_H
#define MQ_CONSUME_ENGINE_H

#include "options.h"
#include "process/worker.h"
#include "redis/server.h"

/* Consumes until it is over; make: queues that do not exist.  Returns the exit
 * status, or ends the program by a signal. */
int engine_run(const struct options *, struct mq_server *,
    struct mq_worker_setup *, bool make);

#endif
