/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * Joining: lease and settings, then the connection's entry and the server's holdings.  And its
 * obstacles: errors, lost connections, a lost lease.
 */
#include "parts.h"

/* Seconds between two tries to connect, at most. */
#define RETRY_MAX 5.0
/* Seconds that a consumer with --drain, -n or --idle waits for a node, at most. */
#define WAIT_S 30.0
/* Seconds between two questions for all settings, if the server does not tell of changes. */
#define SETTINGS_S 10.0
/* If this many connections in a row end before the holdings have arrived, the holdings are to
 * blame. */
#define CUTS 3

/* --- trouble ---------------------------------------------------------------- */

/* Says a final error, and ends: the runs must not outlive the lease. */
static void
give_up(struct session *s, const char *error)
{
	if (s->leaving)
		return;
	mq_say("%s: %s%s", s->server->name, error, mq_error_hint(error));
	s->leaving = true;
	tell(s, FACT_FAILED, .status = mq_error_status(error));
}

/* Whether an operator has to act; a lost connection comes back by itself. */
static bool
needs_operator(const char *error)
{
	return mq_error_status(error) == MQ_EXIT_NOPERM ||
	    mq_error_crowded(error) ||
	    strncmp(error, MQ_TLS_ERROR, strlen(MQ_TLS_ERROR)) == 0;
}

void
session_complain(struct session *s, const char *error)
{
	if (error == NULL) {
		s->complaint[0] = '\0';
		return;
	}
	if (mq_error_status(error) == MQ_EXIT_CONFIG) {
		give_up(s, error);
		return;
	}
	if ((s->opt->quiet && !needs_operator(error)) ||
	    strncmp(s->complaint, error, sizeof(s->complaint) - 1) == 0)
		return;
	mq_say("%s: %s%s; trying again", s->server->name, error,
	    mq_error_hint(error));
	strlcpy(s->complaint, error, sizeof(s->complaint));
}

void
session_reset(struct session *s, const char *why)
{
	double wait = s->retry_s;

	if (s->state <= SESSION_FINDING)
		return;
	if (mq_error_status(why) == MQ_EXIT_CONFIG ||
	    (!s->ever_joined && options_have_end(s->opt) &&
		mq_error_crowded(why))) {
		give_up(s, why);
		return;
	}
	/* The server is there, but of no use. */
	if (s->state == SESSION_OPENING && s->waits_since == 0 &&
	    (mq_error_nonsense(why) || mq_error_crowded(why)))
		s->waits_since = mq_clock_steady_s();
	if (s->state == SESSION_UP && !s->opt->quiet && !s->leaving)
		mq_say("%s: %s; reconnecting", s->server->name, why);
	else if (s->opt->verbose)
		mq_say("%s: %s", s->server->name, why);
	else if (!s->ever_joined || needs_operator(why) ||
	    mq_error_nonsense(why))
		session_complain(s, why);
	s->cuts += s->state == SESSION_OPENING && s->asked_holdings &&
	    mq_error_ended(why);
	s->asked_holdings = s->may_enter = false;
	s->state = SESSION_DOWN;
	mq_loop_close(&s->conn);
	if (s->leaving) {
		tell(s, FACT_LEFT);
		return;
	}
	s->retry_s = wait * 2 < RETRY_MAX ? wait * 2 : RETRY_MAX;
	mq_timer_start(&s->retry, wait, 0);
	tell(s, FACT_DOWN);
}

void
session_wait(struct session *s, const char *why)
{
	char text[sizeof(s->complaint)];

	if (s->waits_since == 0)
		s->waits_since = mq_clock_steady_s();
	snprintf(text, sizeof(text), "no consumer can join: %s", why);
	session_complain(s, text);
	session_reset(s, text);
}

/* The lease is lost: says and tells it, and takes a new name. */
static void
lose_lease(struct session *s, const char *why)
{
	mq_say("%s: lease lost: %s", s->lease.connection, why);
	tell(s, FACT_LEASE_LOST);
	lease_new_name(&s->lease, s->opt->tag, s->ids);
}

void
session_lapsed(struct session *s)
{
	char why[64];

	snprintf(why, sizeof(why), "no heartbeat got through for %.3g seconds",
	    lease_lapsed_s(&s->lease));
	lose_lease(s, why);
	session_reset(s, "rejoining");
}

/* --- joining ---------------------------------------------------------------- */

/* Checks an answer that joining waits for.  False: this join is over. */
static bool
check_answer(struct session *s, const struct mq_answer *answer)
{
	if (answer == NULL || s->state != SESSION_OPENING || s->leaving)
		return false;
	if (answer->error == NULL)
		return true;
	if (answer->missing) {
		session_wait(s, answer->error);
		return false;
	}
	/* During the first join, an error is final, unless the server is only busy. */
	if (s->ever_joined || mq_error_busy(answer->error))
		session_reset(s, answer->error);
	else
		give_up(s, answer->error);
	return false;
}

/* If a message does not arrive, cleaners are to count an attempt, which they do only for consumers
 * with slots: so even a printing consumer has 1 then. */
static void
set_slots(struct session *s, int slots)
{
	s->self.session.slots = MAX(slots, s->one_by_one);
}

void
session_tell_slots(struct session *s, int slots)
{
	int before = s->self.session.slots;

	set_slots(s, slots);
	if (s->self.session.slots != before && s->state == SESSION_UP)
		mq_consumer_tell_slots(&s->self);
}

static void count_answer(struct session *);

static void
on_entered(void *arg, const struct mq_answer *answer)
{
	struct session *s = arg;

	if (check_answer(s, answer))
		count_answer(s);
}

/* Names the messages that do not arrive, by their beginnings, which do. */
static void
say_cut(const struct session_queue *q, const struct mq_held *held)
{
	const struct session *s = q->session;
	struct mq_envelope e;
	const char *why, *id;
	int i;

	for (i = 0; i < held->n; i++) {
		if (mq_envelope_parse(held->elements[i].data,
			held->elements[i].len, &e, &why) == -1)
			continue;
		id = mq_message_name(&e);
		mq_say("%s: message %s: the server ends each connection before "
		       "it arrives; it may be beyond "
		       "client-output-buffer-limit",
		    s->opt->queues[q->number], id != NULL ? id : "without id");
		mq_envelope_free(&e);
	}
}

/* Leaves messages that do not arrive to a cleaner, as if this consumer had died: an attempt counts.
 * From now on, messages are claimed one by one. */
static void
leave_cut(struct session *s)
{
	s->one_by_one = true;
	set_slots(s, s->self.session.slots);
	s->self.session.heads = false;
	lose_lease(s, "its messages do not arrive");
	s->self.session.former = NULL;
	session_reset(s, "rejoining");
	s->cuts = 0;
}

static void
on_holdings(void *arg, const struct mq_answer *answer)
{
	struct session_queue *q = arg;
	struct session *s = q->session;

	if (!check_answer(s, answer))
		return;
	if (s->self.session.heads)
		say_cut(q, answer->held);
	else
		tell(s, FACT_HOLDINGS, .queue = q->number, .yes = true,
		    .holdings = fact_holdings(answer->held));
	count_answer(s);
}

static void
on_taken_over(void *arg, const struct mq_answer *answer)
{
	struct session_queue *q = arg;
	struct session *s = q->session;

	if (!check_answer(s, answer))
		return;
	if (answer->n > 0) {
		mq_consumer_held(&s->self, q->number, on_holdings, q);
		return;
	}
	lose_lease(s, "it had expired");
	session_reset(s, "rejoining");
}

static void
ask_all_holdings(struct session *s)
{
	const char *from = s->lease.old_name;
	int i;

	s->asked_holdings = true;
	s->self.session.heads = s->cuts >= CUTS;
	for (i = 0; i < s->opt->queue_count; i++) {
		if (mq_consumer_lacks(&s->self, i))
			continue;
		s->answers_wanted++;
		if (from[0] != '\0')
			mq_consumer_take_over(
			    &s->self, i, from, on_taken_over, &s->queues[i]);
		else
			mq_consumer_held(
			    &s->self, i, on_holdings, &s->queues[i]);
	}
}

/* The next step of joining.  A new name takes over the messages of the old one only after it has
 * entered, so that a cleaner would find them. */
static void
count_answer(struct session *s)
{
	if (--s->answers_wanted > 0)
		return;
	if (!s->lease.joined &&
	    mq_consumer_away(&s->self, MQ_NEW_NAME) != NULL) {
		session_renew_or_join(s);
		return;
	}
	if (!s->asked_holdings) {
		ask_all_holdings(s);
		return;
	}
	if (s->self.session.heads) {
		leave_cut(s);
		return;
	}
	s->state = SESSION_UP;
	s->cuts = 0;
	s->retry_s = SESSION_RETRY_MIN;
	if (s->ever_joined && s->opt->verbose)
		mq_say("%s: connected as %s", s->server->name,
		    s->lease.connection);
	lease_joined(&s->lease);
	s->ever_joined = true;
	s->waits_since = 0;
	/* A queue deleted from now on is not made again. */
	s->self.session.make = false;
	tell(s, FACT_UP);
}

/* Lease and settings are there, and so the number of messages that may run here. */
void
session_enter(struct session *s, int slots)
{
	const char *why = NULL;
	int i;

	if (!s->may_enter || s->leaving)
		return;
	s->may_enter = false;
	set_slots(s, slots);
	/* If the node of a queue is away, its messages cannot be compared: join later. */
	for (i = 0; i < s->opt->queue_count && why == NULL; i++)
		if (hand_size(s->hand, i) > 0)
			why = mq_consumer_away(&s->self, i);
	if (why != NULL) {
		session_reset(s, why);
		return;
	}
	s->lease.ms = s->lease_ms;
	s->asked_holdings = false;
	s->answers_wanted = 1 + mq_consumer_enter(&s->self, on_entered, s);
	if (s->lease.old_name[0] == '\0')
		ask_all_holdings(s);
	count_answer(s);
}

static void
offer_to_enter(struct session *s)
{
	s->may_enter = true;
	tell(s, FACT_ENTER);
}

/* As check_answer(); but if the node of the lease is away, joins under another name. */
static bool
check_lease_answer(struct session *s, const struct mq_answer *answer)
{
	if (answer == NULL || !answer->missing || s->state != SESSION_OPENING ||
	    s->leaving)
		return check_answer(s, answer);
	session_renew_or_join(s);
	return false;
}

static void
on_lease(void *arg, const struct mq_answer *answer)
{
	struct session *s = arg;

	if (!check_lease_answer(s, answer))
		return;
	s->lease_ms = answer->n;
	if (s->settings_wanted <= 0)
		offer_to_enter(s);
}

/* --- settings --------------------------------------------------------------- */

/* Joining waits for settings and pause: nothing is claimed before. */
static void
count_settings(struct session *s)
{
	if (s->state == SESSION_OPENING && --s->settings_wanted == 0 &&
	    s->lease_ms > 0 && !s->leaving)
		offer_to_enter(s);
}

/* Without the right to read settings, defaults apply. */
static void
on_settings(void *arg, const struct mq_answer *answer)
{
	const struct session_queue *q = arg;
	struct session *s = q->session;

	if (answer != NULL && answer->error != NULL && s->opt->verbose)
		mq_say("%s: settings: %s", s->opt->queues[q->number],
		    answer->error);
	if (mq_answer_good(answer) &&
	    rules_take(s->opt, q->number, answer->settings))
		tell(s, FACT_RULES);
	if (answer != NULL)
		count_settings(s);
}

/* Without the right to know, the consumer goes on. */
static void
on_pause(void *arg, const struct mq_answer *answer)
{
	struct session *s = arg;

	if (answer == NULL)
		return;
	if (answer->error != NULL && !s->pause_unknown && !s->opt->quiet)
		mq_say("%s: cannot see whether all queues are paused, and "
		       "goes on: %s",
		    s->server->name, answer->error);
	s->pause_unknown |= answer->error != NULL;
	tell(s, FACT_ALL_PAUSED,
	    .yes = answer->error == NULL && answer->n != -2);
	count_settings(s);
}

void
session_ask_pause(struct session *s)
{
	mq_consumer_ask_pause(&s->self, on_pause, s);
}

static void
ask_all_settings(struct session *s)
{
	int i;

	s->settings_at = mq_clock_steady_s();
	session_ask_pause(s);
	for (i = 0; i < s->opt->queue_count; i++)
		mq_consumer_settings(&s->self, i, on_settings, &s->queues[i]);
}

void
session_ask_settings(struct session *s, int queue)
{
	if (s->state == SESSION_UP)
		mq_consumer_settings(
		    &s->self, queue, on_settings, &s->queues[queue]);
}

void
session_check(struct session *s)
{
	double now = mq_clock_steady_s();

	if (s->state == SESSION_UP && s->self.session.wake == NULL) {
		if (now - s->settings_at >= SETTINGS_S)
			ask_all_settings(s);
		else
			session_ask_pause(s);
	}
	if (s->waits_since == 0 || s->state == SESSION_UP ||
	    !options_have_end(s->opt) || now - s->waits_since < WAIT_S)
		return;
	mq_say("%s: given up, as nothing has worked for %g seconds",
	    s->server->name, WAIT_S);
	s->leaving = true;
	tell(s, FACT_FAILED, .status = MQ_EXIT_AGAIN);
}

/* Warns if the server evicts keys. */
static void
on_memory(void *arg, const struct mq_answer *answer)
{
	const struct session *s = arg;
	struct mq_info info = {.replicas = 0};

	if (answer != NULL && answer->text != NULL)
		mq_info_parse(&info, answer->text);
	if (answer != NULL && answer->error != NULL && s->opt->verbose)
		mq_say("%s: INFO: %s", s->server->name, answer->error);
	else if (info.evicts && !s->opt->quiet)
		mq_say("%s: maxmemory-policy is %s: when its memory is full, "
		       "the server drops queues or leases; set it to "
		       "noeviction",
		    s->server->name, info.policy);
}

static void
send_join(struct session *s)
{
	if (!s->ever_joined)
		mq_consumer_ask_policy(&s->self, on_memory, s);
	s->lease_ms = 0;
	s->may_enter = false;
	s->settings_wanted = s->opt->queue_count + 1;
	ask_all_settings(s);
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
	s->heard_at = mq_clock_steady_s();
	send_join(s);
}

static void
on_rejoin(void *arg, const struct mq_answer *answer)
{
	struct session *s = arg;

	if (!check_lease_answer(s, answer))
		return;
	if (answer->n == 0)
		lose_lease(s, "the heartbeat had expired");
	send_join(s);
}

void
session_renew_or_join(void *arg)
{
	struct session *s = arg;
	const char *why = mq_consumer_away(
	    &s->self, s->lease.joined ? MQ_OWN_LEASE : MQ_NEW_NAME);

	/* A cluster may lack the nodes for any name. */
	if (why != NULL && !lease_rename(&s->lease, s->opt->tag, s->ids)) {
		session_wait(s, why);
		return;
	}
	if (why != NULL && s->opt->verbose)
		mq_say("%s: %s; joining as %s", s->server->name, why,
		    s->lease.connection);
	if (s->lease.joined)
		mq_consumer_renew(&s->self, on_rejoin, s);
	else
		send_join(s);
}
