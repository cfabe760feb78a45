/*
 * The engine owns all modules, and alone knows them all.  Each has a struct of its own, of
 * which nobody else reads a field:
 *
 *	hand		every message that this consumer has, and its state
 *	session		connections, lease, joining, leaving
 *	inbox		what to claim next, and why
 *	executor	running messages
 *	outbox		settlements, results, counters
 *	policy		rate, limits, stop levels
 *	duplicates	what the verb dup asks for
 *	jobs		cleaning, --drain, transfers
 *	process/	commands, their output and logs
 *
 * The engine calls modules; these tell it facts (fact.h).  Once per turn of the loop the
 * engine takes all facts, and decides: turn.c.
 */
#ifndef MQ_CONSUME_ENGINE_H
#define MQ_CONSUME_ENGINE_H

#include "mq-consume/options.h"

struct mq_server;
struct mq_worker_setup;
struct service;

/* Consumes until it is over; make: queues that do not exist.  Returns the exit
 * status, or ends the program by a signal. */
int engine_run(const struct options *, struct mq_server *,
    struct mq_worker_setup *, struct service *, bool make);

#endif
