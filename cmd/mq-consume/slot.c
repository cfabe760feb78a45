/*
 * Where scripts run, and what they have in hand.
 */
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "consume.h"

/* Without --prefetch: what the slots were seen to finish in this time. */
#define AHEAD_S	  0.1
#define AHEAD_MAX 100
/* Or one batch, if that is larger. */
#define AHEAD_MESSAGES 1000
/* A message claimed ahead that finds no slot for so long is given back. */
#define STALE_S 1.0

void
slot_changed(struct slot *s)
{
	bool is_free = TAILQ_EMPTY(&s->hand) && !ev_is_active(&s->rest);

	if (is_free == s->is_free)
		return;
	s->is_free = is_free;
	if (is_free)
		TAILQ_INSERT_HEAD(&s->c->free_slots, s, free);
	else
		TAILQ_REMOVE(&s->c->free_slots, s, free);
}

void
slot_take(struct slot *s, struct message *m)
{
	m->slot = s;
	TAILQ_INSERT_TAIL(&s->hand, m, hand);
	s->count++;
	s->bytes += m->len;
	slot_changed(s);
}

void
slot_release(struct message *m)
{
	struct slot *s = m->slot;

	if (s == NULL)
		return;
	TAILQ_REMOVE(&s->hand, m, hand);
	s->count--;
	s->bytes -= m->len;
	m->slot = NULL;
	slot_changed(s);
}

void
slot_empty(struct slot *s, struct messages *hand)
{
	struct message *m;

	TAILQ_CONCAT(hand, &s->hand, hand);
	TAILQ_FOREACH(m, hand, hand)
		m->slot = NULL;
	s->count = 0;
	s->bytes = 0;
	slot_changed(s);
}

void
slot_dup(void *arg, int which, const char *text)
{
	struct slot *s = arg;
	const struct message *m = slot_on(s);
	const char *wrong = NULL;
	int i;

	for (i = 0; i < which && m != NULL; i++)
		m = TAILQ_NEXT(m, hand);
	if (which == -1 && s->ones != NULL && s->count > 1)
		wrong = "which message? say its number: dup #N ...";
	else if (m == NULL)
		wrong = "there is no message of that number";
	requests_ask(&s->requests, m != NULL ? m : slot_on(s), wrong, text);
}

struct slot *
slot_free(struct consumer *c)
{
	return TAILQ_FIRST(&c->free_slots);
}

bool
slot_may_start(const struct consumer *c)
{
	return c->held > 0 && !c->starved &&
	    policy_level(&c->policy) < STOP_SOON && c->link != LINK_OPENING &&
	    policy_may_start(&c->policy);
}

long
slot_idle(const struct consumer *c)
{
	return c->opt->slots - c->busy - c->resting;
}

int
slot_ahead(const struct consumer *c)
{
	int batch = c->batch_size, most;
	double runs;

	if (policy_is_alone(&c->policy))
		return 0;
	if (c->opt->prefetch >= 0)
		return c->opt->prefetch;
	if (c->run_s == 0 || c->opt->rate_shared.per_s > 0)
		return 0;
	runs = c->opt->slots * AHEAD_S / c->run_s;
	most = batch > AHEAD_MESSAGES ? 1 : AHEAD_MESSAGES / batch;
	if (most > AHEAD_MAX)
		most = AHEAD_MAX;
	return (runs < most ? (int)runs : most) * batch;
}

bool
slot_return_stale(struct consumer *c, bool idle)
{
	if (c->opt->prefetch >= 0 || c->held == 0 || idle ||
	    mq_clock_steady_s() - c->last_end <= STALE_S)
		return false;
	c->run_s = STALE_S;
	settle_held(c);
	return true;
}

void
slot_stand_alone(struct consumer *c)
{
	if (c->held <= (slot_idle(c) - 1) * c->batch_size)
		return;
	settle_held(c);
	mq_async_flush(&c->main);
}

void
slot_kill(struct consumer *c, int sig)
{
	struct slot *s;
	int i;

	for (i = 0; c->slots != NULL && i < c->opt->slots; i++) {
		s = &c->slots[i];
		requests_hurry(&s->requests);
		if (s->pid == 0)
			continue;
		s->ended = true;
		kill(-s->pid, sig);
	}
}

bool
slot_kill_one(const struct message *m)
{
	if (m->slot == NULL)
		return false;
	if (m->slot->pid != 0) {
		m->slot->ended = true;
		kill(-m->slot->pid, SIGKILL);
	}
	return true;
}

void
slot_take_back(struct consumer *c, int queue)
{
	(void)c;
	(void)queue;
}

bool
slot_owes(const struct consumer *c)
{
	(void)c;
	return false;
}

void
slot_stop(struct consumer *c)
{
	(void)c;
}

/* --- rests ------------------------------------------------------------------ */

static void
on_rested(struct ev_loop *loop, ev_timer *w, int events)
{
	struct slot *s = w->data;

	(void)loop;
	(void)events;
	s->c->resting--;
	slot_changed(s);
	engine_mark(s->c);
}

bool
slot_is_good(enum mq_verdict_kind kind)
{
	return kind == MQ_VERDICT_DONE || kind == MQ_VERDICT_PUSH;
}

bool
slot_is_bad(enum mq_verdict_kind kind)
{
	return kind == MQ_VERDICT_ERR || kind == MQ_VERDICT_RETRY;
}

void
slot_judged(struct slot *s, bool good)
{
	struct consumer *c = s->c;

	if (good)
		s->failures = 0;
	if (good || c->opt->rest_max_ms == 0 || ev_is_active(&s->rest))
		return;
	s->failures++;
	c->resting++;
	ev_timer_init(
	    &s->rest, on_rested, policy_rest_s(&c->policy, s->failures), 0);
	s->rest.data = s;
	ev_timer_start(c->loop, &s->rest);
	slot_changed(s);
}
