/*
 * Trouble of a session: errors, lost connections, a lost lease.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "session.h"
#include "redis/connection.h"
#include "redis/server.h"

#define RETRY_MAX 5.0
/* Who is to end by itself waits no longer than this for a node. */
#define WAIT_S 30.0

void
session_give_up(struct session *s, const char *error)
{
	if (s->leaving)
		return;
	mq_say("%s: %s%s", s->server->name, error, mq_error_hint(error));
	s->leaving = true;
	tell(s, FACT_FAILED, .status = mq_error_status(error));
}

void
session_complain(struct session *s, const char *error)
{
	if (mq_error_status(error) == MQ_EXIT_CONFIG) {
		session_give_up(s, error);
		return;
	}
	if (s->opt->quiet ||
	    strncmp(s->complaint, error, sizeof(s->complaint) - 1) == 0)
		return;
	mq_say("%s: %s%s; trying again", s->server->name, error,
	    mq_error_hint(error));
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
	if (mq_error_status(why) == MQ_EXIT_CONFIG) {
		session_give_up(s, why);
		return;
	}
	if (s->state == SESSION_UP && !s->opt->quiet && !s->leaving)
		mq_say("%s: %s; reconnecting", s->server->name, why);
	else if (s->opt->verbose)
		mq_say("%s: %s", s->server->name, why);
	else if (!s->ever_joined || mq_tls_says(why))
		session_complain(s, why);
	s->state = SESSION_DOWN;
	mq_pairs_close(&s->pairs);
	mq_switch_close(&s->news);
	if (s->leaving) {
		tell(s, FACT_LEFT);
		return;
	}
	s->retry_s = wait * 2 < RETRY_MAX ? wait * 2 : RETRY_MAX;
	ev_timer_stop(s->loop, &s->retry);
	ev_timer_set(&s->retry, wait, 0);
	ev_timer_start(s->loop, &s->retry);
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

void
session_check_wait(struct session *s)
{
	if (s->waits_since == 0 || s->state == SESSION_UP ||
	    !(s->opt->drain || s->opt->limit > 0) ||
	    mq_clock_steady_s() - s->waits_since < WAIT_S)
		return;
	s->leaving = true;
	tell(s, FACT_FAILED, .status = MQ_EXIT_AGAIN);
}

void
session_lose_lease(struct session *s, const char *why)
{
	mq_say("%s: lease lost: %s", s->lease.connection, why);
	tell(s, FACT_LEASE_LOST);
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
	session_lose_lease(s, why);
	/* Up or not, the session has to join under its new name. */
	session_reset(s, "rejoining");
	return false;
}
