/*
 * cmd/mq-consume/session/trouble.c, with the lease.
 */
#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "mq-consume/session/session.h"
#include "record.h"

struct house {
	struct session session;
	struct options opt;
	struct mq_server server;
	struct mq_idgen ids;
	char *said;
	size_t said_len;
	FILE *say;
};

/* --- the neighbours --- */

void
mq_pairs_close(struct mq_pairs *l)
{
	record("closed");
}

void
mq_switch_close(struct mq_switch *s)
{
}

/* Writes down what the session tells. */
static void
on_fact(void *arg, const struct fact *f)
{
	switch (f->kind) {
	case FACT_DOWN:
		record("down");
		break;
	case FACT_LEASE_LOST:
		record("lost");
		break;
	case FACT_LEFT:
		record("left");
		break;
	case FACT_FAILED:
		record("failed:%d", f->status);
		break;
	default:
		break;
	}
}

/* What has been said since the last call. */
static const char *
said(struct house *h)
{
	static char text[1024];

	fflush(h->say);
	snprintf(text, sizeof(text), "%s", h->said);
	rewind(h->say);
	fputc('\0', h->say);
	rewind(h->say);
	return text;
}

static int
setup(void **state)
{
	struct house *h = mq_xcalloc(1, sizeof(*h));
	struct session *s = &h->session;

	s->loop = ev_loop_new(EVFLAG_AUTO);
	s->opt = &h->opt;
	s->server = &h->server;
	s->ids = &h->ids;
	s->hear = on_fact;
	s->state = SESSION_UP;
	s->ever_joined = true;
	s->retry_s = SESSION_RETRY_MIN;
	s->lease.server = &s->self;
	h->opt.tag = "tag";
	strlcpy(h->server.name, "server", sizeof(h->server.name));
	ev_timer_init(&s->retry, NULL, 0, 0);
	h->say = open_memstream(&h->said, &h->said_len);
	mq_say_to(h->say);
	*state = h;
	return 0;
}

static int
teardown(void **state)
{
	struct house *h = *state;

	mq_say_to(NULL);
	fclose(h->say);
	free(h->said);
	ev_loop_destroy(h->session.loop);
	free(h);
	record_clear();
	return 0;
}

static bool
says(struct house *h, const char *text)
{
	return strstr(said(h), text) != NULL;
}

/* --- tests --- */

#define TEST_OF(fn) TEST_WITH(fn, struct house *h, setup, teardown)

TEST_OF(an_error_is_said_once_until_it_works)
{
	struct session *s = &h->session;

	session_complain(s, "OOM no room");
	assert_true(session_complains(s));
	assert_true(says(h, "server: OOM no room; trying again"));
	session_complain(s, "OOM no room");
	assert_string_equal(said(h), "");
	session_complain(s, "NOPERM no");
	assert_true(says(h, "server: NOPERM no; --print-acl prints"));
	session_works(s);
	assert_false(session_complains(s));
	session_complain(s, "NOPERM no");
	assert_true(says(h, "NOPERM no"));
	h->opt.quiet = true;
	session_complain(s, "OOM no room");
	assert_string_equal(said(h), "");
	assert_string_equal(recorded(), "");
}

TEST_OF(an_error_that_stays_ends_the_consumer)
{
	h->opt.quiet = true;
	session_complain(&h->session, "CROSSSLOT no");
	assert_true(says(h, "server: CROSSSLOT no"));
	assert_true(h->session.leaving);
	session_give_up(&h->session, "NOPERM no");
	assert_string_equal(said(h), "");
	assert_string_equal(recorded(), "failed:78");
}

TEST_OF(each_try_waits_twice_as_long_up_to_five_seconds)
{
	struct session *s = &h->session;
	double wait = SESSION_RETRY_MIN;
	int i;

	for (i = 0; i < 10; i++) {
		s->state = SESSION_OPENING;
		session_reset(s, "gone");
		assert_string_equal(recorded(), "closed down");
		assert_int_equal(s->state, SESSION_DOWN);
		assert_true(ev_is_active(&s->retry));
		assert_float_equal(
		    ev_timer_remaining(s->loop, &s->retry), wait, 0.001);
		wait = wait * 2 < 5 ? wait * 2 : 5;
		assert_true(s->retry_s == wait);
	}
	session_reset(s, "gone");
	s->state = SESSION_FINDING;
	session_reset(s, "gone");
	assert_string_equal(recorded(), "");
}

TEST_OF(a_lost_connection_is_said_if_it_was_one)
{
	struct session *s = &h->session;

	session_reset(s, "gone");
	assert_true(says(h, "server: gone; reconnecting"));
	s->state = SESSION_OPENING;
	session_reset(s, "gone");
	assert_string_equal(said(h), "");
	s->state = SESSION_OPENING;
	h->opt.verbose = true;
	session_reset(s, "gone");
	assert_true(says(h, "server: gone\n"));
	h->opt.verbose = false;
	s->ever_joined = false;
	s->state = SESSION_OPENING;
	session_reset(s, "gone");
	assert_true(says(h, "server: gone; trying again"));
	s->state = SESSION_UP;
	h->opt.quiet = true;
	session_reset(s, "other");
	assert_string_equal(said(h), "");
}

TEST_OF(one_that_leaves_has_left_with_its_connection)
{
	h->session.leaving = true;
	session_reset(&h->session, "gone");
	assert_string_equal(said(h), "");
	assert_string_equal(recorded(), "closed left");
	assert_false(ev_is_active(&h->session.retry));
}

TEST_OF(an_error_of_the_settings_is_final)
{
	session_reset(&h->session, "MOVED 1 host");
	assert_string_equal(recorded(), "failed:78");
	assert_int_equal(h->session.state, SESSION_UP);
}

/* Since it could not join, so many seconds ago. */
static void
waits(struct session *s, double seconds)
{
	s->waits_since = mq_clock_steady_s() - seconds;
	session_check_wait(s);
}

TEST_OF(one_that_is_to_end_waits_half_a_minute_to_join)
{
	struct session *s = &h->session;

	session_wait(s, "away");
	assert_true(
	    says(h, "server: no consumer can join: away; trying again"));
	assert_true(s->waits_since > 0);
	waits(s, 40);
	assert_string_equal(recorded(), "closed down");
	h->opt.drain = true;
	waits(s, 29.9);
	assert_false(s->leaving);
	s->state = SESSION_UP;
	waits(s, 40);
	s->state = SESSION_DOWN;
	assert_string_equal(recorded(), "");
	waits(s, 30.1);
	assert_string_equal(recorded(), "failed:75");
	assert_true(s->leaving);
	h->opt.drain = false;
	h->opt.limit = 1;
	waits(s, 30.1);
	assert_string_equal(recorded(), "failed:75");
	s->waits_since = 0;
	session_check_wait(s);
	assert_string_equal(recorded(), "");
}

TEST_OF(a_first_wait_begins_the_time)
{
	struct session *s = &h->session;

	s->waits_since = 5;
	session_wait(s, "away");
	assert_true(s->waits_since == 5);
}
