/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * States: down -> finding (the address) -> opening -> up.  Opening: CLIENT ID and SUBSCRIBE on the
 * wake connection; CLIENT TRACKING, renew or join, and the server's holdings on the main one.
 */
#include "parts.h"

#define TICK	     1.0
#define OPEN_TIMEOUT 5.0
/* A consumer's channel is named for it, behind this: see queue/lua/lib/wake.lua. */
#define CHANNELS "mq::wake::"

/* --- connections --------------------------------------------------------------- */

static void
on_untracked(void *arg, const char *what, const char *error)
{
	struct session *s = arg;

	if (s->self.session.wake == NULL)
		return;
	s->self.session.wake = NULL;
	if (!s->opt->quiet)
		mq_say(
		    "%s: %s: %s; checking for messages once a second instead",
		    s->server->name, what, error);
	if (s->state == SESSION_UP)
		tell(s, FACT_CHANGED, .queue = -1, .yes = true);
}

/* The queue of a key; -1: not consumed here. */
static int
queue_of(const struct session *s, const char *key, size_t len)
{
	const char *name;
	size_t n;

	return s->opt->layout->key_queue(key, len, &name, &n) ?
	    options_queue(s->opt, name, n) :
	    -1;
}

static void
on_changed(void *arg, const char *key, size_t n)
{
	struct session *s = arg;
	enum mq_key kind = key != NULL ? mq_key_of(key, n) : MQ_KEY_OTHER;
	int queue = key != NULL ? queue_of(s, key, n) : -1;

	if (s->state == SESSION_UP &&
	    (key == NULL || queue != -1 || kind == MQ_KEY_ALL_PAUSED))
		tell(s, FACT_CHANGED, .queue = queue, .status = (int)kind,
		    .yes = key == NULL);
}

static void
on_called(void *arg, const char *key, size_t n)
{
	struct session *s = arg;
	int queue = queue_of(s, key, n);

	if (s->state != SESSION_UP || queue == -1)
		return;
	if (mq_key_of(key, n) == MQ_KEY_STOP)
		tell(s, FACT_STOP_WANTED, .queue = queue);
	else
		tell(s, FACT_CALLED, .queue = queue);
}

static void
on_down(void *arg, const char *why)
{
	session_reset(arg, why);
}

static void
open_connections(struct session *s)
{
	const char *why;

	s->state = SESSION_OPENING;
	s->heard_at = mq_clock_steady_s();
	s->self.session.wake = s->channel + strlen(CHANNELS);
	if (mq_loop_open(&s->conn, &why) == -1)
		session_reset(s, why);
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

static void
on_left(void *arg)
{
	struct session *s = arg;

	tell(s, FACT_LEFT);
}

/* The server may have moved, or may be a private one that has died. */
static void
on_retry(void *arg)
{
	struct session *s = arg;
	int found;

	/* The server has not answered the leave. */
	if (s->leaving) {
		on_left(s);
		return;
	}
	s->state = SESSION_FINDING;
	found = finder_start(s->finder);
	if (found != 0)
		on_found(s, found == 1 ? NULL : strerror(errno));
}

/* --- once a second ----------------------------------------------------------- */

/* To a distant server, connecting takes long: bytes are a sign of life. */
static void
look_for_life(struct session *s)
{
	double now = mq_clock_steady_s();

	if (mq_redis_active(&s->conn.redis, NULL))
		s->heard_at = now;
	if (now - s->heard_at > OPEN_TIMEOUT)
		session_reset(s, "no answer while connecting");
}

static void
keep_up(struct session *s)
{
	bool idle = hand_size(s->hand, -1) == 0;

	if (s->state == SESSION_OPENING)
		look_for_life(s);
	if (s->state == SESSION_UP && !lease_keep(&s->lease, idle))
		session_reset(s, "no answer to a heartbeat");
	if (!s->leaving)
		session_check(s);
}

/* A lease that may have lapsed is not renewed: in the next turn the engine treats it as lost. */
static void
on_tick(void *arg)
{
	struct session *s = arg;

	if (!s->leaving && session_holds_lease(s))
		keep_up(s);
	tell(s, FACT_TICK);
}

/* --- leaving ---------------------------------------------------------------- */

void
session_leave(struct session *s)
{
	s->leaving = true;
	mq_timer_stop(&s->retry);
	if (s->state != SESSION_UP) {
		on_left(s);
		return;
	}
	mq_consumer_leave(&s->self, on_left, s);
	mq_timer_start(&s->retry, OPEN_TIMEOUT, 0);
}

/* --- questions ------------------------------------------------------------------ */

bool
session_is_up(const struct session *s)
{
	return s->state == SESSION_UP;
}

bool
session_is_joining(const struct session *s)
{
	return s->state == SESSION_OPENING;
}

bool
session_may_be_known(const struct session *s)
{
	return s->state == SESSION_OPENING && s->lease.sent > 0;
}

bool
session_holds_lease(const struct session *s)
{
	return lease_lapsed_s(&s->lease) == 0;
}

bool
session_renews(const struct session *s)
{
	return s->lease.renewal_sent > 0;
}

bool
session_one_by_one(const struct session *s)
{
	return s->one_by_one;
}

bool
session_complains(const struct session *s)
{
	return s->complaint[0] != '\0';
}

struct mq_consumer *
session_consumer(struct session *s)
{
	return &s->self;
}

/* --- beginning and end ------------------------------------------------------ */

static const struct mq_loop_events connection_events = {
    .ready = session_renew_or_join,
    .down = on_down,
    .untracked = on_untracked,
    .changed = on_changed,
    .called = on_called};

/* The lease may get another name later; channel and connections keep theirs. */
static void
make_names(struct session *s)
{
	char random[17];

	lease_new_name(&s->lease, s->opt->tag, s->ids);
	snprintf(
	    s->channel, sizeof(s->channel), CHANNELS "%s", s->lease.connection);
	mq_id_random(s->ids, random, sizeof(random) - 1);
	snprintf(
	    s->client_name, sizeof(s->client_name), "mq-consume:%s", random);
}

struct session *
session_new(struct ev_loop *loop, const struct options *opt,
    const struct hand *hand, struct facts *facts, struct mq_server *server,
    struct mq_children *children, struct mq_idgen *ids)
{
	struct session *s = mq_xcalloc(1, sizeof(*s));
	int i;

	s->opt = opt;
	s->hand = hand;
	s->facts = facts;
	s->server = server;
	s->ids = ids;
	s->retry_s = SESSION_RETRY_MIN;
	s->lease.server = &s->self;
	s->lease.facts = facts;
	make_names(s);
	mq_loop_init(&s->conn, loop, server, s->channel, s->client_name,
	    &connection_events, s);
	s->finder = finder_new(children, server, on_found, s);
	s->queues = mq_xcalloc((size_t)opt->queue_count, sizeof(*s->queues));
	for (i = 0; i < opt->queue_count; i++)
		s->queues[i] = (struct session_queue){s, i};
	s->self = (struct mq_consumer){.redis = &s->conn.redis,
	    .layout = opt->layout,
	    .session = {.connection = s->lease.connection,
		.consumer = s->lease.name,
		.queues = opt->queues,
		.queue_count = opt->queue_count,
		.push = opt->given.push,
		.notify = opt->given.notify,
		.attempts = opt->given.attempts}};
	mq_timer_init(&s->retry, loop, on_retry, s);
	mq_timer_init(&s->tick, loop, on_tick, s);
	return s;
}

void
session_begin(struct session *s, bool make, int slots)
{
	s->self.session.make = make;
	session_tell_slots(s, slots);
	mq_timer_start(&s->tick, TICK, TICK);
	open_connections(s);
}

void
session_free(struct session *s)
{
	s->state = SESSION_DOWN;
	mq_timer_stop(&s->tick);
	mq_timer_stop(&s->retry);
	finder_free(s->finder);
	mq_loop_free(&s->conn);
	mq_consumer_free(&s->self);
	free(s->queues);
	free(s);
}
