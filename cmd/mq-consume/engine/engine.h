/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The engine owns all modules, and alone knows them all.  Nobody reads a field of another
 * module's struct:
 *
 *	hand		every message that this consumer has, and its state
 *	session		connections, lease, joining, leaving
 *	inbox		claims: which queue next, and why
 *	executor	running messages
 *	outbox		settlements, results, counters
 *	policy		rate, limits, stop levels
 *	duplicates	requests of the verb dup
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

/* Consumes until the end.  make: makes queues that do not exist.  Returns the exit status, or
 * ends the program by a signal. */
int engine_run(const struct options *, struct mq_server *,
    struct mq_worker_setup *, struct service *, bool make);

#endif
