/*
 *	down -> finding (where is it?) -> opening -> (wake: CLIENT ID,
 *	SUBSCRIBE; main: CLIENT TRACKING, renew or join, what does the server
 *	hold for us?) -> up
 */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "redis/policy.h"
#include "redis/reply.h"

#define TICK	     1.0
#define OPEN_TIMEOUT 5.0
#define RETRY_MIN    0.05
#define RETRY_MAX    5.0

/* Trying again would change nothing; and what runs here would outlive its
 * lease. */
static void
give_up(struct session *s, const char *error)
{
	if (s->leaving)
		return;
	mq_say("%s: %s%s", s->server->name, error, mq_reply_hint(error));
	s->leaving = true;
	s->events->failed(s->arg, mq_reply_status(error));
}

void
session_complain(struct session *s, const char *error)
{
	if (mq_reply_status(error) == MQ_EXIT_CONFIG) {
		give_up(s, error);
		return;
	}
	if (s->opt->quiet ||
	    strncmp(s->complaint, error, sizeof(s->complaint) - 1) == 0)
		return;
	mq_say("%s: %s%s; trying again", s->server->name, error,
	    mq_reply_hint(error));
	strlcpy(s->complaint, error, sizeof(s->complaint));
}

void
session_works(struct session *s)
{
	s->complaint[0] = '\0';
}

bool
session_complains(const struct session *s)
{
	return s->complaint[0] != '\0';
}

void
session_reset(struct session *s, const char *why)
{
	double wait = s->retry_s;

	if (s->state <= SESSION_FINDING)
		return;
	if (mq_reply_status(why) == MQ_EXIT_CONFIG) {
		give_up(s, why);
		return;
	}
	if (s->state == SESSION_UP && !s->opt->quiet && !s->leaving)
		mq_say("%s: %s; reconnecting", s->server->name, why);
	else if (s->opt->verbose)
		mq_say("%s: %s", s->server->name, why);
	else if (!s->ever_joined)
		session_complain(s, why);
	s->state = SESSION_DOWN;
	mq_async_close(&s->main);
	mq_async_close(&s->wake);
	if (s->leaving) {
		s->events->left(s->arg);
		return;
	}
	s->retry_s = wait * 2 < RETRY_MAX ? wait * 2 : RETRY_MAX;
	ev_timer_stop(s->loop, &s->retry);
	ev_timer_set(&s->retry, wait, 0);
	ev_timer_start(s->loop, &s->retry);
	s->events->down(s->arg);
}

/* --- the lease -------------------------------------------------------------- */

/* Nothing that was ours is, any more. */
static void
lose_lease(struct session *s, const char *why)
{
	mq_say("%s: lease lost: %s", s->lease.connection, why);
	s->events->lost(s->arg);
	lease_new_name(&s->lease, s->opt->tag, s->ids);
}

bool
session_holds_lease(struct session *s)
{
	double lapsed = lease_lapsed_s(&s->lease);
	char why[64];

	if (lapsed == 0)
		return true;
	snprintf(why, sizeof(why), "no heartbeat got through for %.3g seconds",
	    lapsed);
	lose_lease(s, why);
	/* Up or not, it has to join under its new name. */
	session_reset(s, "rejoining");
	return false;
}

/* --- joining ---------------------------------------------------------------- */

static void
come_up(struct session *s)
{
	s->state = SESSION_UP;
	s->retry_s = RETRY_MIN;
	if (s->ever_joined && s->opt->verbose)
		mq_say("%s: connected as %s", s->server->name,
		    s->lease.connection);
	lease_joined(&s->lease);
	s->ever_joined = true;
	/* What somebody deletes from now on is not to come back. */
	s->self.session.make = false;
	s->events->up(s->arg);
}

/* One of the answers that joining waits for.  False: no more of this join. */
static bool
is_good(struct session *s, const struct mq_answer *answer)
{
	if (answer == NULL || s->state != SESSION_OPENING || s->leaving)
		return false;
	if (answer->error == NULL)
		return true;
	/* For good at the first time, else tried again. */
	if (s->ever_joined)
		session_reset(s, answer->error);
	else
		give_up(s, answer->error);
	return false;
}

static void
one_less(struct session *s)
{
	if (--s->answers_wanted == 0)
		come_up(s);
}

static void
on_entered(void *arg, const struct mq_answer *answer)
{
	struct session *s = arg;

	if (is_good(s, answer))
		one_less(s);
}

struct held_request {
	struct session *session;
	int queue;
};

static void
on_held(void *arg, const struct mq_answer *answer, struct mq_held *held)
{
	struct held_request *q = arg;
	struct session *s = q->session;
	int queue = q->queue;

	free(q);
	if (!is_good(s, answer))
		return;
	s->events->held(s->arg, queue, held);
	one_less(s);
}

static void
ask_held(struct session *s, int queue)
{
	struct held_request *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct held_request){s, queue};
	mq_consumer_held(&s->self, queue, on_held, q);
}

static void
on_lease(void *arg, const struct mq_answer *answer, long long ms)
{
	struct session *s = arg;
	int i;

	if (!is_good(s, answer))
		return;
	lease_confirm(&s->lease, ms);
	s->answers_wanted =
	    s->opt->queue_count + mq_consumer_enter(&s->self, on_entered, s);
	for (i = 0; i < s->opt->queue_count; i++)
		ask_held(s, i);
}

/* Whether the server drops what is in it. */
static void
on_memory(void *arg, const struct mq_answer *answer, const struct mq_info *info)
{
	const struct session *s = arg;

	if (answer == NULL)
		return;
	if (answer->error != NULL) {
		if (s->opt->verbose)
			mq_say("%s: INFO: %s", s->server->name, answer->error);
		return;
	}
	if (mq_info_evicts(info) && !s->opt->quiet)
		mq_say("%s: maxmemory-policy is %s: when its memory is full, "
		       "the server drops queues or leases; set it to "
		       "noeviction",
		    s->server->name, info->policy);
}

/* The lease first, and when it is there, the rest. */
static void
join(struct session *s)
{
	if (!s->ever_joined)
		mq_policy_ask(&s->main, on_memory, s);
	lease_begin_join(&s->lease);
	mq_consumer_join(&s->self, on_lease, s);
}

void
session_rejoin(struct session *s)
{
	if (s->state != SESSION_UP)
		return;
	lose_lease(s, "the heartbeat had expired");
	s->state = SESSION_OPENING;
	s->opened_at = mq_clock_steady_s();
	join(s);
}

static void
on_rejoin(void *arg, const struct mq_answer *answer, long long ms)
{
	struct session *s = arg;

	if (!is_good(s, answer))
		return;
	if (ms == 0)
		lose_lease(s, "the heartbeat had expired");
	join(s);
}

static void
renew_or_join(void *arg)
{
	struct session *s = arg;

	if (lease_is_joined(&s->lease))
		mq_consumer_renew(&s->self, on_rejoin, s);
	else
		join(s);
}

/* --- connecting ------------------------------------------------------------- */

static void
on_tracking_refused(void *arg, const char *error)
{
	const struct session *s = arg;

	if (!s->opt->quiet)
		mq_say("%s: CLIENT TRACKING: %s; looking for messages once a "
		       "second instead",
		    s->server->name, error);
}

static void
on_changed(void *arg, const char *key, size_t n)
{
	struct session *s = arg;

	if (s->state == SESSION_UP)
		s->events->changed(s->arg, key, n);
}

static void
on_tracking_started(void *arg)
{
	struct session *s = arg;

	mq_fence(&s->fence);
}

static void
open_connections(struct session *s)
{
	const char *why;

	s->state = SESSION_OPENING;
	s->opened_at = mq_clock_steady_s();
	lease_begin_connection(&s->lease);
	if (mq_async_open(&s->main, s->server, &why) == -1 ||
	    mq_async_open(&s->wake, s->server, &why) == -1) {
		session_reset(s, why);
		return;
	}
	mq_tracking_start(&s->tracking);
}

static void
on_found(void *arg, const char *why)
{
	struct session *s = arg;

	if (why == NULL) {
		open_connections(s);
		return;
	}
	if (!s->opt->verbose)
		session_complain(s, why);
	s->state = SESSION_OPENING;
	session_reset(s, why);
}

/* The server may have gone elsewhere, or be a private one that has died. */
static void
on_retry(struct ev_loop *loop, ev_timer *w, int events)
{
	struct session *s = w->data;

	(void)loop;
	(void)events;
	if (find_at_once(s->server)) {
		open_connections(s);
		return;
	}
	s->state = SESSION_FINDING;
	if (find_start(&s->finder, s->children, s->server, on_found, s) == -1)
		on_found(s, strerror(errno));
}

static void
on_down(void *arg, const char *why)
{
	session_reset(arg, why);
}

/* --- its time --------------------------------------------------------------- */

static void
on_lease_lost(void *arg)
{
	session_rejoin(arg);
}

static void
on_lease_refused(void *arg, const char *error)
{
	session_complain(arg, error);
}

static const struct lease_events lease_events = {
    .lost = on_lease_lost, .refused = on_lease_refused};

static void
keep(struct session *s)
{
	if (!session_holds_lease(s))
		return;
	if (s->state == SESSION_OPENING &&
	    mq_clock_steady_s() - s->opened_at > OPEN_TIMEOUT)
		session_reset(s, "no answer while connecting");
	if (s->state == SESSION_UP && !lease_keep(&s->lease))
		session_reset(s, "no answer for 20 seconds");
}

static void
on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
	struct session *s = w->data;

	(void)loop;
	(void)events;
	if (!s->leaving)
		keep(s);
	s->events->tick(s->arg, s->state == SESSION_UP && !s->leaving);
}

/* --- leaving ---------------------------------------------------------------- */

static void
on_left(void *arg)
{
	struct session *s = arg;

	s->events->left(s->arg);
}

static void
on_leave_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	on_left(w->data);
}

void
session_leave(struct session *s)
{
	s->leaving = true;
	ev_timer_stop(s->loop, &s->retry);
	if (s->state != SESSION_UP) {
		on_left(s);
		return;
	}
	mq_consumer_leave(&s->self, on_left, s);
	ev_set_cb(&s->retry, on_leave_timeout);
	ev_timer_set(&s->retry, OPEN_TIMEOUT, 0);
	ev_timer_start(s->loop, &s->retry);
}

/* --- what there is ---------------------------------------------------------- */

bool
session_is_up(const struct session *s)
{
	return s->state == SESSION_UP;
}

bool
session_is_joining(const struct session *s)
{
	return s->state == SESSION_OPENING && lease_was_asked(&s->lease);
}

bool
session_is_opening(const struct session *s)
{
	return s->state == SESSION_OPENING;
}

const char *
session_name(const struct session *s)
{
	return s->lease.connection;
}

struct mq_consumer *
session_server(struct session *s)
{
	return &s->self;
}

struct mq_async *
session_connection(struct session *s)
{
	return &s->main;
}

void
session_flush(struct session *s)
{
	mq_async_flush(&s->main);
}

/* --- beginning and end ------------------------------------------------------ */

static void
init_connections(struct session *s)
{
	struct mq_async init = {.loop = s->loop, .down = on_down, .arg = s};
	char random[17];

	s->main = s->wake = init;
	s->tracking = (struct mq_tracking){.reader = &s->main,
	    .listener = &s->wake,
	    .started = on_tracking_started,
	    .refused = on_tracking_refused,
	    .changed = on_changed,
	    .arg = s};
	s->fence = (struct mq_fence){
	    .async = &s->main, .then = renew_or_join, .arg = s};
	mq_id_random(s->ids, random, sizeof(random) - 1);
	snprintf(s->fence.name, sizeof(s->fence.name), "mq-consume:%s", random);
}

void
session_init(struct session *s, struct ev_loop *loop, const struct options *opt,
    struct mq_server *server, struct mq_children *children,
    struct mq_idgen *ids, int messages, bool make,
    const struct session_events *events, void *arg)
{
	*s = (struct session){.loop = loop,
	    .opt = opt,
	    .server = server,
	    .children = children,
	    .ids = ids,
	    .events = events,
	    .arg = arg,
	    .retry_s = RETRY_MIN};
	s->lease = (struct lease){
	    .server = &s->self, .events = &lease_events, .arg = s};
	lease_new_name(&s->lease, opt->tag, ids);
	s->self = (struct mq_consumer){.async = &s->main,
	    .layout = opt->layout,
	    .session = {.connection = s->lease.connection,
		.consumer = s->lease.name,
		.queues = opt->queues,
		.queue_count = opt->queue_count,
		.push = opt->push,
		.make = make,
		.attempts = opt->attempts,
		.rate_s = opt->rate_shared.per_s,
		.burst = opt->rate_shared.burst,
		.slots = messages}};
	init_connections(s);
	ev_timer_init(&s->retry, on_retry, 0, 0);
	ev_timer_init(&s->tick, on_tick, TICK, TICK);
	s->retry.data = s->tick.data = s;
}

void
session_start(struct session *s)
{
	ev_timer_start(s->loop, &s->tick);
	open_connections(s);
}

void
session_free(struct session *s)
{
	s->state = SESSION_DOWN;
	mq_helper_kill(&s->finder.helper);
	mq_async_close(&s->main);
	mq_async_close(&s->wake);
	mq_consumer_free(&s->self);
}
