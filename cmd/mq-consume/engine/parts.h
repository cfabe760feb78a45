/* For files of this folder. */
#ifndef MQ_CONSUME_ENGINE_PARTS_H
#define MQ_CONSUME_ENGINE_PARTS_H

#include "engine.h"

#include "base/timer.h"
#include "mq-consume/duplicates.h"
#include "mq-consume/jobs.h"
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
	int *room;	     /* of each queue, for a look around */
	bool lacks_room;     /* since the last tick, the server had no room */
	double lacks_since;  /* nor before; steady time; 0: it had */
	double bar_began;    /* monotonic time */
	long long bar_total; /* messages, ended ones included; -1: unknown */
	struct mq_timer bar; /* runs: there is or will be a bar */
	bool ending;	     /* nothing more is decided */
	int failed;	     /* status of a final error; 0: none */
};

/* --- turn.c ----------------------------------------------------------------- */

/* Takes the facts, and decides what follows, until there are none; to be called before
 * the loop sleeps. */
void turn_all(struct engine *);

/* --- ends.c ------------------------------------------------------------------ */

/* The loop ends with this turn. */
void ends_now(struct engine *);
/* Once per turn: leaves the server if it is over, or finds out whether it is. */
void ends_check(struct engine *);
/* The server has no room for what is sent; and what follows from that, once a second. */
void ends_lack(struct engine *, const char *why);
void ends_check_room(struct engine *);
/* What follows from a fact that is about the end, or nothing. */
void ends_take(struct engine *, const struct fact *);

/* --- outcomes.c ------------------------------------------------------------- */

/* A message came or went. */
void outcome_activity(struct engine *);
/* The message cannot run. */
void outcome_unfit(
    struct engine *, struct message *, enum unfit, const char *why);
/* As the facts say that are named so: of a run; and of a settlement. */
void outcome_ended(struct engine *, const struct fact *);
void outcome_broken_off(struct engine *, const struct fact *);
void outcome_settled(struct engine *, const struct fact *);
void outcome_too_long(struct engine *, const struct fact *);

/* --- holdings.c: what the server holds for us --------------------------------- */

/* As the facts say: what they are; and whether one that they are not is elsewhere. */
void holdings_compare(struct engine *, const struct fact *);
void holdings_found(struct engine *, const struct fact *);
/* Once a second, while no message moves: compares the counts; all: also of the queues of
 * which we have no message. */
void holdings_count(struct engine *, bool all);
/* If the lease may have lapsed, it is lost. */
void holdings_check_lease(struct engine *);
/* The outcome of all messages does not count any more. */
void holdings_lose(struct engine *);

/* --- stops.c: runs that an operator wants stopped ------------------------------- */

/* Looks whether one of a queue is; -1: of all with runs. */
void stops_look(struct engine *, int queue);
/* As the fact says. */
void stops_take(struct engine *, const struct fact *);

/* --- bar.c: the progress of --drain ---------------------------------------------- */

void bar_begin(struct engine *);
void bar_end(struct engine *);
/* So many messages can be claimed. */
void bar_count(struct engine *, long long ready);

/* Whether no module has a message, and no claim is under way. */
static inline bool
engine_has_nothing(const struct engine *e)
{
	return hand_size(e->hand, -1) == 0 && !inbox_is_claiming(e->inbox) &&
	    !executor_owes(e->executor);
}

#endif
