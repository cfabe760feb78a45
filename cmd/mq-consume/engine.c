/*
 * What everything leads to.  Callbacks only note what happened, and mark the
 * engine; once per turn of the loop, after all of them, it decides.
 */
#include <signal.h>

#include "base/exit.h"
#include "base/say.h"
#include "consume.h"
#include "executor.h"

/* --- ending ----------------------------------------------------------------- */

static bool
nothing_in_hand(const struct consumer *c)
{
	return TAILQ_EMPTY(&c->messages) && !c->claiming &&
	    !c->executor->owes(c);
}

/* Whether nothing can be started, however much there is. */
static bool
is_held_back(const struct consumer *c)
{
	return !policy_may_start(&c->policy) ||
	    (c->executor->runs && c->resting == c->opt->slots);
}

void
engine_end(struct consumer *c)
{
	c->leaving = true;
	ev_break(c->loop, EVBREAK_ALL);
}

/* First the workers that stay are to end, as well as they can. */
static void
leave(struct consumer *c)
{
	if (c->executor->stays && c->busy > 0) {
		policy_stop(&c->policy, STOP_SOON, 0, 0);
		return;
	}
	c->leaving = true;
	link_leave(c);
}

static void
check_end(struct consumer *c)
{
	if (c->leaving || !nothing_in_hand(c))
		return;
	/* Nobody takes our name off the server but we, once we are there. */
	if (c->link == LINK_OPENING && c->lease_sent > 0 &&
	    !policy_killed(&c->policy))
		return;
	if (policy_level(&c->policy) >= STOP_SOON ||
	    policy_limit_reached(&c->policy, 0))
		leave(c);
	else if (c->opt->drain && (claim_nothing(c) || is_held_back(c)) &&
	    c->link == LINK_UP)
		drain_look(&c->drain);
}

static void
give_back(struct consumer *c)
{
	/* A claim under way brings younger ones, which must go back first;
	 * those of scripts that are killed go back together, in order. */
	if (c->claiming ||
	    (policy_level(&c->policy) == STOP_NOW && c->busy > 0) ||
	    c->link != LINK_UP || !lease_held(c))
		return;
	c->executor->give_back(c);
}

static void
say_left(const struct consumer *c)
{
	int left = c->held + c->running + c->settling;

	if (left == 0)
		mq_say("%s could not be removed; it stays listed until it is "
		       "cleaned up",
		    c->connection);
	else
		mq_say("%d message%s could not be settled; %s unacked at %s "
		       "until it is cleaned up",
		    left, left == 1 ? "" : "s",
		    left == 1 ? "it stays" : "they stay", c->connection);
}

/* --- what policy reports ---------------------------------------------------- */

static void
on_asked(void *arg)
{
	const struct consumer *c = arg;

	if (c->running > 0 && c->executor->runs && !c->opt->quiet)
		mq_say("stopping; waiting for %d running %s", c->running,
		    c->running == 1 ? "message" : "messages");
}

static void
on_stop(void *arg, enum stop_level level)
{
	struct consumer *c = arg;

	if (level == STOP_SOON)
		c->executor->stop(c);
	engine_mark(c);
}

static bool
on_kill(void *arg, int sig)
{
	struct consumer *c = arg;

	slot_kill(c, sig);
	return c->busy > 0;
}

static void
on_give_up(void *arg)
{
	struct consumer *c = arg;

	if (c->leaving)
		return;
	say_left(c);
	engine_end(c);
}

/* Only when the last look found nothing is there nothing to do, not even with
 * the dead: a cron job may be over before the first tick. */
static bool
on_idle(void *arg)
{
	struct consumer *c = arg;

	return nothing_in_hand(c) && claim_nothing(c) && c->link == LINK_UP &&
	    cleaning_is_over(&c->cleaning);
}

static void
on_wake(void *arg)
{
	engine_mark(arg);
}

static void
on_reopen_logs(void *arg)
{
	struct consumer *c = arg;

	process_reopen_logs(&c->process);
}

static const struct policy_events policy_events = {
    .wake = on_wake,
    .asked = on_asked,
    .stop = on_stop,
    .kill = on_kill,
    .give_up = on_give_up,
    .idle = on_idle,
    .reopen_logs = on_reopen_logs,
};

/* --- what a look for --drain reports ----------------------------------------- */

static void
on_drained(void *arg)
{
	struct consumer *c = arg;

	if (TAILQ_EMPTY(&c->messages))
		policy_stop(&c->policy, STOP_SOON, MQ_EXIT_OK, 0);
}

/* --- the turn --------------------------------------------------------------- */

static void
turn(struct consumer *c)
{
	if (policy_level(&c->policy) >= STOP_SOON)
		give_back(c);
	/* The server has its work while ours is begun. */
	if (c->executor->flows) {
		claim_more(c);
		mq_async_flush(&c->main);
	}
	c->executor->start(c);
	claim_more(c);
	check_end(c);
}

static void
on_turn(struct ev_loop *loop, ev_prepare *w, int events)
{
	struct consumer *c = w->data;

	(void)loop;
	(void)events;
	while (c->marked && !c->leaving) {
		c->marked = false;
		turn(c);
	}
}

void
engine_mark(struct consumer *c)
{
	c->marked = true;
}

void
engine_active(struct consumer *c)
{
	drain_soon(&c->drain);
	policy_active(&c->policy);
}

void
engine_tick(struct consumer *c)
{
	c->starved = false;
	c->executor->tick(c);
	engine_mark(c);
}

static const struct executor *
executor_for(const struct options *opt)
{
	if (opt->command == NULL)
		return opt->at_most_once ? &executor_print_once :
					   &executor_print;
	if (opt->stream)
		return &executor_stream;
	return opt->batch > 0 ? &executor_batch : &executor_fork;
}

void
engine_init(struct consumer *c)
{
	c->executor = executor_for(c->opt);
	c->batch_size = c->opt->batch > 0 ? c->opt->batch : 1;
	policy_init(
	    &c->policy, c->loop, c->opt, &c->setup.reset, &policy_events, c);
	c->cleaning = (struct cleaning){.children = &c->children,
	    .server = &c->server,
	    .layout = c->layout,
	    .connection = c->connection,
	    .wanted = c->opt->clean,
	    .quiet = c->opt->quiet,
	    .verbose = c->opt->verbose};
	c->drain = (struct drain){.children = &c->children,
	    .server = &c->server,
	    .opt = c->opt,
	    .drained = on_drained,
	    .arg = c};
	ev_prepare_init(&c->turn, on_turn);
	c->turn.data = c;
	ev_prepare_start(c->loop, &c->turn);
}
