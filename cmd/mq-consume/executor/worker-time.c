#include "mq-consume/rules.h"
#include "parts.h"

#include <signal.h>

#include "base/clock.h"

/* Seconds from TERM to KILL; and from the end of a descriptor to that of the
 * worker. */
#define KILL_AFTER 5.0

bool
worker_is_leaving(const struct slot *s)
{
	const struct stream_worker *w = &s->worker;

	return w->terminated || w->verbs_closed || s->killed ||
	    w->protocol_error != NULL;
}

/* Whether the worker has no message left to judge. */
static bool
has_finished(const struct slot *s)
{
	const struct worker_input *input = &s->worker.input;
	const struct message *m = slot_message(s);

	return worker_input_ended(input) &&
	    (m == NULL ||
		(worker_input_is_cut(input) && !worker_input_read(input, m)));
}

/* In seconds; 0: no limit. */
static double
time_limit(const struct slot *s)
{
	const struct slots *ss = s->slots;
	const struct message *m = slot_message(s);
	double grace = (double)ss->opt->grace_ms / 1000;

	/* The grace time of the consumer is for all workers. */
	if (has_finished(s) && policy_level(ss->policy) >= STOP_SOON)
		return 0;
	if (has_finished(s))
		return worker_input_is_cut(&s->worker.input) ||
			grace < KILL_AFTER ?
		    KILL_AFTER :
		    grace;
	return m == NULL ?
	    0 :
	    (double)rules_of(ss->opt, m->queue)->timeout_ms / 1000;
}

static void
set_timer(struct slot *s, double after)
{
	ev_timer_stop(s->slots->loop, &s->timer);
	ev_timer_set(&s->timer, after, 0);
	if (after > 0)
		ev_timer_start(s->slots->loop, &s->timer);
}

void
worker_next(struct slot *s)
{
	s->started = mq_clock_s(CLOCK_MONOTONIC);
	s->started_ms = 0;
	if (s->pid != 0 && !worker_is_leaving(s))
		set_timer(s, time_limit(s));
}

void
worker_pause_time(struct slot *s)
{
	if (s->pid != 0 && !worker_is_leaving(s))
		set_timer(s, 0);
}

void
worker_last(struct slot *s)
{
	if (worker_input_is_last(&s->worker.input))
		return;
	worker_input_last(&s->worker.input);
	if (has_finished(s))
		worker_next(s);
}

void
worker_return_unread(struct slot *s)
{
	const struct message *m;

	while ((m = TAILQ_LAST(&s->hand, messages)) != NULL &&
	    worker_input_take_back(&s->worker.input, m))
		slot_return_last(s);
}

/* Returns unread messages, and writes no more. */
static void
cut_input(struct slot *s)
{
	worker_return_unread(s);
	worker_input_last(&s->worker.input);
	s->slots->events->wake(s->slots->arg);
}

void
worker_fail_protocol(struct slot *s, const char *protocol_error)
{
	if (s->worker.protocol_error != NULL)
		return;
	s->worker.protocol_error = protocol_error;
	/* A dead worker is about to be ended. */
	if (s->pid == 0)
		return;
	cut_input(s);
	set_timer(s, 0);
	kill(-s->pid, SIGKILL);
}

void
worker_verbs_closed(struct slot *s)
{
	if (worker_is_leaving(s))
		return;
	s->worker.verbs_closed = true;
	cut_input(s);
	set_timer(s, KILL_AFTER);
}

/* The worker may still be busy with what it has read. */
void
worker_input_closed(void *slot)
{
	struct slot *s = slot;

	cut_input(s);
	if (has_finished(s))
		worker_next(s);
}

/* The worker has taken too long: for a message, or to end after the last. */
static void
terminate_worker(struct slot *s)
{
	s->worker.terminated = true;
	s->worker.timed_out = slot_message(s);
	cut_input(s);
	set_timer(s, KILL_AFTER);
	kill(-s->pid, SIGTERM);
}

static void
on_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)loop;
	(void)events;
	if (s->worker.verbs_closed)
		worker_fail_protocol(s, "worker closed its descriptor 3");
	else if (s->worker.terminated)
		kill(-s->pid, SIGKILL);
	else if (worker_input_is_cut(&s->worker.input) && has_finished(s))
		worker_fail_protocol(s, "worker closed its standard input");
	else
		terminate_worker(s);
}

void
worker_init_time(struct slot *s)
{
	ev_timer_init(&s->timer, on_timeout, 0, 0);
	s->timer.data = s;
}
