/*
 * Signals, and knowing when to end.
 *
 *	USR1		stop fetching; run what has been claimed
 *	TERM, INT	also give back what has not been started, let the scripts
 *			finish within the grace time, then end
 *	INT again	do not wait for them
 *	HUP		open the log files anew; without any, or if our terminal
 *			has been closed, the same as TERM
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "consume.h"
#include "executor.h"

/* Between the TERM and the KILL of the scripts, and for the last settlements. */
#define KILL_AFTER 5.0

static bool
nothing_in_hand(const struct consumer *c)
{
	return TAILQ_EMPTY(&c->messages) && !c->claiming &&
	    !c->executor->owes(c);
}

/* First the workers that stay are to end, as well as they can. */
static void
leave(struct consumer *c)
{
	if (c->executor->stays && c->busy > 0) {
		stop(c, STOP_SOON, 0, 0);
		return;
	}
	c->leaving = true;
	link_leave(c);
}

void
stop_check(struct consumer *c)
{
	const struct options *opt = c->opt;

	if (c->leaving || !nothing_in_hand(c))
		return;
	/* Nobody takes our name off the server but we, once we are there. */
	if (c->link == LINK_OPENING && c->lease_sent > 0 && !c->killed)
		return;
	if (c->stop >= STOP_SOON ||
	    (opt->limit > 0 && c->started >= opt->limit)) {
		leave(c);
	} else if (opt->drain && (claim_nothing(c) || pace_holds_back(c)) &&
	    c->link == LINK_UP && mq_clock_steady_s() >= c->next_drained) {
		aside_drained(c);
	}
}

static void
set_grace_timer(struct consumer *c, double after)
{
	ev_timer_stop(c->loop, &c->grace_timer);
	ev_timer_set(&c->grace_timer, after, 0);
	ev_timer_start(c->loop, &c->grace_timer);
}

static void
say_left(const struct consumer *c)
{
	int left = c->held + c->running + c->settling;

	if (left == 0)
		mq_say("%s could not be removed; it stays listed until it is "
		       "cleaned up",
		    c->connection);
	else
		mq_say("%d message%s could not be settled; %s unacked at %s "
		       "until it is cleaned up",
		    left, left == 1 ? "" : "s",
		    left == 1 ? "it stays" : "they stay", c->connection);
}

/* The grace time is over: TERM, then KILL, then whatever is left is left. */
static void
on_grace(struct ev_loop *loop, ev_timer *w, int events)
{
	struct consumer *c = w->data;

	(void)loop;
	(void)events;
	if (c->stop == STOP_SOON) {
		c->stop = STOP_NOW;
		slot_kill(c, SIGTERM);
		set_grace_timer(c, KILL_AFTER);
		engine_mark(c);
	} else if (c->busy > 0 && !c->killed) {
		c->killed = true;
		slot_kill(c, SIGKILL);
		set_grace_timer(c, KILL_AFTER);
	} else if (!c->leaving) {
		say_left(c);
		c->leaving = true;
		ev_break(c->loop, EVBREAK_ALL);
	}
}

void
stop_give_back(struct consumer *c)
{
	/* A claim under way brings younger ones, which must go back first;
	 * those of scripts that are killed go back together, in order. */
	if (c->claiming || (c->stop == STOP_NOW && c->busy > 0) ||
	    c->link != LINK_UP || !lease_held(c))
		return;
	c->executor->give_back(c);
}

void
stop(struct consumer *c, enum stop_level level, int status, int sig)
{
	if (level <= c->stop)
		return;
	c->stop = level;
	if (c->exit_status == 0 && c->exit_signal == 0) {
		c->exit_status = status;
		c->exit_signal = sig;
	}
	if (level == STOP_SOON) {
		c->executor->stop(c);
		set_grace_timer(c, (double)c->opt->grace_ms / 1000);
	} else if (level == STOP_NOW) {
		c->killed = true;
		slot_kill(c, SIGKILL);
		set_grace_timer(c, KILL_AFTER);
	}
	engine_mark(c);
}

static void
on_end_signal(struct ev_loop *loop, ev_signal *w, int events)
{
	struct consumer *c = w->data;

	(void)loop;
	(void)events;
	if (c->stop >= STOP_SOON && w->signum == SIGINT) {
		stop(c, STOP_NOW, 0, w->signum);
	} else if (c->stop < STOP_SOON) {
		if (c->running > 0 && c->executor->runs && !c->opt->quiet)
			mq_say("stopping; waiting for %d running %s",
			    c->running,
			    c->running == 1 ? "message" : "messages");
		stop(c, STOP_SOON, 0, w->signum);
	}
}

static void
on_quiet_signal(struct ev_loop *loop, ev_signal *w, int events)
{
	(void)loop;
	(void)events;
	stop(w->data, STOP_FETCHING, 0, 0);
}

/* Whether there is a controlling one. */
static bool
has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd == -1)
		return false;
	close(fd);
	return true;
}

static void
on_hangup(struct ev_loop *loop, ev_signal *w, int events)
{
	struct consumer *c = w->data;
	/* By nohup(1), say: HUP is no reason to end. */
	bool ignored = sigismember(&c->setup.reset, SIGHUP) == 1;

	if (!ignored &&
	    (c->outputs.logs == NULL || (c->had_terminal && !has_terminal())))
		on_end_signal(loop, w, events);
	else
		command_open_logs(c);
}

static void
on_idle(struct ev_loop *loop, ev_timer *w, int events)
{
	struct consumer *c = w->data;

	(void)events;
	/* Only when the last look found nothing is there nothing to do, not
	 * even with the dead: a cron job may be over before the first tick. */
	if (!nothing_in_hand(c) || !claim_nothing(c) || c->link != LINK_UP ||
	    !aside_cleaned(c)) {
		ev_timer_again(loop, w);
		return;
	}
	ev_timer_stop(loop, w);
	stop(c, STOP_SOON, 0, 0);
}

void
stop_active(struct consumer *c)
{
	c->next_drained = 0;
	if (c->opt->idle_ms >= 0)
		ev_timer_again(c->loop, &c->idle_timer);
}

void
stop_init(struct consumer *c)
{
	static const struct {
		int sig;
		void (*fn)(struct ev_loop *, ev_signal *, int);
	} table[] = {
	    {SIGTERM, on_end_signal},
	    {SIGINT, on_end_signal},
	    {SIGUSR1, on_quiet_signal},
	    {SIGHUP, on_hangup},
	};
	size_t i;

	c->had_terminal = has_terminal();
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ev_signal_init(&c->signals[i], table[i].fn, table[i].sig);
		c->signals[i].data = c;
		ev_signal_start(c->loop, &c->signals[i]);
	}
	ev_timer_init(&c->grace_timer, on_grace, 0, 0);
	ev_timer_init(&c->idle_timer, on_idle, 0,
	    c->opt->idle_ms > 0 ? (double)c->opt->idle_ms / 1000 : 0.001);
	c->grace_timer.data = c;
	c->idle_timer.data = c;
	stop_active(c);
}
