/*
 * Finds out which queues may have more to claim.  How, depends on the role that
 * the consumer has with each.
 *
 * A claim also shows a pause.  Without room for messages, a claim of none looks
 * for pauses of the held ones: once a second and LOOK_S after a change.
 *
 * Roles.  Each claim tells which role the consumer has then, with its queue: see
 * queue/lua/lib/role.lua.
 *
 *	watch	The server reports changes of the queue's keys (CLIENT TRACKING),
 *		and a timer tells when a delayed message falls due.  From time to
 *		time another claim renews the watch.
 *	idle	Another consumer calls.  Looks at random times find out if nobody
 *		does: a consumer on watch may be dead, or stopped.
 *	none	Without room, claims come when there is room; else once a second,
 *		for servers that do not allow the tracking.
 *
 * A consumer that is called and has no room passes the call on.
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
/* Between two claims that renew a watch, about; the watch lapses after 120 s. */
#define WATCH_S 50.0
/* Looks a second of all idle consumers of a queue; and, in seconds, the longest
 * time between two of one consumer, about: rather, each heartbeat brings one. */
#define LOOKS	   6
#define LOOK_MAX_S 30.0
/* From so many on, none of them looks each second. */
#define LOOKERS	  4
#define LOOKERS_S 2.0
/* Between two looks that check whether other consumers know of this one. */
#define CHECK_S 8.0
/* Queues of one look: the server does nothing else meanwhile. */
#define LOOK_MANY 100

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

/* There is something to claim, which others may not hear of. */
static void
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

/* --- roles ------------------------------------------------------------------ */

static double
random_near(double s)
{
	return s * (0.5 + (double)arc4random() / UINT32_MAX);
}

void
roles_claiming(struct inbox_queue *q, struct mq_claim *claim)
{
	claim->tracked = claim->max == 0 || q->track;
	if (claim->max == 0)
		return;
	claim->why = q->look		      ? MQ_CLAIM_LOOK :
	    mq_clock_steady_s() >= q->look_at ? MQ_CLAIM_OWN :
						MQ_CLAIM_CALLED;
	/* News of later changes may come before the answer. */
	q->more = q->called = q->changed = q->look = q->track = false;
}

/* A call that came before the answer may be of later than the claim, unless that
 * left us no role in which anybody calls. */
void
roles_claimed(struct inbox *in, const struct mq_claimed *claimed)
{
	struct inbox_queue *q = &in->queues[in->claim_queue];
	double now = mq_clock_steady_s();

	switch (claimed->role) {
	case MQ_ROLE_NONE:
		q->called = false;
		break;
	case MQ_ROLE_WATCH:
		if (q->role != MQ_ROLE_WATCH || now >= q->look_at)
			q->look_at = now + random_near(WATCH_S);
		if (q->changed)
			wakeup_call(in, q);
		break;
	case MQ_ROLE_IDLE:
		q->look_at = q->check_at = now;
		break;
	case MQ_ROLE_CLAIM:
		q->called = !q->more;
		q->more = q->track = in->any_called = true;
		if (claimed->n == 0)
			break;
		/* A claim of none is next, which tells how we hear of more.
		 * Settlements that the next events bring, or quick ones, go ahead,
		 * and lead to a claim of their own. */
		ev_timer_set(&in->settle_first, q->quick ? QUICK_S : 0, 0);
		ev_timer_start(in->loop, &in->settle_first);
		break;
	}
	q->role = claimed->role == MQ_ROLE_CLAIM ? MQ_ROLE_NONE : claimed->role;
}

void
roles_pass(struct inbox *in, int queue)
{
	struct inbox_queue *q = &in->queues[queue];

	if (in->server->session.wake != NULL)
		mq_consumer_pass(in->server, queue);
	q->role = MQ_ROLE_NONE;
	q->called = false;
	q->more = true;
}

void
inbox_pass(struct inbox *in)
{
	int i;

	for (i = 0; i < in->opt->queue_count && !in->claiming; i++)
		if (in->queues[i].called || in->queues[i].role != MQ_ROLE_NONE)
			roles_pass(in, i);
}

/* --- looks ------------------------------------------------------------------ */

struct look {
	struct inbox *inbox;
	bool check;
	int n;
	int queues[LOOK_MANY];
};

/* Few consumers look at each tick. */
static void
take_look(struct inbox *in, struct inbox_queue *q, long long waiting)
{
	double now = mq_clock_steady_s();

	if (q->role != MQ_ROLE_IDLE)
		return;
	if (waiting == 0) {
		q->more = q->look = true;
		tell(in, FACT_WAKE);
	} else if (waiting > 0) {
		q->every = (double)waiting / LOOKS;
		if (waiting >= LOOKERS && q->every < LOOKERS_S)
			q->every = LOOKERS_S;
		if (q->every > LOOK_MAX_S)
			q->every = LOOK_MAX_S;
		q->check_at = now + CHECK_S;
	}
	if (q->every > 1)
		q->look_at = now - 0.5 + (q->every + random_near(q->every)) / 2;
}

static void
on_looked(void *arg, const long long *waiting, int n)
{
	struct look *look = arg;
	int i;

	for (i = 0; i < look->n; i++)
		take_look(look->inbox, &look->inbox->queues[look->queues[i]],
		    i < n ? waiting[i] : 0);
	free(look);
}

static struct look *
send_look(struct inbox *in, struct look *look)
{
	if (look != NULL)
		mq_consumer_look(in->server, look->queues, look->n, look->check,
		    on_looked, look);
	return NULL;
}

/* Without room, others have to hear of messages. */
static bool
wants_look(struct inbox *in, int queue, double now, bool sending)
{
	struct inbox_queue *q = &in->queues[queue];
	/* The server wakes up once for both. */
	double early = sending && q->role == MQ_ROLE_IDLE ? q->every : 0;

	if (q->role == MQ_ROLE_NONE)
		q->more = true;
	if (q->role == MQ_ROLE_NONE || now < q->look_at - early)
		return false;
	if (in->room(in->arg, queue) == 0)
		roles_pass(in, queue);
	else if (q->role == MQ_ROLE_WATCH)
		q->more = q->track = true;
	return q->role == MQ_ROLE_IDLE;
}

void
inbox_look_around(struct inbox *in, bool sending)
{
	double now = mq_clock_steady_s();
	struct look *look = NULL;
	int i;

	for (i = 0; i < in->opt->queue_count; i++) {
		if (!wants_look(in, i, now, sending))
			continue;
		if (look == NULL) {
			look = mq_xcalloc(1, sizeof(*look));
			look->inbox = in;
		}
		look->queues[look->n++] = i;
		look->check = look->check || now >= in->queues[i].check_at;
		if (look->n == LOOK_MANY)
			look = send_look(in, look);
	}
	(void)send_look(in, look);
	inbox_look(in, false);
}

/* --- beginning and end ------------------------------------------------------ */

void
inbox_pause_all(struct inbox *in, bool paused)
{
	int i;

	if (in->all_paused == paused)
		return;
	in->all_paused = paused;
	if (!in->opt->quiet)
		mq_say("all queues: %s", paused ? "paused" : "resumed");
	if (!paused)
		inbox_look(in, true);
	for (i = 0; paused && i < in->opt->queue_count; i++)
		in->hear(in->arg,
		    &(struct fact){.kind = FACT_QUEUE_PAUSED, .queue = i});
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
