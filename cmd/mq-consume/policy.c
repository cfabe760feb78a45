#include "policy.h"

#include "process/process.h"

/* Each failure in a row makes the rest longer by this factor. */
#define LONGER 1.5
/* Caution after a message that has failed before. */
#define CAREFUL_S 60.0
/* Rests of a broken command without --rest, in seconds; as of a stream's worker. */
#define REST_MIN 0.1
#define REST_MAX 30.0

/* --- the rate --------------------------------------------------------------- */

static double
now_s(void)
{
	return mq_clock_s(CLOCK_MONOTONIC);
}

/* A timer counts from the beginning of the loop's turn, so it may be early. */
static void
await_token(struct policy *p)
{
	double wait = mq_bucket_wait(&p->bucket, &p->opt->rate, now_s());

	if (wait != 0 && !ev_is_active(&p->rate_timer))
		mq_timer_start(p->loop, &p->rate_timer, wait);
}

static void
on_token(struct ev_loop *loop, ev_timer *w, int events)
{
	struct policy *p = w->data;

	(void)loop;
	(void)events;
	await_token(p);
	if (!ev_is_active(w))
		tell(p, FACT_WAKE);
}

bool
policy_may_start(const struct policy *p)
{
	return p->opt->rate.per_s == 0 ||
	    mq_bucket_wait(&p->bucket, &p->opt->rate, now_s()) == 0;
}

void
policy_started(struct policy *p)
{
	p->started++;
	if (p->opt->rate.per_s == 0)
		return;
	mq_bucket_take(&p->bucket, &p->opt->rate, now_s());
	await_token(p);
}

void
policy_unstarted(struct policy *p)
{
	p->started--;
}

bool
policy_limit_reached(const struct policy *p, long held)
{
	return p->opt->limit > 0 && p->started + held >= p->opt->limit;
}

long
policy_room(const struct policy *p, long room, long held, int gathered)
{
	const struct options *opt = p->opt;
	long allowed;

	if (opt->rate.per_s > 0 &&
	    (opt->command == NULL || opt->prefetch <= 0)) {
		allowed =
		    (long)mq_bucket_tokens(&p->bucket, &opt->rate, now_s()) -
		    held;
		/* A batch starts whole; the next one waits for all its tokens. */
		if (opt->batch > 0)
			allowed =
			    policy_may_start(p) ? opt->batch - gathered : 0;
		room = MIN(room, allowed);
	}
	return opt->limit > 0 ? MIN(room, opt->limit - p->started - held) :
				room;
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

bool
policy_ran(struct policy *p, const char *id, bool broken)
{
	int i;

	if (!broken)
		p->broken = 0;
	if (!broken || policy_is_broken(p))
		return false;
	for (i = 0; i < p->broken; i++)
		if (strcmp(p->broken_ids[i], id) == 0)
			return false;
	strlcpy(p->broken_ids[p->broken++], id, sizeof(p->broken_ids[0]));
	return policy_is_broken(p);
}

bool
policy_is_broken(const struct policy *p)
{
	return p->broken == POLICY_BROKEN;
}

/* The rest is random: half to all of the top, never outside MIN..MAX. */
double
policy_rest_s(const struct policy *p, int failures)
{
	bool given = p->opt->rest_max_ms > 0;
	double min = given ? (double)p->opt->rest_min_ms / 1000 : REST_MIN;
	double max = given ? (double)p->opt->rest_max_ms / 1000 : REST_MAX;
	double top = min, low;

	for (; failures > 0 && top < max; failures--)
		top *= LONGER;
	top = MIN(top, max);
	low = MAX(top / 2, min);
	return low +
	    (top - low) * ((double)arc4random() / ((double)UINT32_MAX + 1));
}

/* --- ending ----------------------------------------------------------------- */

static void
signal_all(struct policy *p, int sig)
{
	p->signalled = mq_clock_steady_s();
	mq_timer_start(p->loop, &p->grace_timer, KILL_AFTER);
	tell(p, FACT_SIGNAL, .status = sig);
}

void
policy_stop(struct policy *p, enum stop_level level, int status, int sig)
{
	if (level <= p->stop)
		return;
	p->stop = level;
	if (p->exit_status == 0 && p->exit_signal == 0) {
		p->exit_status = status;
		p->exit_signal = sig;
	}
	if (level == STOP_SOON)
		mq_timer_start(
		    p->loop, &p->grace_timer, (double)p->opt->grace_ms / 1000);
	p->killed = level == STOP_NOW;
	if (p->killed)
		signal_all(p, SIGKILL);
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

int
policy_exit(struct policy *p, int failed)
{
	bool owes = json_object_size(p->owed) > 0;

	json_decref(p->owed);
	if (failed != 0 || p->exit_status != 0)
		return failed != 0 ? failed : p->exit_status;
	if (p->exit_signal != 0)
		mq_end_by(p->exit_signal);
	return p->rejected ? MQ_EXIT_NO : owes ? MQ_EXIT_AGAIN : MQ_EXIT_OK;
}

/* Each grace time ends with the next step: TERM, KILL, give up. */
static void
on_grace(struct ev_loop *loop, ev_timer *w, int events)
{
	struct policy *p = w->data;

	(void)loop;
	(void)events;
	if (p->stop == STOP_SOON) {
		p->stop = STOP_NOW;
		signal_all(p, SIGTERM);
		tell(p, FACT_STOP);
	} else if (p->killed) {
		tell(p, FACT_GIVE_UP);
	} else {
		signal_all(p, SIGKILL);
		p->killed = true;
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

/* HUP opens the log files anew; without log files, or if our terminal has been closed, HUP
 * is as TERM. */
static void
on_signal(struct ev_loop *loop, ev_signal *w, int events)
{
	struct policy *p = w->data;
	bool logs = p->opt->log_dir != NULL || p->opt->joblog != NULL;
	int sig = w->signum;
	sigset_t set, old;

	(void)loop;
	(void)events;
	if (sig == SIGUSR1) {
		policy_stop(p, STOP_FETCHING, 0, 0);
	} else if (sig == SIGTSTP) {
		/* As if it had not been handled: the shell sees a stopped job, and
		 * goes on with it. */
		tell(p, FACT_SIGNAL, .status = SIGSTOP);
		sigemptyset(&set);
		sigaddset(&set, SIGTSTP);
		sigprocmask(SIG_UNBLOCK, &set, &old);
		raise(SIGTSTP);
		sigprocmask(SIG_SETMASK, &old, NULL);
		tell(p, FACT_SIGNAL, .status = SIGCONT);
	} else if (sig == SIGHUP &&
	    (!p->hup_ends || (logs && !(p->had_terminal && !has_terminal())))) {
		tell(p, FACT_REOPEN_LOGS);
	} else if (sig == SIGINT && p->stop == STOP_SOON) {
		policy_stop(p, STOP_NOW, 0, sig);
	} else {
		policy_stop(p, STOP_SOON, 0, sig);
	}
}

static void
on_idle(struct ev_loop *loop, ev_timer *w, int events)
{
	struct policy *p = w->data;

	(void)loop;
	(void)events;
	tell(p, FACT_IDLE);
	if (p->stop < STOP_SOON)
		policy_active(p);
}

void
policy_active(struct policy *p)
{
	if (p->opt->idle_ms >= 0)
		mq_timer_start(p->loop, &p->idle_timer,
		    (double)MAX(p->opt->idle_ms, 1) / 1000);
}

void
policy_init(struct policy *p, const sigset_t *ignored)
{
	static const int list[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGTSTP};
	size_t i;

	/* nohup(1) ignores HUP: then HUP is no reason to end. */
	p->hup_ends = sigismember(ignored, SIGHUP) == 0;
	p->had_terminal = has_terminal();
	for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		ev_signal_init(&p->signals[i], on_signal, list[i]);
		p->signals[i].data = p;
		ev_signal_start(p->loop, &p->signals[i]);
	}
	ev_timer_init(&p->rate_timer, on_token, 0, 0);
	ev_timer_init(&p->grace_timer, on_grace, 0, 0);
	ev_timer_init(&p->idle_timer, on_idle, 0, 0);
	p->rate_timer.data = p->grace_timer.data = p->idle_timer.data = p;
	p->owed = json_object();
	policy_active(p);
}
