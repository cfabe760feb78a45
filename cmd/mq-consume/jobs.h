/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Background jobs at the server, which take their time: each runs in a helper process, with a
 * connection of its own, and only once at a time.
 *
 *	cleaning	reclaims dead connections
 *	drain		--drain: looks whether the queues are empty, with no message in flight
 *			at any consumer
 *	survey		--drain, before that: counts the messages that can be claimed, and
 *			finds another consumer that has messages
 *	transfer	cluster: a message pushed to a queue of another node stays on its own
 *			node; brings it there.  After a crash any cleaner does.
 */
#ifndef MQ_CONSUME_JOBS_H
#define MQ_CONSUME_JOBS_H

#include "fact.h"
#include "queue/consumer.h"
#include "redis/server.h"

struct jobs;
struct mq_children;

/* The pointers stay the caller's. */
struct jobs *jobs_new(const struct options *, struct facts *,
    struct mq_consumer *, struct mq_server *, struct mq_children *);
/* Breaks off all jobs; but runs transfers to their end, and waits for that. */
void jobs_end(struct jobs *);
/* To be called when the consumer's connection is closed: until then it may still answer. */
void jobs_free(struct jobs *);

/* Once a second: begins jobs that are due.  counts: the number of messages is wanted; waits:
 * only other consumers still have messages. */
void jobs_tick(struct jobs *, bool counts, bool waits);
/* Whether this consumer, or another, has cleaned since the start.  Begins the first round. */
bool jobs_cleaned(struct jobs *);
/* The consumer leaves: another one may clean. */
void jobs_resign(struct jobs *);
/* Makes the next round of cleaning, or the next look of --drain, due at once. */
void jobs_clean_soon(struct jobs *);
void jobs_drain_soon(struct jobs *);
/* Looks whether the queues are empty, unless the last look is less than 0.9 s ago. */
void jobs_drain(struct jobs *);
/* A message was pushed: begins a transfer. */
void jobs_transfer(struct jobs *);

#endif
