/*
 * The link to the server: two connections, one for commands and one that
 * hears which keys have changed; joining under a new name or, after a lost
 * connection, again under the old one; the tick; leaving.
 *
 *	down -> finding (where is it?) -> opening -> (wake: CLIENT ID,
 *	SUBSCRIBE; main: CLIENT TRACKING, renew or join, what does the server
 *	hold for us?) -> up
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "consume.h"
#include "executor.h"

#define TICK	     1.0
#define OPEN_TIMEOUT 5.0
#define RETRY_MIN    0.05
#define RETRY_MAX    5.0

/* Trying again would change nothing; and what runs here would outlive its lease. */
static void
link_give_up(struct consumer *c, const char *error)
{
	if (c->leaving)
		return;
	mq_say("%s: %s%s", c->server.name, error, mq_reply_hint(error));
	policy_fail(&c->policy, mq_reply_status(error));
	slot_kill(c, SIGKILL);
	engine_end(c);
}

void
link_complain(struct consumer *c, const char *error)
{
	if (mq_reply_status(error) == MQ_EXIT_CONFIG) {
		link_give_up(c, error);
		return;
	}
	if (c->opt->quiet ||
	    strncmp(c->complaint, error, sizeof(c->complaint) - 1) == 0)
		return;
	mq_say("%s: %s%s; trying again", c->server.name, error,
	    mq_reply_hint(error));
	strlcpy(c->complaint, error, sizeof(c->complaint));
}

/* --- joining ---------------------------------------------------------------- */

static void
link_up(struct consumer *c)
{
	c->link = LINK_UP;
	c->retry_s = RETRY_MIN;
	if (c->ever_joined && c->opt->verbose)
		mq_say("%s: connected as %s", c->server.name, c->connection);
	c->joined = true;
	c->ever_joined = true;
	/* What somebody deletes from now on is not to come back. */
	c->self.session.make = false;
	settle_unsent(c);
	running_untold(c);
	duplicates_resume(&c->duplicates);
	changed_all(c);
	claim_look(c);
}

/* An error while joining: for good at the first time, else tried again. */
static void
join_refused(struct consumer *c, const char *error)
{
	if (c->ever_joined)
		link_reset(c, error);
	else
		link_give_up(c, error);
}

/* One of the answers that the link waits for.  False: no more of this join. */
static bool
join_answer(struct consumer *c, const struct mq_answer *answer)
{
	if (answer == NULL || c->link != LINK_OPENING || c->leaving)
		return false;
	if (answer->error != NULL) {
		join_refused(c, answer->error);
		return false;
	}
	return true;
}

static void
one_less(struct consumer *c)
{
	if (--c->answers_wanted == 0)
		link_up(c);
}

static void
on_entered(void *arg, const struct mq_answer *answer)
{
	struct consumer *c = arg;

	if (join_answer(c, answer))
		one_less(c);
}

struct held_request {
	struct consumer *c;
	int queue;
};

static void
on_held(void *arg, const struct mq_answer *answer, struct mq_held *held)
{
	struct held_request *q = arg;
	struct consumer *c = q->c;
	int queue = q->queue;

	free(q);
	if (!join_answer(c, answer))
		return;
	settle_reconcile(c, queue, held);
	one_less(c);
}

static void
ask_held(struct consumer *c, int queue)
{
	struct held_request *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct held_request){c, queue};
	mq_consumer_held(&c->self, queue, on_held, q);
}

static void
on_lease(void *arg, const struct mq_answer *answer, long long lease_ms)
{
	struct consumer *c = arg;
	int i;

	if (!join_answer(c, answer))
		return;
	c->lease_ms = lease_ms;
	c->answers_wanted =
	    c->opt->queue_count + mq_consumer_enter(&c->self, on_entered, c);
	for (i = 0; i < c->opt->queue_count; i++)
		ask_held(c, i);
}

/* The lease first, and when it is there, the rest. */
static void
join(struct consumer *c)
{
	eviction_ask(c);
	c->lease_sent = mq_clock_steady_s();
	mq_consumer_join(&c->self, on_lease, c);
}

void
link_rejoin(struct consumer *c)
{
	if (c->link != LINK_UP)
		return;
	lease_lost(c, "the heartbeat had expired");
	c->link = LINK_OPENING;
	c->opened_at = mq_clock_steady_s();
	join(c);
}

static void
on_rejoin(void *arg, const struct mq_answer *answer, long long lease_ms)
{
	struct consumer *c = arg;

	if (!join_answer(c, answer))
		return;
	if (lease_ms == 0)
		lease_lost(c, "the heartbeat had expired");
	join(c);
}

static void
on_tracking_refused(void *arg, const char *error)
{
	const struct consumer *c = arg;

	if (!c->opt->quiet)
		mq_say("%s: CLIENT TRACKING: %s; looking for messages once a "
		       "second instead",
		    c->server.name, error);
}

static void
on_changed(void *arg, const char *key, size_t n)
{
	struct consumer *c = arg;

	if (c->link != LINK_UP)
		return;
	if (key == NULL)
		changed_all(c);
	else if (!changed_key(c, key, n))
		return;
	claim_wake(c);
}

static void
renew_or_join(void *arg)
{
	struct consumer *c = arg;

	if (c->joined)
		mq_consumer_renew(&c->self, on_rejoin, c);
	else
		join(c);
}

static void
on_tracking_started(void *arg)
{
	struct consumer *c = arg;

	mq_fence(&c->fence);
}

static void
link_open(struct consumer *c)
{
	const char *why;

	c->link = LINK_OPENING;
	c->opened_at = mq_clock_steady_s();
	c->renewal_sent = 0;
	if (mq_async_open(&c->main, &c->server, &why) == -1 ||
	    mq_async_open(&c->wake, &c->server, &why) == -1) {
		link_reset(c, why);
		return;
	}
	mq_tracking_start(&c->tracking);
}

static void
on_found(void *arg, const char *why)
{
	struct consumer *c = arg;

	if (why == NULL) {
		link_open(c);
		return;
	}
	if (!c->opt->verbose)
		link_complain(c, why);
	c->link = LINK_OPENING;
	link_reset(c, why);
}

/* The server may have gone elsewhere, or be a private one that has died. */
static void
on_retry(struct ev_loop *loop, ev_timer *w, int events)
{
	struct consumer *c = w->data;

	(void)loop;
	(void)events;
	if (find_at_once(&c->server)) {
		link_open(c);
		return;
	}
	c->link = LINK_FINDING;
	if (find_start(&c->finder, &c->children, &c->server, on_found, c) == -1)
		on_found(c, strerror(errno));
}

void
link_reset(struct consumer *c, const char *why)
{
	double wait = c->retry_s;

	if (c->link <= LINK_FINDING)
		return;
	if (mq_reply_status(why) == MQ_EXIT_CONFIG) {
		link_give_up(c, why);
		return;
	}
	if (c->link == LINK_UP && !c->opt->quiet && !c->leaving)
		mq_say("%s: %s; reconnecting", c->server.name, why);
	else if (c->opt->verbose)
		mq_say("%s: %s", c->server.name, why);
	else if (!c->ever_joined)
		link_complain(c, why);
	c->link = LINK_DOWN;
	c->claiming = c->in_pass = false;
	mq_async_close(&c->main);
	mq_async_close(&c->wake);
	if (c->leaving) {
		ev_break(c->loop, EVBREAK_ALL);
		return;
	}
	c->retry_s = wait * 2 < RETRY_MAX ? wait * 2 : RETRY_MAX;
	ev_timer_stop(c->loop, &c->retry);
	ev_timer_set(&c->retry, wait, 0);
	ev_timer_start(c->loop, &c->retry);
	engine_mark(c);
}

static void
on_down(void *arg, const char *why)
{
	link_reset(arg, why);
}

static void
on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
	struct consumer *c = w->data;

	(void)loop;
	(void)events;
	mq_children_reap_others(&c->children);
	if (c->leaving || !lease_held(c))
		return;
	if (c->link == LINK_OPENING &&
	    mq_clock_steady_s() - c->opened_at > OPEN_TIMEOUT)
		link_reset(c, "no answer while connecting");
	if (c->link != LINK_UP)
		return;
	lease_keep(c);
	if (c->link != LINK_UP)
		return;
	lease_audit(c);
	settle_unsent(c);
	engine_tick(c);
	changed_all(c);
	claim_look(c);
	running_tell(c);
	count_tell(c);
	cleaning_tick(&c->cleaning);
}

/* --- leaving ---------------------------------------------------------------- */

static void
on_left(void *arg)
{
	struct consumer *c = arg;

	ev_break(c->loop, EVBREAK_ALL);
}

static void
on_leave_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w;
	(void)events;
	ev_break(loop, EVBREAK_ALL);
}

void
link_leave(struct consumer *c)
{
	ev_timer_stop(c->loop, &c->retry);
	if (c->link != LINK_UP) {
		ev_break(c->loop, EVBREAK_ALL);
		return;
	}
	count_tell(c);
	mq_consumer_leave(&c->self, on_left, c);
	ev_set_cb(&c->retry, on_leave_timeout);
	ev_timer_set(&c->retry, OPEN_TIMEOUT, 0);
	ev_timer_start(c->loop, &c->retry);
}

void
link_start(struct consumer *c)
{
	struct mq_async init = {.loop = c->loop, .down = on_down, .arg = c};
	char random[17];

	lease_new_name(c);
	c->self.async = &c->main;
	c->self.layout = c->layout;
	c->self.session = (struct mq_session){.connection = c->connection,
	    .consumer = c->name,
	    .queues = c->opt->queues,
	    .queue_count = c->opt->queue_count,
	    .push = c->opt->push,
	    .make = c->make,
	    .attempts = c->opt->attempts,
	    .rate_s = c->opt->rate_shared.per_s,
	    .burst = c->opt->rate_shared.burst,
	    .slots = c->executor->runs ? c->opt->slots * c->batch_size : 0};
	c->main = init;
	c->wake = init;
	c->tracking = (struct mq_tracking){.reader = &c->main,
	    .listener = &c->wake,
	    .started = on_tracking_started,
	    .refused = on_tracking_refused,
	    .changed = on_changed,
	    .arg = c};
	c->fence = (struct mq_fence){
	    .async = &c->main, .then = renew_or_join, .arg = c};
	mq_id_random(&c->ids, random, sizeof(random) - 1);
	snprintf(c->fence.name, sizeof(c->fence.name), "mq-consume:%s", random);
	c->retry_s = RETRY_MIN;
	ev_timer_init(&c->retry, on_retry, 0, 0);
	ev_timer_init(&c->tick, on_tick, TICK, TICK);
	c->retry.data = c;
	c->tick.data = c;
	ev_timer_start(c->loop, &c->tick);
	link_open(c);
}

void
link_end(struct consumer *c)
{
	c->link = LINK_DOWN;
	mq_async_close(&c->main);
	mq_async_close(&c->wake);
	mq_consumer_free(&c->self);
}
