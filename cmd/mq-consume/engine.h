/*
 * The engine owns all modules, and alone knows them all:
 *
 *	session		connections, lease, joining, leaving	policy.h
 *	inbox		claims and unstarted messages		verdict.c
 *	executor	running messages			process/
 *	outbox		settlements, results, counters
 *
 * The engine calls modules.  Events come back as facts, which facts.c answers and
 * some of which mark the engine; once per turn of the loop the engine decides.
 */
#ifndef MQ_CONSUME_ENGINE_H
#define MQ_CONSUME_ENGINE_H

#include "mq-consume/executor/executor.h"
#include "service.h"

/* Consumes until it is over; make: queues that do not exist.  Returns the exit
 * status, or ends the program by a signal. */
int engine_run(const struct options *, struct mq_server *,
    struct mq_worker_setup *, struct service *, bool make);

/* --- for files of this folder -------------------------------------- */

struct engine {
	struct ev_loop *loop;
	const struct options *opt;
	struct mq_server *server;
	struct service *service;
	struct mq_idgen ids;
	struct mq_children children;
	struct process process;
	struct policy policy;
	struct session session;
	struct inbox inbox;
	struct outbox outbox;
	struct duplicates duplicates;
	struct executor executor;
	struct errands errands;
	double bar_began;    /* monotonic time */
	long long bar_total; /* messages, ended ones included; -1: unknown */
	ev_timer bar;	     /* active: there is or will be a bar */
	ev_prepare turn;
	bool marked;	    /* to decide before the loop sleeps again */
	bool lacks_room;    /* since the last tick, the server had no room */
	double lacks_since; /* nor before; steady time; 0: it had */
	bool ending;	    /* nothing more is decided */
	int failed;	    /* status of a final error; 0: none */
};

/* The verdict on a run becomes the settlement of its message: outcome, header, delay, news
 * and result.  Both return the outcome, and set the settlement in the message.  errors: the
 * end of the stderr of the run; broken: the command cannot run, so its tries count no
 * attempt. */
enum mq_outcome verdict_outcome(const struct outbox *, struct message *,
    const struct mq_verdict *, const char *errors, bool broken);
enum mq_outcome verdict_unfit(
    struct outbox *, struct message *, enum unfit, const char *why);
/* From now on the engine hears what the other modules tell, and answers them. */
void engine_listen(struct engine *);
/* Gives back the messages held of a queue, or of all (-1); at_once: each by itself. */
void engine_give_back(struct engine *, int queue, bool at_once);
/* Whether no module has a message, and no claim is under way. */
static inline bool
engine_has_nothing(const struct engine *e)
{
	return TAILQ_EMPTY(&e->inbox.all) && !e->inbox.claiming &&
	    !executor_owes(&e->executor);
}

#endif
