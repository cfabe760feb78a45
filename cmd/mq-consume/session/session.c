/*
 * States: down -> finding (the address) -> opening -> up.  Opening: CLIENT ID and
 * SUBSCRIBE on the wake connection; CLIENT TRACKING, renew or join, and the held
 * messages on the main one.
 */
#include "session.h"

#define TICK	     1.0
#define OPEN_TIMEOUT 5.0
/* In front of a consumer's name in its channel; see queue/lua/lib/wake.lua. */
#define CHANNELS "mq::wake::"

/* --- where the server is ------------------------------------------------------- */

const char *
find_cause(const struct mq_redis *r)
{
	size_t n = strlen(r->server->name);

	return strncmp(r->error, r->server->name, n) == 0 &&
		strncmp(r->error + n, ": ", 2) == 0 ?
	    r->error + n + 2 :
	    r->error;
}

/* The helper is a copy of this process: the pointers in its server are ours, too. */
static void
find_server(void *arg, void *result)
{
	const struct finder *f = arg;
	struct mq_server *found = result;
	struct mq_redis r;
	const char *why =
	    mq_redis_reach(&r, f->server) == -1 ? find_cause(&r) : "";

	*found = *f->server;
	strlcpy(found->error, why, sizeof(found->error));
}

static void
on_place(void *arg, const void *result)
{
	struct finder *f = arg;
	const struct mq_server *found = result;
	const char *why = NULL;

	if (found == NULL)
		why = "the search for its address ended early";
	else if (found->error[0] != '\0')
		why = found->error;
	else
		*f->server = *found;
	f->found(f->arg, why);
}

int
find_start(struct finder *f, struct mq_children *children,
    struct mq_server *server, find_found *found, void *arg)
{
	const struct mq_url *u = &server->url;

	/* The URL says where the server is. */
	if (u->kind == MQ_URL_UNIX ||
	    (u->kind == MQ_URL_REDIS && mq_address_is(u->hosts->name)))
		return 1;
	f->server = server;
	f->found = found;
	f->arg = arg;
	return mq_helper_start(
	    &f->helper, children, sizeof(*server), find_server, on_place, f);
}

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
		tell(s, FACT_CHANGED);
}

static void
on_changed(void *arg, const char *key, size_t n)
{
	struct session *s = arg;

	if (s->state == SESSION_UP)
		tell(s, FACT_CHANGED, .text = key, .n = n);
}

static void
on_called(void *arg, const char *key, size_t n)
{
	struct session *s = arg;

	if (s->state == SESSION_UP)
		tell(s, FACT_CALLED, .text = key, .n = n);
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
on_retry(struct ev_loop *loop, ev_timer *w, int events)
{
	struct session *s = w->data;
	int found;

	(void)loop;
	(void)events;
	/* The server has not answered the leave. */
	if (s->leaving) {
		on_left(s);
		return;
	}
	s->state = SESSION_FINDING;
	found = find_start(&s->finder, s->children, s->server, on_found, s);
	if (found != 0)
		on_found(s, found == 1 ? NULL : strerror(errno));
}

/* --- once a second ----------------------------------------------------------- */

static void
on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
	struct session *s = w->data;
	double now = mq_clock_steady_s();
	bool leaving = s->leaving;

	(void)loop;
	(void)events;
	if (!leaving && session_holds_lease(s)) {
		/* Far away, each of the steps takes its time: bytes are a sign of
		 * life. */
		if (s->state == SESSION_OPENING &&
		    mq_redis_moves(&s->conn.redis, NULL))
			s->heard_at = now;
		if (s->state == SESSION_OPENING &&
		    now - s->heard_at > OPEN_TIMEOUT)
			session_reset(s, "no answer while connecting");
		if (s->state == SESSION_UP &&
		    !lease_keep(&s->lease, !s->has(s->arg, -1)))
			session_reset(s, "no answer to a heartbeat");
	}
	if (!leaving)
		session_check(s);
	tell(s, FACT_TICK, .yes = s->state == SESSION_UP && !s->leaving);
}

/* --- leaving ---------------------------------------------------------------- */

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
	mq_timer_start(s->loop, &s->retry, OPEN_TIMEOUT);
}

bool
session_is_up(const struct session *s)
{
	return s->state == SESSION_UP;
}

/* --- beginning and end ------------------------------------------------------ */

static const struct mq_loop_events connection_events = {
    .ready = session_renew_or_join,
    .down = session_reset,
    .untracked = on_untracked,
    .changed = on_changed,
    .called = on_called};

void
session_init(struct session *s, bool make)
{
	const struct options *opt = s->opt;
	char random[17];
	int i;

	s->retry_s = SESSION_RETRY_MIN;
	s->lease = (struct lease){.server = &s->self,
	    .lost = session_rejoin,
	    .refused = session_complain,
	    .arg = s};
	lease_new_name(&s->lease, opt->tag, s->ids);
	/* The lease may get another name later; these stay. */
	snprintf(
	    s->channel, sizeof(s->channel), CHANNELS "%s", s->lease.connection);
	mq_id_random(s->ids, random, sizeof(random) - 1);
	snprintf(
	    s->client_name, sizeof(s->client_name), "mq-consume:%s", random);
	mq_loop_init(&s->conn, s->loop, s->server, s->channel, s->client_name,
	    &connection_events, s);
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
		.make = make,
		.attempts = opt->given.attempts,
		.slots = rules_messages(opt)}};
	ev_timer_init(&s->retry, on_retry, 0, 0);
	ev_timer_init(&s->tick, on_tick, TICK, TICK);
	s->retry.data = s->tick.data = s;
	ev_timer_start(s->loop, &s->tick);
	open_connections(s);
}

void
session_free(struct session *s)
{
	s->state = SESSION_DOWN;
	mq_helper_kill(&s->finder.helper);
	mq_loop_free(&s->conn);
	mq_consumer_free(&s->self);
	free(s->queues);
}
