/*
 * Joining: first the lease, then the connection and the held messages.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "session.h"
#include "redis/connection.h"

/* Between two looks at the settings where the server does not tell of changes. */
#define SETTINGS_S 10.0

static void
finish_join(struct session *s)
{
	s->state = SESSION_UP;
	s->retry_s = SESSION_RETRY_MIN;
	if (s->ever_joined && s->opt->verbose)
		mq_say("%s: connected as %s", s->server->name,
		    s->lease.connection);
	lease_joined(&s->lease);
	s->ever_joined = true;
	s->waits_since = 0;
	/* A queue that somebody deletes from now on is not made again. */
	s->self.session.make = false;
	tell(s, FACT_UP);
}

/* Checks an answer that joining waits for.  False: this join is over. */
static bool
take_answer(struct session *s, const struct mq_answer *answer)
{
	if (answer == NULL || s->state != SESSION_OPENING || s->leaving)
		return false;
	if (answer->error == NULL)
		return true;
	if (answer->missing) {
		session_wait(s, answer->error);
		return false;
	}
	/* An error of the first join is final, unless the server only stands still. */
	if (s->ever_joined || mq_error_busy(answer->error))
		session_reset(s, answer->error);
	else
		session_give_up(s, answer->error);
	return false;
}

static void count_answer(struct session *);

static void
on_entered(void *arg, const struct mq_answer *answer)
{
	struct session *s = arg;

	if (take_answer(s, answer))
		count_answer(s);
}

/* About a queue. */
struct queue_request {
	struct session *session;
	int queue;
	bool joining; /* joining waits for the answer */
};

static void
on_held(void *arg, const struct mq_answer *answer, struct mq_held *held)
{
	struct queue_request *q = arg;
	struct session *s = q->session;
	int queue = q->queue;

	free(q);
	if (!take_answer(s, answer))
		return;
	tell(s, FACT_HELD, .queue = queue, .held = held);
	count_answer(s);
}

static void
on_taken_over(void *arg, const struct mq_answer *answer, long long n)
{
	struct queue_request *q = arg;
	struct session *s = q->session;
	int queue = q->queue;

	if (!take_answer(s, answer)) {
		free(q);
	} else if (n == 0) {
		free(q);
		session_lose_lease(s, "it had expired");
		session_reset(s, "rejoining");
	} else {
		mq_consumer_held(&s->self, queue, on_held, q);
	}
}

static void
ask_held(struct session *s, int queue)
{
	struct queue_request *q = mq_xcalloc(1, sizeof(*q));
	const char *from = lease_moved(&s->lease);

	*q = (struct queue_request){s, queue, true};
	if (from != NULL)
		mq_consumer_take_over(&s->self, queue, from, on_taken_over, q);
	else
		mq_consumer_held(&s->self, queue, on_held, q);
}

static void
ask_all_held(struct session *s)
{
	int i;

	s->asked_held = true;
	for (i = 0; i < s->opt->queue_count; i++)
		s->answers_wanted += !mq_consumer_lacks(&s->self, i);
	for (i = 0; i < s->opt->queue_count; i++)
		if (!mq_consumer_lacks(&s->self, i))
			ask_held(s, i);
}

/* What another name held is taken over by one that a cleaner would find. */
static void
count_answer(struct session *s)
{
	if (--s->answers_wanted > 0)
		return;
	if (!lease_is_joined(&s->lease) &&
	    mq_consumer_away(&s->self, true) != NULL)
		session_renew_or_join(s);
	else if (!s->asked_held)
		ask_all_held(s);
	else
		finish_join(s);
}

/* Why the session must not enter: a queue is away of which it has messages. */
static const char *
find_missed(struct session *s)
{
	const char *why = NULL;
	int i;

	for (i = 0; i < s->opt->queue_count && why == NULL; i++)
		if (s->has(s->arg, i))
			why = mq_consumer_queue_away(&s->self, i);
	return why;
}

/* With a lease, and all settings: from them the server learns how many messages may
 * run here. */
static void
enter(struct session *s)
{
	const char *why = find_missed(s);

	if (why != NULL) {
		session_reset(s, why);
		return;
	}
	lease_confirm(&s->lease, s->lease_ms);
	s->asked_held = false;
	s->answers_wanted = 1 + mq_consumer_enter(&s->self, on_entered, s);
	if (lease_moved(&s->lease) == NULL)
		ask_all_held(s);
	count_answer(s);
}

/* As take_answer(); but if the node of the lease is away, another name will do. */
static bool
take_lease_answer(struct session *s, const struct mq_answer *answer)
{
	if (answer == NULL || !answer->missing || s->state != SESSION_OPENING ||
	    s->leaving)
		return take_answer(s, answer);
	session_renew_or_join(s);
	return false;
}

static void
on_lease(void *arg, const struct mq_answer *answer, long long ms)
{
	struct session *s = arg;

	if (!take_lease_answer(s, answer))
		return;
	s->lease_ms = ms;
	if (s->settings_wanted == 0)
		enter(s);
}

/* --- settings --------------------------------------------------------------- */

/* Who may not read them has none. */
static void
take_settings(struct session *s, int queue, const struct mq_answer *answer,
    struct mq_setting_texts *texts)
{
	if (answer->error == NULL)
		tell(s, FACT_SETTINGS, .queue = queue, .settings = texts);
	else if (s->opt->verbose)
		mq_say(
		    "%s: settings: %s", s->opt->queues[queue], answer->error);
}

static void
on_settings(
    void *arg, const struct mq_answer *answer, struct mq_setting_texts *texts)
{
	struct queue_request *q = arg;
	struct session *s = q->session;
	bool joining = q->joining;

	if (answer != NULL)
		take_settings(s, q->queue, answer, texts);
	free(q);
	if (answer == NULL || !joining || s->state != SESSION_OPENING)
		return;
	if (--s->settings_wanted == 0 && s->lease_ms > 0 && !s->leaving)
		enter(s);
}

static void
ask_settings(struct session *s, int queue, bool joining)
{
	struct queue_request *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct queue_request){s, queue, joining};
	mq_consumer_settings(&s->self, queue, on_settings, q);
}

/* Who cannot know goes on. */
static void
on_pause(void *arg, const struct mq_answer *answer, long long left)
{
	struct session *s = arg;

	if (answer == NULL)
		return;
	if (answer->error != NULL && !s->pause_unknown && !s->opt->quiet)
		mq_say("%s: cannot see whether all queues are paused, and "
		       "goes on: %s",
		    s->server->name, answer->error);
	s->pause_unknown |= answer->error != NULL;
	s->hear(s->arg,
	    &(struct fact){.kind = FACT_ALL_PAUSED,
		.yes = answer->error == NULL && left != -2});
}

void
session_ask_pause(struct session *s)
{
	mq_consumer_ask_pause(&s->self, on_pause, s);
}

static void
ask_all_settings(struct session *s, bool joining)
{
	int i;

	s->settings_at = mq_clock_steady_s();
	session_ask_pause(s);
	for (i = 0; i < s->opt->queue_count; i++)
		ask_settings(s, i, joining);
}

void
session_ask_settings(struct session *s, int queue)
{
	if (s->state == SESSION_UP)
		ask_settings(s, queue, false);
}

void
session_check_settings(struct session *s)
{
	if (s->state == SESSION_UP && s->self.session.wake == NULL)
		session_ask_pause(s);
	if (s->state == SESSION_UP && s->self.session.wake == NULL &&
	    mq_clock_steady_s() - s->settings_at >= SETTINGS_S)
		ask_all_settings(s, false);
}

/* Warns if the server evicts keys. */
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

static void
send_join(struct session *s)
{
	if (!s->ever_joined)
		mq_consumer_ask_policy(&s->self, on_memory, s);
	s->lease_ms = 0;
	s->settings_wanted = s->opt->queue_count;
	ask_all_settings(s, true);
	lease_begin_join(&s->lease);
	mq_consumer_join(&s->self, on_lease, s);
}

void
session_rejoin(void *session)
{
	struct session *s = session;

	if (s->state != SESSION_UP)
		return;
	session_lose_lease(s, "the heartbeat had expired");
	s->state = SESSION_OPENING;
	s->heard_at = mq_clock_steady_s();
	send_join(s);
}

static void
on_rejoin(void *arg, const struct mq_answer *answer, long long ms)
{
	struct session *s = arg;

	if (!take_lease_answer(s, answer))
		return;
	if (ms == 0)
		session_lose_lease(s, "the heartbeat had expired");
	send_join(s);
}

/* NULL, or why there is no name under which a cluster's nodes would hold messages. */
static const char *
choose_name(struct session *s)
{
	const char *why =
	    mq_consumer_away(&s->self, !lease_is_joined(&s->lease));

	if (why == NULL)
		return NULL;
	if (!lease_move(&s->lease, s->opt->tag, s->ids))
		return why;
	if (s->opt->verbose)
		mq_say("%s: %s; joining as %s", s->server->name, why,
		    s->lease.connection);
	return NULL;
}

void
session_renew_or_join(void *arg)
{
	struct session *s = arg;
	const char *why = choose_name(s);

	if (why != NULL)
		session_wait(s, why);
	else if (lease_is_joined(&s->lease))
		mq_consumer_renew(&s->self, on_rejoin, s);
	else
		send_join(s);
}
