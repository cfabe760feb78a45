/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/* For files of this folder. */
#ifndef MQ_CONSUME_ENGINE_PARTS_H
#define MQ_CONSUME_ENGINE_PARTS_H

#include "engine.h"

#include "base/timer.h"
#include "mq-consume/duplicates.h"
#include "mq-consume/jobs.h"
#include "mq-consume/kept.h"
#include "mq-consume/executor/executor.h"
#include "mq-consume/inbox.h"
#include "mq-consume/outbox/outbox.h"
#include "mq-consume/policy.h"
#include "mq-consume/process/process.h"
#include "mq-consume/service.h"
#include "mq-consume/session/session.h"
#include "mq-consume/verdict.h"
#include "redis/loop.h"

struct engine {
	struct ev_loop *loop;
	const struct options *opt;
	struct mq_server *server;
	struct service *service;
	struct mq_idgen ids;
	struct mq_children children;
	struct process process;
	struct facts *facts;
	struct hand *hand;
	struct policy *policy;
	struct session *session;
	struct mq_consumer *consumer; /* the session's */
	struct inbox *inbox;
	struct outbox *outbox;
	struct duplicates *duplicates;
	struct executor *executor;
	struct jobs *jobs;
	ev_prepare turn;
	int *room;	     /* for each queue, at a look around */
	bool lacks_room;     /* the server had no room since the last tick */
	double lacks_since;  /* steady time since when it has none; 0: it has */
	double bar_began;    /* monotonic time */
	long long bar_total; /* messages, also those done; -1: unknown */
	struct mq_timer bar; /* runs: there is or will be a bar */
	bool ending;	     /* nothing more is decided */
	int failed;	     /* status of a final error; 0: none */
};

/* --- turn.c ----------------------------------------------------------------- */

/* Takes the facts, and decides what follows, until there are no more facts; to be called before
 * the loop sleeps. */
void turn_all(struct engine *);

/* --- ends.c ------------------------------------------------------------------ */

/* The loop ends with this turn. */
void ends_now(struct engine *);
/* Once per turn: leaves the server if everything is done, or finds out whether it is. */
void ends_check(struct engine *);
/* The server has no room for a command; and once a second, the consequences. */
void ends_lack(struct engine *, const char *why);
void ends_check_room(struct engine *);
/* Carries out a fact about the end. */
void ends_take(struct engine *, const struct fact *);

/* --- outcomes.c ------------------------------------------------------------- */

/* A message came or went. */
void outcome_activity(struct engine *);
/* The message cannot run. */
void outcome_unfit(
    struct engine *, struct message *, enum unfit, const char *why);
/* FACT_ENDED, FACT_BROKEN_OFF, FACT_SETTLED, FACT_TOO_LONG. */
/* Pushes a message that goes on in another queue; false: it does not. */
bool outcome_passed(struct engine *, struct message *);
void outcome_ended(struct engine *, const struct fact *);
void outcome_broken_off(struct engine *, const struct fact *);
void outcome_settled(struct engine *, const struct fact *);
void outcome_too_long(struct engine *, const struct fact *);

/* --- holdings.c: messages that the server holds for us -------------------------- */

/* FACT_HOLDINGS, FACT_EXISTS. */
void holdings_compare(struct engine *, const struct fact *);
void holdings_found(struct engine *, const struct fact *);
/* Once a second, while no message moves: compares the counts; all: also for the queues of which
 * the hand has no message. */
void holdings_count(struct engine *, bool all);
/* If the lease may have lapsed, treats it as lost. */
void holdings_check_lease(struct engine *);
/* The lease is lost: no outcome of any message counts. */
void holdings_lose(struct engine *);

/* --- stops.c: runs that an operator wants stopped ------------------------------- */

/* Looks for requests to stop a run of the queue; -1: of all queues with runs. */
void stops_look(struct engine *, int queue);
/* FACT_STOP_REQUEST. */
void stops_take(struct engine *, const struct fact *);

/* --- bar.c: the progress of --drain ---------------------------------------------- */

void bar_begin(struct engine *);
void bar_end(struct engine *);
/* ready: messages that can be claimed. */
void bar_count(struct engine *, long long ready);

/* Whether no module has a message, and no claim is under way. */
static inline bool
engine_has_nothing(const struct engine *e)
{
	return hand_size(e->hand, -1) == 0 && !inbox_is_claiming(e->inbox) &&
	    !executor_owes(e->executor);
}

#endif
