/*
 * Finds out which queues may have more to claim.  How, depends on the role that
 * the consumer has with each: see roles.c.
 *
 * A claim also shows a pause.  Without room for messages, a claim of none looks
 * for pauses of the held ones: once a second and LOOK_S after a change.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "inbox.h"

#define LOOK_S 0.1
/* A timer may be early by this much. */
#define EARLY_S 0.001
/* A settlement within this time is awaited the next time, too. */
#define QUICK_S 0.001

/* The queues, sorted by their names. */
struct wakeup {
	const char *name;
	size_t len;
	struct inbox_queue *q;
};

static int
compare_names(const void *a, const void *b)
{
	const struct wakeup *x = a, *y = b;
	size_t n = x->len < y->len ? x->len : y->len;
	int order = memcmp(x->name, y->name, n);

	return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

/* --- news ------------------------------------------------------------------- */

static void
any_may_have_more(struct inbox *in)
{
	int i;

	for (i = 0; i < in->opt->queue_count; i++)
		in->queues[i].more = true;
}

/* A change may also be a pause of held messages. */
static void
await_look(struct inbox *in)
{
	if (!TAILQ_EMPTY(&in->all) && !ev_is_active(&in->look_timer))
		ev_timer_again(in->loop, &in->look_timer);
}

void
wakeup_call(struct inbox *in, struct inbox_queue *q)
{
	q->more = q->called = in->any_called = true;
	tell(in, FACT_WAKE);
}

void
inbox_look(struct inbox *in, bool all)
{
	if (all)
		any_may_have_more(in);
	in->look_wanted = true;
	tell(in, FACT_WAKE);
}

/* The queue of this name; NULL: none of ours. */
static struct inbox_queue *
find_queue(const struct inbox *in, const char *name, size_t len)
{
	struct wakeup wanted = {.name = name, .len = len};
	struct wakeup *found = bsearch(&wanted, in->wakeup,
	    (size_t)in->opt->queue_count, sizeof(*in->wakeup), compare_names);

	return found != NULL ? found->q : NULL;
}

/* The same of a key. */
static struct inbox_queue *
queue_of(const struct inbox *in, const char *key, size_t len)
{
	const char *name;
	size_t n;

	if (!in->server->layout->key_queue(key, len, &name, &n))
		return NULL;
	return find_queue(in, name, n);
}

int
inbox_queue_of(const struct inbox *in, const char *key, size_t len)
{
	const struct inbox_queue *q = queue_of(in, key, len);

	return q == NULL ? -1 : (int)(q - in->queues);
}

void
inbox_changed(struct inbox *in, const char *key, size_t len)
{
	struct inbox_queue *q;

	if (key == NULL) {
		wakeup_forget(in);
		inbox_look(in, true);
		return;
	}
	q = queue_of(in, key, len);
	if (q == NULL)
		return;
	await_look(in);
	/* Of the claims that have read the key, this one may be the last. */
	if (in->claiming && in->claim_max > 0 &&
	    q == &in->queues[in->claim_queue])
		q->changed = true;
	else if (q->role == MQ_ROLE_WATCH)
		wakeup_call(in, q);
}

void
inbox_called(struct inbox *in, const char *key, size_t len)
{
	struct inbox_queue *q = queue_of(in, key, len);

	if (q == NULL)
		return;
	if (q->role == MQ_ROLE_IDLE)
		q->role = MQ_ROLE_NONE;
	q->track = true;
	wakeup_call(in, q);
}

/* --- settlements, which lead to a claim -------------------------------------- */

void
wakeup_settle_first(struct inbox *in, bool quick)
{
	ev_timer_set(&in->settle_first, quick ? QUICK_S : 0, 0);
	ev_timer_start(in->loop, &in->settle_first);
}

static void
on_not_settled(struct ev_loop *loop, ev_timer *w, int events)
{
	struct inbox *in = w->data;

	(void)loop;
	(void)events;
	in->queues[in->claim_queue].quick = false;
	tell(in, FACT_WAKE);
}

void
inbox_settling(struct inbox *in, const struct message *m)
{
	bool back =
	    m->outcome == MQ_OUTCOME_FRONT || m->outcome == MQ_OUTCOME_AGAIN;
	struct inbox_queue *q = NULL;

	if (m->outcome == MQ_OUTCOME_PUSH)
		q = find_queue(in, m->to, strlen(m->to));
	if (q != NULL)
		q->more = true;
	if (back || mq_envelope_get(&m->envelope, MQ_HEADER_GROUP) != NULL)
		q = &in->queues[m->queue];
	if (q == NULL)
		return;
	ev_timer_stop(in->loop, &in->settle_first);
	/* The claim will mostly find something, and begin no watch. */
	q->track = false;
	q->quick = mq_clock_steady_s() < m->since + QUICK_S;
	q->more = true;
	tell(in, FACT_WAKE);
}

static void
on_look(struct ev_loop *loop, ev_timer *w, int events)
{
	struct inbox *in = w->data;

	(void)events;
	ev_timer_stop(loop, w);
	inbox_look(in, false);
}

void
wakeup_forget(struct inbox *in)
{
	int i;

	for (i = 0; i < in->opt->queue_count; i++) {
		in->queues[i].role = MQ_ROLE_NONE;
		in->queues[i].called = false;
	}
}

/* --- delayed messages ------------------------------------------------------- */

static void
on_due(struct ev_loop *loop, ev_timer *w, int events)
{
	struct inbox *in = w->data;
	double now = mq_clock_steady_s() + EARLY_S;
	struct inbox_queue *q;
	int i;

	(void)loop;
	(void)events;
	for (i = 0; i < in->opt->queue_count; i++) {
		q = &in->queues[i];
		if (q->due != 0 && q->due <= now)
			wakeup_call(in, q);
	}
	await_look(in);
}

void
wakeup_await_due(struct inbox *in)
{
	double first = 0, due;
	int i;

	for (i = 0; i < in->opt->queue_count; i++) {
		due = in->queues[i].due;
		if (due != 0 && (first == 0 || due < first))
			first = due;
	}
	ev_timer_stop(in->loop, &in->due_timer);
	if (first == 0)
		return;
	/* Else the timer counts from the beginning of this turn. */
	ev_now_update(in->loop);
	first -= mq_clock_steady_s();
	ev_timer_set(&in->due_timer, first > 0 ? first : 0, 0);
	ev_timer_start(in->loop, &in->due_timer);
}

/* --- pauses ----------------------------------------------------------------- */

void
inbox_pausing(struct inbox *in, int queue, bool begins)
{
	in->queues[queue].pausing += begins ? 1 : -1;
}

void
inbox_pause_seen(struct inbox *in, int queue, bool paused)
{
	struct inbox_queue *q = &in->queues[queue];

	if (q->paused != paused && !in->opt->quiet)
		mq_say("%s: %s", q->name, paused ? "paused" : "resumed");
	q->paused = paused;
	if (paused)
		tell(in, FACT_QUEUE_PAUSED, .queue = queue);
}

void
wakeup_init(struct inbox *in)
{
	size_t i, n = (size_t)in->opt->queue_count;

	in->wakeup = mq_xcalloc(n, sizeof(*in->wakeup));
	for (i = 0; i < n; i++)
		in->wakeup[i] = (struct wakeup){.name = in->queues[i].name,
		    .len = strlen(in->queues[i].name),
		    .q = &in->queues[i]};
	qsort(in->wakeup, n, sizeof(*in->wakeup), compare_names);
	any_may_have_more(in);
	ev_timer_init(&in->due_timer, on_due, 0, 0);
	ev_timer_init(&in->look_timer, on_look, 0, LOOK_S);
	ev_timer_init(&in->settle_first, on_not_settled, 0, 0);
	in->due_timer.data = in->look_timer.data = in;
	in->settle_first.data = in;
}

void
wakeup_free(struct inbox *in)
{
	free(in->wakeup);
}
