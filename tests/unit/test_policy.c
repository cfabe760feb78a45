/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * When messages are started and the consumer stops: a policy, whose facts are taken after
 * each step.
 */
#include "mq-consume/policy.c"
#include "queue/consumer.h"

#include "hand.h"

struct house {
	struct fixture f;
	sigset_t ignored;
	struct policy *policy;
	struct message *started; /* the last one */
	int wakes;
};

/* --- the engine --- */

static const char *const levels[] = {"not", "fetching", "soon", "now"};

/* Writes down what the policy has told. */
static void
take_facts(struct house *h)
{
	struct fact f;

	while (fact_take(h->f.facts, &f)) {
		if (f.kind == FACT_WAKE)
			h->wakes++;
		else if (f.kind == FACT_STOP)
			record("%sstop:%s", f.yes ? "asked " : "",
			    levels[policy_level(h->policy)]);
		else if (f.kind == FACT_GIVE_UP)
			record("give-up");
		else if (f.kind == FACT_SIGNAL)
			record("%s%s", f.status == SIGTERM ? "TERM" : "KILL",
			    f.yes ? "-after-TERM" : "");
		else if (f.kind == FACT_REOPEN_LOGS)
			record("logs");
		else if (f.kind == FACT_SUSPEND)
			record("suspend");
		else if (f.kind == FACT_IDLE)
			record("idle");
	}
}

/* No other loop may have these signals until then. */
static void
stop_watchers(struct house *h)
{
	struct policy *p = h->policy;
	size_t i;

	for (i = 0; i < COUNT(p->signals); i++)
		ev_signal_stop(h->f.loop, &p->signals[i]);
	mq_timer_stop(&p->rate_timer);
	mq_timer_stop(&p->grace_timer);
	mq_timer_stop(&p->idle_timer);
}

static void
make_policy(struct house *h)
{
	h->policy = policy_new(
	    h->f.loop, &h->f.opt, h->f.hand, h->f.facts, &h->ignored);
}

static void
free_policy(struct house *h)
{
	stop_watchers(h);
	json_decref(h->policy->owed);
	json_decref(h->policy->rejected_ids);
	free(h->policy);
}

/* Begins anew, with the options as they are now. */
static void
begin(struct house *h)
{
	free_policy(h);
	make_policy(h);
}

/* The end, after which another policy begins. */
static int
leave(struct house *h, int failed)
{
	int status;

	stop_watchers(h);
	status = policy_exit(h->policy, failed);
	make_policy(h);
	return status;
}

static void
get_signal(struct house *h, int sig)
{
	ev_feed_signal_event(h->f.loop, sig);
	ev_run(h->f.loop, EVRUN_NOWAIT);
}

static void
run_out(struct mq_timer *timer)
{
	mq_timer_stop(timer);
	timer->fire(timer->arg);
}

static void *
setup(void)
{
	struct house *h = mq_xcalloc(1, sizeof(*h));

	/* A test that waits for ever fails. */
	alarm(20);
	fixture_init(&h->f);
	h->f.opt.grace_ms = 30000;
	h->f.opt.idle_ms = -1;
	sigemptyset(&h->ignored);
	make_policy(h);
	return h;
}

static void
teardown(void *arg)
{
	struct house *h = arg;

	free_policy(h);
	fixture_free(&h->f);
	free(h);
}

/* --- stopping --------------------------------------------------------------- */

static const struct row stop_rows[] = {
    {"levels only rise",
	{"stop fetching -> stop:fetching", "stop fetching",
	    "stop soon -> stop:soon", "stop fetching", "level -> 2",
	    "stop now -> KILL stop:now", "stop soon", "level -> 3"}},
    {"the first status counts",
	{"stop fetching -> stop:fetching", "stop soon 75 -> stop:soon",
	    "stop now 70 -> KILL stop:now", "exit -> 75"}},
    {"a final error counts more",
	{"stop soon 75 -> stop:soon", "exit 69 -> 69"}},
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
	    "killed -> no", "grace -> 5", "grace-over -> KILL-after-TERM",
	    "killed -> yes", "grace -> 5", "grace-over -> give-up"}},
    {"commands that were signalled have a second",
	{"just-signalled -> no", "stop now -> KILL stop:now",
	    "just-signalled -> yes", "later", "just-signalled -> no"}},
    {"a terminal may stop the consumer", {"TSTP -> suspend", "level -> 0"}},
    {"idle is told again until the end",
	{"idle-in -> -1", "idle 5", "idle-in -> 5", "idle-over -> idle",
	    "idle-in -> 5", "stop soon -> stop:soon", "idle-over -> idle",
	    "idle-in -> -1"}},
    {"with an end of its own what was rejected counts",
	{"drain", "reject m1", "again m2", "exit -> 1"}},
    {"with an end of its own what is owed counts",
	{"drain", "again m1", "front m1", "exit -> 75", "again m1", "ack m1",
	    "exit -> 0"}},
    {"what crashed with another consumer does not count",
	{"drain", "crash m1", "exit -> 0"}},
    {"without an end of its own no message counts",
	{"reject m1", "again m2", "exit -> 0"}},
    {"rejected messages of different ids in a row halt",
	{"halt 2", "ran-rejected m1", "ran-rejected m1", "ran-again m2",
	    "ran-done m3", "ran-rejected m1", "ran-again m1", "ran-purged m4",
	    "ran-rejected m2 -> stop:soon", "grace -> -1", "ran-rejected m3",
	    "exit -> 1"}},
    {"after a halt a signal begins the grace time",
	{"halt 1", "ran-rejected m1 -> stop:soon", "grace -> -1",
	    "TERM -> asked stop:soon", "grace -> 30", "TERM", "exit -> 1"}},
    {"after a halt and the last run workers have the grace time",
	{"halt 1", "ran-rejected m1 -> stop:soon", "stop soon -> stop:soon",
	    "grace -> 30", "exit -> 1"}},
    {"what is killed at once is given up next",
	{"stop now -> KILL stop:now", "killed -> yes", "grace -> 5",
	    "grace-over -> give-up"}},
};

/* --- starting --------------------------------------------------------------- */

/* room WANTED HELD HELD-OF-THE-QUEUE */
static const struct row start_rows[] = {
    {"the limit",
	{"limit 5", "room 3 -> 3", "room 9 -> 5", "start", "start",
	    "room 9 1 -> 2", "room 3 1 -> 2", "reached 2 -> no",
	    "reached 3 -> yes", "room 9 4 -> -1", "hold", "reached 3 -> no",
	    "room 9 3 -> 1"}},
    {"without a limit none is reached", {"reached 9 -> no", "room 9 9 -> 9"}},
    {"the rate",
	{"rate 3", "room 9 -> 3", "room 9 2 -> 1", "room 2 -> 2", "start",
	    "start", "may-start -> yes", "token -> -1", "start",
	    "may-start -> no", "room 9 -> 0", "token -> 3600", "wakes -> 0"}},
    {"a token wakes the engine",
	{"rate 1", "start", "token-over", "wakes -> 0", "token -> 3600",
	    "token-is-there", "token-over", "wakes -> 1", "token -> -1"}},
    {"a batch is claimed whole",
	{"rate 1", "batch 8", "room 99 -> 8", "room 99 3 3 -> 5",
	    "room 99 3 -> 8", "start", "room 99 3 3 -> 0"}},
    {"prefetch may wait for the rate",
	{"prefetch 4", "rate 1", "room 5 -> 5", "prefetch -1", "room 5 -> 1",
	    "prefetch 0", "room 5 -> 1"}},
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
record_timer(struct house *h, struct mq_timer *timer)
{
	double left = ev_timer_remaining(h->f.loop, &timer->ev);

	record("%d", mq_timer_runs(timer) ? (int)(left + 0.999) : -1);
}

/* So many held messages of a queue. */
static void
hold(struct house *h, int queue, int n)
{
	while (hand_count(h->f.hand, queue, MESSAGE_UNSTARTED) < n)
		(void)hand_add(h->f.hand, queue, mq_xstrdup("m"), 1);
	while (hand_count(h->f.hand, queue, MESSAGE_UNSTARTED) > n)
		hand_forget(h->f.hand, hand_newest(h->f.hand, queue));
}

static void
start_one(struct house *h)
{
	h->started = hand_add(h->f.hand, 2, mq_xstrdup("c"), 1);
	hand_start(h->f.hand, h->started);
	policy_start(h->policy);
}

/* The last one was not started after all. */
static void
hold_again(struct house *h)
{
	hand_put_back(h->f.hand, h->started);
	hand_forget(h->f.hand, h->started);
}

static long
room(struct house *h, const int n[3])
{
	hold(h, 0, n[2]);
	hold(h, 1, n[1] - n[2]);
	return policy_room(h->policy, 0, n[0]);
}

static void
settle(struct house *h, const char *id, enum mq_outcome outcome, bool crashed)
{
	struct message m = {.outcome = outcome, .crashed = crashed};

	strlcpy(m.id, id, sizeof(m.id));
	policy_settled(h->policy, &m);
}

static void
end_run(struct house *h, const char *id, enum mq_outcome outcome, bool stopped)
{
	struct message m = {.outcome = outcome, .stopped = stopped};

	strlcpy(m.id, id, sizeof(m.id));
	policy_ran(h->policy, &m);
}

static bool
ask(struct house *h, const char *word, const char *about)
{
	struct policy *p = h->policy;
	int n[3] = {0};

	(void)sscanf(about, "%d %d %d", &n[0], &n[1], &n[2]);
	WORD("level", record("%d", (int)policy_level(p)));
	WORD("exit", record("%d", leave(h, n[0])));
	WORD("killed", answers(policy_has_killed(p)));
	WORD("just-signalled", answers(policy_has_just_signalled(p)));
	WORD("grace", record_timer(h, &p->grace_timer));
	WORD("token", record_timer(h, &p->rate_timer));
	WORD("idle-in", record_timer(h, &p->idle_timer));
	WORD("room", record("%ld", room(h, n)));
	WORD("reached", answers(policy_limit_reached(p, n[0])));
	WORD("may-start", answers(policy_may_start(p)));
	WORD("wakes", record("%d", h->wakes));
	WORD("careful", answers(policy_is_careful(p, false)));
	WORD("alone", answers(policy_is_careful(p, true)));
	return false;
}

static bool
set_option(struct house *h, const char *word, const char *about)
{
	static char logs[] = "/logs";
	struct options *opt = &h->f.opt;

	WORD("logs", opt->log_dir = logs);
	WORD("no-logs", opt->log_dir = NULL);
	WORD("drain", opt->drain = true);
	WORD("prefetch", opt->prefetch = atoi(about));
	WORD("batch", opt->batch = atoi(about));
	WORD("halt", opt->halt = atoi(about));
	WORD("limit", opt->limit = atoi(about), begin(h));
	WORD("idle", opt->idle_ms = atoi(about) * 1000, begin(h));
	WORD("rate", opt->rate = (struct mq_rate){1.0 / 3600, atoi(about)},
	    begin(h));
	WORD("nohup", sigaddset(&h->ignored, SIGHUP), begin(h));
	return false;
}

static void
stop_at(struct house *h, const char *about)
{
	enum stop_level level = STOP_FETCHING;
	const char *status = strchr(about, ' ');

	while (strncmp(about, levels[level], strlen(levels[level])) != 0)
		level++;
	policy_stop(h->policy, level, status != NULL ? atoi(status) : 0, 0);
}

static void
pass_a_minute(struct policy *p)
{
	p->careful_until[0] -= 60;
	p->careful_until[1] -= 60;
	p->signalled -= 60;
}

static bool
happen(struct house *h, const char *word, const char *about)
{
	struct policy *p = h->policy;

	WORD("stop", stop_at(h, about));
	WORD("USR1", get_signal(h, SIGUSR1));
	WORD("INT", get_signal(h, SIGINT));
	WORD("TERM", get_signal(h, SIGTERM));
	WORD("HUP", get_signal(h, SIGHUP));
	WORD("TSTP", get_signal(h, SIGTSTP));
	WORD("grace-over", run_out(&p->grace_timer));
	WORD("token-over", run_out(&p->rate_timer));
	WORD("token-is-there", p->bucket.missing = 0);
	WORD("idle-over", run_out(&p->idle_timer));
	WORD("start", start_one(h));
	WORD("hold", hold_again(h));
	WORD("be-careful", policy_be_careful(p, false));
	WORD("be-alone", policy_be_careful(p, true));
	WORD("later", pass_a_minute(p));
	WORD("ack", settle(h, about, MQ_OUTCOME_ACK, false));
	WORD("front", settle(h, about, MQ_OUTCOME_FRONT, false));
	WORD("again", settle(h, about, MQ_OUTCOME_AGAIN, false));
	WORD("reject", settle(h, about, MQ_OUTCOME_REJECT, false));
	WORD("ran-done", end_run(h, about, MQ_OUTCOME_ACK, false));
	WORD("ran-purged", end_run(h, about, MQ_OUTCOME_ACK, true));
	WORD("ran-again", end_run(h, about, MQ_OUTCOME_AGAIN, false));
	WORD("ran-rejected", end_run(h, about, MQ_OUTCOME_REJECT, false));
	WORD("crash", settle(h, about, MQ_OUTCOME_REJECT, true));
	return false;
}

static bool
take(void *arg, const char *word, const char *about)
{
	struct house *h = arg;
	bool known = ask(h, word, about) || set_option(h, word, about) ||
	    happen(h, word, about);

	take_facts(h);
	return known;
}

TEST_ROWS(stop)
TEST_ROWS(start)
TEST_ROWS(caution)
