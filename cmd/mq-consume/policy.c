/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
#include "policy.h"

#include <fcntl.h>

#include "base/timer.h"

/* Seconds of caution after the start of a message that has failed before. */
#define CAREFUL_S 60.0
/* Seconds within which a command ends that obeys a signal. */
#define ENDING_S 1.0

struct policy {
	const struct options *opt;
	const struct hand *hand;
	struct facts *facts;

	enum stop_level stop;
	bool killed;	  /* all commands have been sent KILL */
	double signalled; /* steady time of the last signal to all commands */

	struct mq_bucket bucket;
	double careful_until[2]; /* steady time; [1]: alone */
	bool hup_ends;		 /* HUP was not ignored at the start */
	bool had_terminal;	 /* a controlling terminal, at the start */
	int exit_status, exit_signal;
	bool rejected; /* some message was, and not because consumers died */
	json_t *owed;  /* ids of messages sent back and not ended since */
	json_t *rejected_ids; /* --halt: rejected since a run was done */
	bool halted;	      /* by --halt: no grace time runs */
	ev_signal signals[5];
	struct mq_timer rate_timer, grace_timer, idle_timer;
};

/* --- the rate --------------------------------------------------------------- */

static double
now_s(void)
{
	return mq_clock_s(CLOCK_MONOTONIC);
}

static void
await_token(struct policy *p)
{
	double wait = mq_bucket_wait(&p->bucket, &p->opt->rate, now_s());

	if (wait != 0 && !mq_timer_runs(&p->rate_timer))
		mq_timer_start(&p->rate_timer, wait, 0);
}

static void
on_token(void *arg)
{
	struct policy *p = arg;

	/* A timer counts from the beginning of the loop's turn, so it may be early. */
	await_token(p);
	if (!mq_timer_runs(&p->rate_timer))
		tell(p, FACT_WAKE);
}

bool
policy_may_start(const struct policy *p)
{
	return p->opt->rate.per_s == 0 ||
	    mq_bucket_wait(&p->bucket, &p->opt->rate, now_s()) == 0;
}

void
policy_start(struct policy *p)
{
	if (p->opt->rate.per_s == 0)
		return;
	mq_bucket_take(&p->bucket, &p->opt->rate, now_s());
	await_token(p);
}

bool
policy_limit_reached(const struct policy *p, long more)
{
	return p->opt->limit > 0 &&
	    hand_started(p->hand) + more >= p->opt->limit;
}

/* How many messages the rate allows to claim.  With --batch, a batch that may start is claimed
 * whole; then no message may start until the rate has made up for the batch. */
static long
rate_room(const struct policy *p, int queue)
{
	const struct options *opt = p->opt;

	if (opt->batch == 0)
		return (long)mq_bucket_tokens(&p->bucket, &opt->rate, now_s()) -
		    hand_count(p->hand, -1, MESSAGE_UNSTARTED);
	return policy_may_start(p) ?
	    opt->batch - hand_count(p->hand, queue, MESSAGE_UNSTARTED) :
	    0;
}

long
policy_room(const struct policy *p, int queue, long room)
{
	const struct options *opt = p->opt;

	if (opt->rate.per_s > 0 && opt->prefetch <= 0)
		room = MIN(room, rate_room(p, queue));
	if (opt->limit > 0)
		room = MIN(room,
		    opt->limit - hand_started(p->hand) -
			hand_count(p->hand, -1, MESSAGE_UNSTARTED));
	return room;
}

/* --- caution ---------------------------------------------------------------- */

void
policy_be_careful(struct policy *p, bool alone)
{
	p->careful_until[alone] = mq_clock_steady_s() + CAREFUL_S;
}

bool
policy_is_careful(const struct policy *p, bool alone)
{
	return mq_clock_steady_s() < p->careful_until[alone];
}

/* --- ending ----------------------------------------------------------------- */

static void
signal_all(struct policy *p, int sig, bool again)
{
	p->signalled = mq_clock_steady_s();
	mq_timer_start(&p->grace_timer, KILL_AFTER, 0);
	tell(p, FACT_SIGNAL, .status = sig, .yes = again);
}

enum stop_level
policy_level(const struct policy *p)
{
	return p->stop;
}

bool
policy_has_killed(const struct policy *p)
{
	return p->killed;
}

bool
policy_has_just_signalled(const struct policy *p)
{
	return mq_clock_steady_s() - p->signalled < ENDING_S;
}

void
policy_stop(struct policy *p, enum stop_level level, int status, int sig)
{
	/* After --halt, the grace time begins with a signal, or after the last run. */
	if (p->halted)
		p->stop = STOP_NOT;
	p->halted = false;
	if (level <= p->stop)
		return;
	p->stop = level;
	if (p->exit_status == 0 && p->exit_signal == 0) {
		p->exit_status = status;
		p->exit_signal = sig;
	}
	if (level == STOP_SOON)
		mq_timer_start(
		    &p->grace_timer, (double)p->opt->grace_ms / 1000, 0);
	p->killed = level == STOP_NOW;
	if (p->killed)
		signal_all(p, SIGKILL, false);
	tell(p, FACT_STOP, .yes = sig != 0);
}

void
policy_settled(struct policy *p, const struct message *m)
{
	if (!options_have_end(p->opt) || m->outcome == MQ_OUTCOME_FRONT)
		return;
	if (m->outcome == MQ_OUTCOME_REJECT && !m->crashed)
		p->rejected = true;
	if (m->outcome == MQ_OUTCOME_AGAIN)
		(void)json_object_set_new_nocheck(p->owed, m->id, json_null());
	else if (json_object_size(p->owed) > 0)
		(void)json_object_del(p->owed, m->id);
}

/* Running commands may take as long as they need. */
static void
halt(struct policy *p)
{
	mq_say("--halt %ld: %ld message%s rejected in a row; stopping after "
	       "the running ones",
	    p->opt->halt, p->opt->halt, p->opt->halt == 1 ? "" : "s");
	policy_stop(p, STOP_SOON, MQ_EXIT_NO, 0);
	mq_timer_stop(&p->grace_timer);
	p->halted = true;
}

void
policy_ran(struct policy *p, const struct message *m)
{
	if (p->opt->halt == 0 || m->stopped || p->stop >= STOP_SOON)
		return;
	if (m->outcome == MQ_OUTCOME_REJECT)
		(void)json_object_set_new_nocheck(
		    p->rejected_ids, m->id, json_null());
	else if (m->outcome != MQ_OUTCOME_AGAIN)
		(void)json_object_clear(p->rejected_ids);
	if ((long)json_object_size(p->rejected_ids) >= p->opt->halt)
		halt(p);
}

/* Each grace time ends with the next step: TERM, KILL, give up. */
static void
on_grace(void *arg)
{
	struct policy *p = arg;

	if (p->stop == STOP_SOON) {
		p->stop = STOP_NOW;
		signal_all(p, SIGTERM, false);
		tell(p, FACT_STOP);
	} else if (p->killed) {
		tell(p, FACT_GIVE_UP);
	} else {
		p->killed = true;
		signal_all(p, SIGKILL, true);
	}
}

static bool
has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd == -1)
		return false;
	close(fd);
	return true;
}

/* HUP opens the log files anew; without log files, or if the terminal was closed, HUP acts as
 * TERM. */
static void
on_signal(struct ev_loop *loop, ev_signal *w, int events)
{
	struct policy *p = w->data;
	bool logs = p->opt->log_dir != NULL || p->opt->joblog != NULL;
	int sig = w->signum;

	(void)loop;
	(void)events;
	if (sig == SIGUSR1) {
		policy_stop(p, STOP_FETCHING, 0, 0);
	} else if (sig == SIGTSTP) {
		tell(p, FACT_SUSPEND);
	} else if (sig == SIGHUP &&
	    (!p->hup_ends || (logs && !(p->had_terminal && !has_terminal())))) {
		tell(p, FACT_REOPEN_LOGS);
	} else if (sig == SIGINT && p->stop == STOP_SOON) {
		policy_stop(p, STOP_NOW, 0, sig);
	} else {
		policy_stop(p, STOP_SOON, 0, sig);
	}
}

void
policy_suspend(struct policy *p)
{
	sigset_t set, old;

	(void)p;
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, &old);
	raise(SIGTSTP);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static void
on_idle(void *arg)
{
	struct policy *p = arg;

	tell(p, FACT_IDLE);
	if (p->stop < STOP_SOON)
		policy_active(p);
}

void
policy_active(struct policy *p)
{
	if (p->opt->idle_ms >= 0)
		mq_timer_start(
		    &p->idle_timer, (double)MAX(p->opt->idle_ms, 1) / 1000, 0);
}

/* --- beginning and end ------------------------------------------------------ */

struct policy *
policy_new(struct ev_loop *loop, const struct options *opt,
    const struct hand *hand, struct facts *facts, const sigset_t *ignored)
{
	static const int list[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGTSTP};
	struct policy *p = mq_xcalloc(1, sizeof(*p));
	size_t i;

	*p = (struct policy){.opt = opt, .hand = hand, .facts = facts};
	/* Under nohup(1), HUP is no reason to end. */
	p->hup_ends = sigismember(ignored, SIGHUP) == 0;
	p->had_terminal = has_terminal();
	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		ev_signal_init(&p->signals[i], on_signal, list[i]);
		p->signals[i].data = p;
		ev_signal_start(loop, &p->signals[i]);
	}
	mq_timer_init(&p->rate_timer, loop, on_token, p);
	mq_timer_init(&p->grace_timer, loop, on_grace, p);
	mq_timer_init(&p->idle_timer, loop, on_idle, p);
	p->owed = json_object();
	p->rejected_ids = json_object();
	policy_active(p);
	return p;
}

int
policy_exit(struct policy *p, int failed)
{
	bool owes = json_object_size(p->owed) > 0;
	int status = failed != 0 ? failed : p->exit_status;
	int sig = status == 0 ? p->exit_signal : 0;

	if (status == 0)
		status = p->rejected ? MQ_EXIT_NO :
		    owes	     ? MQ_EXIT_AGAIN :
				       MQ_EXIT_OK;
	json_decref(p->owed);
	json_decref(p->rejected_ids);
	free(p);
	if (sig != 0)
		mq_end_by(sig);
	return status;
}
