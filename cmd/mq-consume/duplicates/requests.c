#include "requests.h"

#include <string.h>

#include "mq-consume/message.h"

/* Seconds that a server may take to be reachable, and that all requests of an ended
 * run may take. */
#define PATIENCE 10.0
/* Unanswered requests of a run, until which its verbs are read. */
#define REQUESTS_MAX 64

static void
remove_request(struct requests *r, struct request *q)
{
	TAILQ_REMOVE(&r->list, q, link);
	r->count--;
	request_free(q);
}

/* If the run has ended, a failure is said to people. */
static void
answer_request(struct requests *r, struct request *q, const char *text)
{
	const struct duplicates *shared = r->shared;
	bool failed = strncmp(text, "ok ", 3) != 0;

	mq_answers_say(&r->answers, text);
	if (q->m != NULL &&
	    (shared->verbose || (failed && r->awaited && !shared->quiet)))
		message_say(q->m, "dup to %s: %s", q->what.shown, text);
	remove_request(r, q);
}

static void
start_timer(struct requests *r, double after)
{
	ev_timer_stop(r->shared->loop, &r->timer);
	ev_timer_set(&r->timer, after, 0);
	ev_timer_start(r->shared->loop, &r->timer);
}

static void
advance_requests(void *arg)
{
	struct requests *r = arg;
	struct request *q;
	const char *answer;

	while ((q = TAILQ_FIRST(&r->list)) != NULL &&
	    (answer = request_advance(q)) != NULL) {
		answer_request(r, q, answer);
		if (!r->awaited)
			ev_timer_stop(r->shared->loop, &r->timer);
	}
	if (q == NULL)
		ev_timer_stop(r->shared->loop, &r->timer);
	else if (!ev_is_active(&r->timer))
		start_timer(r, PATIENCE);
	if (q == NULL && r->awaited) {
		r->awaited = false;
		r->events->answered(r->arg);
	} else if (!r->awaited && !requests_full(r)) {
		r->events->room(r->arg);
	}
}

static void
on_patience(struct ev_loop *loop, ev_timer *w, int events)
{
	struct requests *r = w->data;
	struct request *q;

	(void)loop;
	(void)events;
	TAILQ_FOREACH(q, &r->list, link) {
		/* A connection without an answer is given up anyway. */
		if (!r->awaited && q->step == REQUEST_SENT)
			return;
		request_give_up(q);
		if (!r->awaited)
			break;
	}
	advance_requests(r);
}

void
requests_ask(struct requests *r, const struct message *m, const char *wrong,
    const char *text)
{
	struct request *q = request_new(
	    &r->shared->context, m, wrong, text, advance_requests, r);

	TAILQ_INSERT_TAIL(&r->list, q, link);
	r->count++;
	advance_requests(r);
}

int
requests_open(struct requests *r)
{
	return mq_answers_open(&r->answers);
}

void
requests_close(struct requests *r, bool alone)
{
	if (alone && r->count == 0)
		mq_answers_keep(&r->answers);
	else
		mq_answers_close(&r->answers);
}

bool
requests_full(const struct requests *r)
{
	return r->count >= REQUESTS_MAX;
}

bool
requests_pending(const struct requests *r)
{
	return r->count > 0;
}

bool
requests_await(struct requests *r)
{
	r->awaited = r->count > 0;
	return r->awaited;
}

bool
requests_finish(struct requests *r)
{
	ev_timer_stop(r->shared->loop, &r->timer);
	if (!requests_await(r))
		return false;
	start_timer(r, PATIENCE);
	return true;
}

bool
requests_awaited(const struct requests *r)
{
	return r->awaited;
}

void
requests_hurry(struct requests *r)
{
	if (r->awaited)
		start_timer(r, 0);
}

void
requests_init(struct requests *r, struct duplicates *shared,
    const struct request_events *events, void *arg)
{
	*r = (struct requests){.shared = shared, .events = events, .arg = arg};
	mq_answers_init(&r->answers, shared->loop);
	TAILQ_INIT(&r->list);
	ev_timer_init(&r->timer, on_patience, PATIENCE, 0);
	r->timer.data = r;
	TAILQ_INSERT_TAIL(&shared->runs, r, link);
}

/* --- all runs ------------------------------------------------------------------- */

void
duplicates_resume(void *duplicates)
{
	struct duplicates *shared = duplicates;
	struct requests *r;

	TAILQ_FOREACH(r, &shared->runs, link)
		if (r->count > 0)
			advance_requests(r);
}

void
duplicates_init(struct duplicates *shared)
{
	TAILQ_INIT(&shared->runs);
	shared->context.remotes = &shared->remotes;
	remotes_init(&shared->remotes, shared->loop, shared->server,
	    shared->children, duplicates_resume, shared);
}

void
duplicates_free(struct duplicates *shared)
{
	struct requests *r;
	struct request *q;

	TAILQ_FOREACH(r, &shared->runs, link) {
		requests_close(r, false);
		ev_timer_stop(shared->loop, &r->timer);
		while ((q = TAILQ_FIRST(&r->list)) != NULL)
			remove_request(r, q);
	}
	remotes_free(&shared->remotes);
}
