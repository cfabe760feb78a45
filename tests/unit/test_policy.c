/*
 * When messages are started and the consumer stops: a policy, with an engine that
 * records what it is to do.
 */
#include <unistd.h>

#include "mq-consume/policy.h"
#include "record.h"

struct house {
	struct ev_loop *loop;
	struct options opt;
	sigset_t ignored;
	struct policy policy;
	int wakes;
};

/* --- the engine --- */

static const char *const levels[] = {"not", "fetching", "soon", "now"};

/* Writes down what the policy tells. */
static void
on_fact(void *arg, const struct fact *f)
{
	struct house *h = arg;

	if (f->kind == FACT_WAKE)
		h->wakes++;
	else if (f->kind == FACT_STOP)
		record("%sstop:%s", f->yes ? "asked " : "",
		    levels[h->policy.stop]);
	else if (f->kind == FACT_GIVE_UP)
		record("give-up");
	else if (f->kind == FACT_SIGNAL)
		record(f->status == SIGTERM ? "TERM" : "KILL");
	else if (f->kind == FACT_REOPEN_LOGS)
		record("logs");
}

static void
free_policy(struct house *h)
{
	size_t i;

	/* No other loop may have these signals until then. */
	for (i = 0; i < COUNT(h->policy.signals); i++)
		ev_signal_stop(h->loop, &h->policy.signals[i]);
}

static void
make_policy(struct house *h)
{
	h->policy = (struct policy){
	    .loop = h->loop, .opt = &h->opt, .hear = on_fact, .arg = h};
	policy_init(&h->policy, &h->ignored);
}

/* Begins anew, with the options as they are now. */
static void
begin(struct house *h)
{
	free_policy(h);
	make_policy(h);
}

static void
get_signal(struct house *h, int sig)
{
	ev_feed_signal_event(h->loop, sig);
	ev_run(h->loop, EVRUN_NOWAIT);
}

static void
run_out(struct house *h, ev_timer *timer)
{
	ev_feed_event(h->loop, timer, EV_TIMER);
	ev_run(h->loop, EVRUN_NOWAIT);
}

static void *
setup(void)
{
	struct house *h = mq_xcalloc(1, sizeof(*h));

	/* A test that waits for ever fails. */
	alarm(20);
	h->loop = ev_loop_new(EVFLAG_AUTO);
	h->opt = (struct options){.grace_ms = 30000, .idle_ms = -1};
	sigemptyset(&h->ignored);
	make_policy(h);
	return h;
}

static void
teardown(void *arg)
{
	struct house *h = arg;

	free_policy(h);
	ev_loop_destroy(h->loop);
	free(h);
	record_clear();
}

/* --- stopping --------------------------------------------------------------- */

static const struct row stop_rows[] = {
    {"levels only rise",
	{"stop fetching -> stop:fetching", "stop fetching",
	    "stop soon -> stop:soon", "stop fetching", "level -> 2",
	    "stop now -> KILL stop:now", "stop soon", "level -> 3"}},
    {"the first status counts",
	{"stop fetching -> stop:fetching", "stop soon 75 -> stop:soon",
	    "stop now 70 -> KILL stop:now", "exit -> 75", "exit 69 -> 69"}},
    {"a level that is reached has no status",
	{"stop soon -> stop:soon", "stop soon 75", "exit -> 0"}},
    {"signals raise the level",
	{"USR1 -> stop:fetching", "INT -> asked stop:soon", "TERM", "USR1",
	    "INT -> KILL asked stop:now", "INT"}},
    {"a hangup ends or opens logs",
	{"logs", "HUP -> logs", "no-logs", "HUP -> asked stop:soon", "nohup",
	    "HUP -> logs"}},
    {"the grace time goes from TERM to giving up",
	{"stop soon -> stop:soon", "grace -> 30", "grace-over -> TERM stop:now",
	    "killed -> no", "grace -> 5", "grace-over -> KILL", "killed -> yes",
	    "grace -> 5", "grace-over -> give-up"}},
    {"what is killed at once is given up next",
	{"stop now -> KILL stop:now", "killed -> yes", "grace -> 5",
	    "grace-over -> give-up"}},
};

/* --- starting --------------------------------------------------------------- */

/* room WANTED HELD HELD-FOR-A-BATCH */
static const struct row start_rows[] = {
    {"the limit",
	{"limit 5", "room 3 -> 3", "room 9 -> 5", "started", "started",
	    "room 9 1 -> 2", "room 3 1 -> 2", "reached 2 -> no",
	    "reached 3 -> yes", "room 9 4 -> -1", "unstarted",
	    "reached 3 -> no", "room 9 3 -> 1"}},
    {"the rate",
	{"rate 3", "room 9 -> 3", "room 9 2 -> 1", "room 2 -> 2", "started",
	    "started", "may-start -> yes", "token -> -1", "started",
	    "may-start -> no", "room 9 -> 0", "token -> 3600", "wakes -> 0"}},
    {"a batch is claimed whole",
	{"rate 1", "batch 8", "room 99 -> 8", "room 99 3 3 -> 5", "started",
	    "room 99 3 3 -> 0"}},
    {"prefetch may wait for the rate",
	{"command", "prefetch 4", "rate 1", "room 5 -> 5", "prefetch -1",
	    "room 5 -> 1", "prefetch 4", "no-command", "room 5 -> 1"}},
};

/* --- caution ---------------------------------------------------------------- */

static const struct row caution_rows[] = {
    {"one at a time, or alone, for a minute",
	{"careful -> no", "alone -> no", "be-careful", "careful -> yes",
	    "alone -> no", "later", "careful -> no", "be-alone", "alone -> yes",
	    "careful -> no", "later", "alone -> no"}},
};

/* --- their steps ------------------------------------------------------------ */

/* Seconds, of less than one second ago; -1: it does not run. */
static void
record_timer(struct house *h, ev_timer *timer)
{
	record("%d",
	    ev_is_active(timer) ?
		(int)(ev_timer_remaining(h->loop, timer) + 0.999) :
		-1);
}

static bool
ask(struct house *h, const char *word, const char *about)
{
	struct policy *p = &h->policy;
	int n[4] = {0};

	(void)sscanf(about, "%d %d %d %d", &n[0], &n[1], &n[2], &n[3]);
	WORD("level", record("%d", (int)p->stop));
	WORD("exit", record("%d", policy_exit(p, n[0])));
	WORD("killed", answers(p->killed));
	WORD("grace", record_timer(h, &p->grace_timer));
	WORD("token", record_timer(h, &p->rate_timer));
	WORD("room", record("%ld", policy_room(p, n[0], n[1], (int)n[2])));
	WORD("reached", answers(policy_limit_reached(p, n[0])));
	WORD("may-start", answers(policy_may_start(p)));
	WORD("wakes", record("%d", h->wakes));
	WORD("careful", answers(policy_is_careful(p, false)));
	WORD("alone", answers(policy_is_careful(p, true)));
	return false;
}

static void
stop_at(struct house *h, const char *about)
{
	enum stop_level level = STOP_FETCHING;
	const char *status = strchr(about, ' ');

	while (strncmp(about, levels[level], strlen(levels[level])) != 0)
		level++;
	policy_stop(&h->policy, level, status != NULL ? atoi(status) : 0, 0);
}

static bool
take(void *arg, const char *word, const char *about)
{
	static char *command[] = {NULL};
	static char logs[] = "/logs";
	struct house *h = arg;
	struct policy *p = &h->policy;

	WORD("stop", stop_at(h, about));
	WORD("USR1", get_signal(h, SIGUSR1));
	WORD("INT", get_signal(h, SIGINT));
	WORD("TERM", get_signal(h, SIGTERM));
	WORD("HUP", get_signal(h, SIGHUP));
	WORD("grace-over", run_out(h, &p->grace_timer));
	WORD("started", policy_started(p));
	WORD("unstarted", policy_unstarted(p));
	WORD("be-careful", policy_be_careful(p, false));
	WORD("be-alone", policy_be_careful(p, true));
	WORD("later", p->careful_until[0] -= 60, p->careful_until[1] -= 60);
	WORD("logs", h->opt.log_dir = logs);
	WORD("no-logs", h->opt.log_dir = NULL);
	WORD("command", h->opt.command = command);
	WORD("no-command", h->opt.command = NULL);
	WORD("prefetch", h->opt.prefetch = atoi(about));
	WORD("batch", h->opt.batch = atoi(about));
	WORD("limit", h->opt.limit = atoi(about), begin(h));
	WORD("rate", h->opt.rate = (struct mq_rate){1.0 / 3600, atoi(about)},
	    begin(h));
	WORD("nohup", sigaddset(&h->ignored, SIGHUP), begin(h));
	return ask(h, word, about);
}

TEST_ROWS(stop)
TEST_ROWS(start)
TEST_ROWS(caution)

/* --- and others ------------------------------------------------------------- */

TEST_OF(ten_different_messages_in_a_row_say_that_the_command_is_broken,
    struct house *h)
{
	struct policy *p = &h->policy;
	char id[3] = "m0";
	int i;

	for (i = 0; i < 9; i++) {
		id[1] = (char)('0' + i);
		assert_false(policy_ran(p, id, true));
		assert_false(policy_ran(p, "m0", true));
	}
	assert_false(policy_is_broken(p));
	assert_true(policy_ran(p, "last", true));
	assert_false(policy_ran(p, "more", true));
	assert_true(policy_is_broken(p));
	assert_between(policy_rest_s(p, 100), 15, 30);
	assert_false(policy_ran(p, "more", false));
	assert_false(policy_is_broken(p));
	assert_false(policy_ran(p, "m0", true));
}

TEST_OF(rests_are_within_their_bounds, struct house *h)
{
	static const struct {
		int failures;
		double low, high;
	} cases[] = {{0, 2, 2}, {1, 2, 3}, {2, 2.25, 4.5}, {3, 3.375, 6.75},
	    {4, 5, 10}, {1000000, 5, 10}};
	double s;
	size_t i, n;

	h->opt.rest_min_ms = 2000;
	h->opt.rest_max_ms = 10000;
	for (i = 0; i < COUNT(cases); i++)
		for (n = 0; n < 100; n++) {
			s = policy_rest_s(&h->policy, cases[i].failures);
			if (s < cases[i].low || s > cases[i].high)
				fail_msg("%d: %g s", cases[i].failures, s);
		}
}
