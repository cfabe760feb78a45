/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * What keeps a session from joining: cmd/mq-consume/session/join.c, with the lease.
 */
#include "base/clock.h"
#include "base/say.h"
#include "mq-consume/session/parts.h"
#include "record.h"

struct house {
	struct session session;
	struct options opt;
	struct mq_server server;
	struct mq_idgen ids;
	struct ev_loop *loop;
	struct facts *facts;
	char *said;
	size_t said_len;
	FILE *say;
};

/* --- a test a row ----------------------------------------------------------- */

static const struct row trouble_rows[] = {
    {"an error is said once until it works",
	{"complain OOM no room -> 'server: OOM no room; trying again'",
	    "complains -> yes", "complain OOM no room", "works",
	    "complains -> no",
	    "complain OOM no room -> 'server: OOM no room; trying again'",
	    "complain NOPERM no -> 'server: NOPERM no; --print-acl prints the "
	    "rights needed; trying again'",
	    "quiet", "complain OOM no room"}},
    {"an error that stays ends the consumer",
	{"quiet", "complain CROSSSLOT no -> failed:78 'server: CROSSSLOT no'",
	    "leaving -> yes", "complain CROSSSLOT no"}},
    {"each try waits twice as long up to five seconds",
	{"quiet", "reset gone -> closed down", "retry -> 50", "opening",
	    "reset gone -> closed down", "retry -> 100", "opening",
	    "reset gone -> closed down", "retry -> 200", "wait-next 3000",
	    "opening", "reset gone -> closed down", "retry -> 3000", "opening",
	    "reset gone -> closed down", "retry -> 5000", "reset gone",
	    "finding", "reset gone"}},
    {"a lost connection is said if it was one",
	{"reset gone -> closed down 'server: gone; reconnecting'", "opening",
	    "reset gone -> closed down", "opening", "verbose",
	    "reset gone -> closed down 'server: gone'"}},
    {"or if there has been none yet",
	{"never-joined", "opening",
	    "reset gone -> closed down 'server: gone; trying again'", "up",
	    "quiet", "reset other -> closed down"}},
    {"one that leaves has left with its connection",
	{"leave", "reset gone -> closed left", "retry -> 0"}},
    {"an error of the settings is final",
	{"reset MOVED 1 host -> failed:78 'server: MOVED 1 host'",
	    "is-up -> yes"}},
    {"one that is to end waits half a minute to join",
	{"wait away -> closed down 'server: no consumer can join: away; trying again'",
	    "waits -> yes", "waited 40", "drain", "waited 29.9",
	    "leaving -> no", "up", "waited 40", "down",
	    "waited 30.1 -> failed:75 'server: given up, as nothing has worked for 30 seconds'",
	    "leaving -> yes"}},
    {"so does one that has a limit",
	{"quiet", "limit", "wait away -> closed down", "waited 29", "wait away",
	    "waited-on -> yes",
	    "waited 30.1 -> failed:75 'server: given up, as nothing has worked for 30 seconds'",
	    "no-wait"}},
};

/* --- the neighbours --------------------------------------------------------- */

void
mq_loop_close(struct mq_loop *l)
{
	record("closed");
}

static void *
setup(void)
{
	struct house *h = mq_xcalloc(1, sizeof(*h));
	struct session *s = &h->session;

	h->loop = ev_loop_new(EVFLAG_AUTO);
	h->facts = s->facts = s->lease.facts = facts_new();
	s->opt = &h->opt;
	s->server = &h->server;
	s->ids = &h->ids;
	s->state = SESSION_UP;
	s->ever_joined = true;
	s->retry_s = SESSION_RETRY_MIN;
	s->lease.server = &s->self;
	s->self.session.wake = "me";
	h->opt.tag = "tag";
	h->opt.idle_ms = -1;
	strlcpy(h->server.name, "server", sizeof(h->server.name));
	mq_timer_init(&s->retry, h->loop, NULL, NULL);
	h->say = open_memstream(&h->said, &h->said_len);
	mq_say_to(h->say);
	return h;
}

static void
teardown(void *arg)
{
	struct house *h = arg;

	mq_say_to(NULL);
	fclose(h->say);
	free(h->said);
	mq_timer_stop(&h->session.retry);
	ev_loop_destroy(h->loop);
	facts_free(h->facts);
	free(h);
	record_clear();
}

/* --- what happens ----------------------------------------------------------- */

static bool
act(struct session *s, const char *word, const char *about)
{
	int retry_ms =
	    (int)(ev_timer_remaining(s->retry.loop, &s->retry.ev) * 1000 + 0.5);

	WORD("complain", session_complain(s, about));
	WORD("works", session_complain(s, NULL));
	WORD("reset", session_reset(s, about));
	WORD("wait", session_wait(s, about));
	WORD("complains", answers(s->complaint[0] != '\0'));
	WORD("leaving", answers(s->leaving));
	WORD("is-up", answers(s->state == SESSION_UP));
	WORD("waits", answers(s->waits_since > 0));
	/* Not anew: for 29 seconds already. */
	WORD("waited-on", answers(mq_clock_steady_s() - s->waits_since >= 29));
	WORD("retry", record("%d", mq_timer_runs(&s->retry) ? retry_ms : 0));
	return false;
}

static bool
arrange(struct house *h, const char *word, const char *about)
{
	struct session *s = &h->session;

	WORD("quiet", h->opt.quiet = true);
	WORD("verbose", h->opt.verbose = true);
	WORD("drain", h->opt.drain = true);
	WORD("limit", h->opt.limit = 1);
	WORD("never-joined", s->ever_joined = false);
	WORD("leave", s->leaving = true);
	WORD("wait-next", s->retry_s = atoi(about) / 1000.0);
	WORD("opening", s->state = SESSION_OPENING);
	WORD("finding", s->state = SESSION_FINDING);
	WORD("up", s->state = SESSION_UP);
	WORD("down", s->state = SESSION_DOWN);
	WORD("no-wait", s->waits_since = 0, session_check(s));
	WORD("waited", s->waits_since = mq_clock_steady_s() - atof(about),
	    session_check(s));
	return false;
}

static void
record_facts(struct house *h)
{
	struct fact f;

	while (fact_take(h->facts, &f)) {
		if (f.kind == FACT_FAILED)
			record("failed:%d", f.status);
		else
			record(f.kind == FACT_DOWN	  ? "down" :
				f.kind == FACT_LEASE_LOST ? "lost" :
				f.kind == FACT_LEFT	  ? "left" :
							    "?");
		fact_free(&f);
	}
}

/* Behind what is told, though it was said before. */
static void
record_said(struct house *h)
{
	fflush(h->say);
	if (h->said_len > 0) {
		h->said[strcspn(h->said, "\n")] = '\0';
		record("'%s'", strstr(h->said, "server: "));
	}
	/* The text begins anew; a libc may tell its length only when something is written. */
	rewind(h->say);
	h->said_len = 0;
}

static bool
take(void *arg, const char *word, const char *about)
{
	struct house *h = arg;
	bool known = act(&h->session, word, about) || arrange(h, word, about);

	record_facts(h);
	record_said(h);
	return known;
}

TEST_ROWS(trouble)
