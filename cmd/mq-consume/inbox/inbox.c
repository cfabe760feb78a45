/*
 * Claims.  A claim is one script call for a queue, in the order in which the
 * queues were named.  A claim takes what there is room for, and never waits.  A
 * queue that had no more is claimed from again when it may have.  If there is no
 * room then, the consumer leaves the messages to others.
 *
 * A claim also shows a pause.  Without room for messages, a claim of none looks
 * for pauses of the held ones: once a second and LOOK_S after a change.
 *
 * Each claim tells which role the consumer has then, with its queue (see
 * queue/lua/lib/role.lua), and thus how it hears of more to claim:
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
#include "inbox.h"

/* Bytes of one claim, about; a single message may be longer. */
#define CLAIM_BYTES (1 << 20)
#define LOOK_S	    0.1
/* A timer may be early by this much. */
#define EARLY_S 0.001
/* A settlement within this time is awaited the next time, too. */
#define QUICK_S 0.001
/* Between two claims that renew a watch, about; the watch lapses after 300 s. */
#define WATCH_S 120.0
/* Between two claims by which the others know of an idle one, about; they forget it after
 * 1,800 s. */
#define IDLE_S 600.0
/* Looks a second of all idle consumers of a queue; and, in seconds, the longest
 * time between two of one consumer, about: rather, each heartbeat brings one. */
#define LOOKS	   6
#define LOOK_MAX_S 30.0
/* From so many on, none of them looks each second. */
#define LOOKERS	  4
#define LOOKERS_S 2.0
/* Between two looks that check whether the one on watch lives; for each hundred queues of
 * ours, so much more. */
#define CHECK_S 8.0
/* Queues of one look: the server does nothing else meanwhile. */
#define LOOK_MANY 100

static int
compare_names(const void *a, const void *b)
{
	const struct inbox_queue *x = *(struct inbox_queue *const *)a;
	const struct inbox_queue *y = *(struct inbox_queue *const *)b;
	int order = memcmp(x->name, y->name, MIN(x->len, y->len));

	return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

/* --- news ------------------------------------------------------------------- */

/* The server may know of no role. */
static void
wakeup_forget(struct inbox *in)
{
	int i;

	for (i = 0; i < in->opt->queue_count; i++) {
		in->queues[i].role = MQ_ROLE_NONE;
		in->queues[i].called = false;
	}
}

/* A change may also be a pause of held messages. */
static void
await_look(struct inbox *in)
{
	if (!TAILQ_EMPTY(&in->all) && !ev_is_active(&in->look_timer))
		mq_timer_start(in->loop, &in->look_timer, LOOK_S);
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
	int i;

	for (i = 0; all && i < in->opt->queue_count; i++)
		in->queues[i].more = true;
	in->look_wanted = true;
	tell(in, FACT_WAKE);
}

/* NULL: none of ours. */
static struct inbox_queue *
find_queue(const struct inbox *in, const char *name, size_t len)
{
	const struct inbox_queue wanted = {.name = name, .len = len};
	const struct inbox_queue *key = &wanted;
	struct inbox_queue **found = bsearch(&key, in->by_name,
	    (size_t)in->opt->queue_count, sizeof(*found), compare_names);

	return found != NULL ? *found : NULL;
}

int
inbox_queue_of(const struct inbox *in, const char *key, size_t len)
{
	const struct inbox_queue *q = NULL;
	const char *name;
	size_t n;

	if (in->server->layout->key_queue(key, len, &name, &n))
		q = find_queue(in, name, n);
	return q == NULL ? -1 : (int)(q - in->queues);
}

void
inbox_changed(struct inbox *in, int queue)
{
	struct inbox_queue *q;

	if (queue == -1) {
		wakeup_forget(in);
		inbox_look(in, true);
		return;
	}
	q = &in->queues[queue];
	await_look(in);
	/* Of the claims that have read the key, this one may be the last. */
	if (in->claiming && in->claim_max > 0 && queue == in->claim_queue)
		q->changed = true;
	else if (q->role == MQ_ROLE_WATCH)
		wakeup_call(in, q);
}

void
inbox_called(struct inbox *in, int queue)
{
	struct inbox_queue *q = &in->queues[queue];

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
	(void)loop;
	(void)events;
	inbox_look(w->data, false);
}

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
		tell(in, FACT_QUEUE_PAUSED, .queue = i);
}

/* --- roles ------------------------------------------------------------------ */

static double
random_near(double s)
{
	return s * (0.5 + (double)arc4random() / UINT32_MAX);
}

/* What the answer says.  A call that came before it may be of later than the claim, unless that
 * left us no role in which anybody calls. */
static void
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
		q->look_at = now;
		if (q->role != MQ_ROLE_IDLE)
			q->check_at = now;
		q->claim_at = now + random_near(IDLE_S);
		break;
	case MQ_ROLE_CLAIM:
		q->called = !q->more;
		q->more = q->track = in->any_called = true;
		if (claimed->n == 0)
			break;
		/* A claim of none is next, which tells how we hear of more.
		 * Settlements that the next events bring, or quick ones, go ahead,
		 * and lead to a claim of their own. */
		mq_timer_start(
		    in->loop, &in->settle_first, q->quick ? QUICK_S : 0);
		break;
	}
	q->role = claimed->role == MQ_ROLE_CLAIM ? MQ_ROLE_NONE : claimed->role;
}

/* There is no room for what we were called for. */
static void
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
	enum mq_look how;
	int n;
	int queues[LOOK_MANY];
};

/* Few consumers look at each tick, and of many that wait, some check.  waiting -1: nothing
 * is there, and nothing was checked. */
static void
take_look(struct inbox *in, struct inbox_queue *q, long long waiting)
{
	double now = mq_clock_steady_s();
	double check_s = CHECK_S * (1 + in->opt->queue_count / 100.0);

	if (q->role != MQ_ROLE_IDLE)
		return;
	if (waiting == 0) {
		q->more = q->look = true;
		tell(in, FACT_WAKE);
	} else if (waiting > 0) {
		q->every = (double)waiting / LOOKS;
		q->check_at = now + MAX(q->every, check_s);
		if (waiting >= LOOKERS)
			q->every = MAX(q->every, LOOKERS_S);
		q->every = MIN(q->every, LOOK_MAX_S);
	}
	if (q->every > 1)
		q->look_at = now - 0.5 + (q->every + random_near(q->every)) / 2;
}

static void on_looked(void *arg, const long long *waiting, int n);

static struct look *
send_look(struct inbox *in, struct look *look)
{
	if (look != NULL)
		mq_consumer_look(in->server, look->queues, look->n, look->how,
		    on_looked, look);
	return NULL;
}

/* Where anything is, it may have been left there. */
static void
on_looked(void *arg, const long long *waiting, int n)
{
	struct look *look = arg;
	struct inbox *in = look->inbox;
	bool any = look->how == MQ_LOOK_ANY && n > 0;
	bool quiet = any && waiting[0] == 0;
	int i;

	if (any && !quiet) {
		look->how = MQ_LOOK_LEFT;
		(void)send_look(in, look);
		return;
	}
	for (i = 0; i < look->n; i++)
		take_look(in, &in->queues[look->queues[i]],
		    quiet     ? -1 :
			i < n ? waiting[i] :
				0);
	free(look);
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
	else if (now >= q->claim_at)
		q->more = q->look = true;
	return q->role == MQ_ROLE_IDLE;
}

void
inbox_look_around(struct inbox *in, bool sending)
{
	double now = mq_clock_steady_s();
	struct look *looks[2] = {NULL, NULL}, **look;
	bool check;
	int i;

	for (i = 0; i < in->opt->queue_count; i++) {
		if (!wants_look(in, i, now, sending))
			continue;
		check = now >= in->queues[i].check_at;
		look = &looks[check];
		if (*look == NULL)
			*look = mq_xcalloc(1, sizeof(**look));
		(*look)->inbox = in;
		(*look)->how = check ? MQ_LOOK_CHECK : MQ_LOOK_ANY;
		(*look)->queues[(*look)->n++] = i;
		if ((*look)->n == LOOK_MANY)
			*look = send_look(in, *look);
	}
	(void)send_look(in, looks[0]);
	(void)send_look(in, looks[1]);
	inbox_look(in, false);
}

/* --- claims ----------------------------------------------------------------- */

static size_t
claim_bytes(const struct inbox *in)
{
	return in->session->one_by_one ? 1 : CLAIM_BYTES;
}

static void
take_claimed(struct inbox *in, struct mq_claimed *claimed)
{
	struct inbox_queue *q = &in->queues[in->claim_queue];
	double now = mq_clock_steady_s();
	/* A claim of none only looks for pauses. */
	bool claimed_some = in->claim_max > 0;
	struct mq_element *element;
	size_t bytes = 0;
	int i;

	in->seen = true;
	q->tick = claimed->missing ? 0 : claimed->tick;
	in->server_ahead_ms = claimed->now_ms - (int64_t)(now * 1000);
	if (claimed_some && !claimed->paused) {
		/* A consumer that waits does not make a deleted queue again. */
		if (claimed->missing && q->exists && !in->opt->quiet)
			mq_say("%s: the queue was deleted; waiting until it "
			       "exists again",
			    q->name);
		q->exists = !claimed->missing;
	}
	if (claimed_some || claimed->paused)
		q->due = claimed->due_ms < 0 || claimed->role == MQ_ROLE_IDLE ?
		    0 :
		    now + (double)claimed->due_ms / 1000;
	q->received += claimed->n;
	for (i = 0; i < claimed->n; i++) {
		element = &claimed->elements[i];
		bytes += element->len;
		inbox_add(in, in->claim_queue, element->data, element->len);
		element->data = NULL;
	}
	if (!claimed->paused &&
	    (claimed->n >= in->claim_max || bytes >= claim_bytes(in))) {
		q->more = true;
		in->none_left = false;
	}
	if (claimed_some)
		roles_claimed(in, claimed);
	inbox_pause_seen(in, in->claim_queue, claimed->paused);
	/* The claim was on its way. */
	if (in->all_paused)
		tell(in, FACT_QUEUE_PAUSED, .queue = in->claim_queue);
}

static void
on_claimed(void *arg, const struct mq_answer *answer)
{
	struct inbox *in = arg;
	struct inbox_queue *q = &in->queues[in->claim_queue];

	in->claiming = in->in_pass = false;
	in->moves++;
	if (answer == NULL)
		return;
	if (answer->error != NULL) {
		q->more = true;
		q->role = MQ_ROLE_NONE;
		tell(in, FACT_CLAIM_REFUSED, .text = answer->error,
		    .status = answer->status, .yes = !in->seen);
		return;
	}
	tell(in, FACT_CLAIMED, .status = answer->claimed->n);
	if (answer->claimed->n < 0)
		return;
	take_claimed(in, answer->claimed);
	in->in_pass = true;
	tell(in, FACT_WAKE);
}

/* How many bytes a claim may copy; 0: any number.  The longest message has 512 MiB.  Half
 * of the room on the disk of a private server will do. */
static size_t
may_copy(const struct inbox *in, size_t copying)
{
	const size_t most = (size_t)1 << 30;
	size_t bytes = most;
	char why[512];

	while (bytes > 1 &&
	    mq_server_room(
		in->session->server, copying + bytes, why, sizeof(why)) != 0)
		bytes /= 2;
	return bytes == most ? 0 : bytes;
}

static void
send_claim(struct inbox *in, size_t copying)
{
	struct inbox_queue *q = &in->queues[in->claim_queue];
	struct mq_claim claim = {.max = in->claim_max,
	    .bytes = claim_bytes(in),
	    .copied = may_copy(in, copying),
	    .rate = rules_of(in->opt, in->claim_queue)->rate};

	in->claiming = true;
	claim.tracked =
	    (claim.max == 0 || q->track) && in->server->session.wake != NULL;
	if (claim.max > 0) {
		claim.why = q->look		      ? MQ_CLAIM_LOOK :
		    mq_clock_steady_s() >= q->look_at ? MQ_CLAIM_OWN :
							MQ_CLAIM_CALLED;
		/* News of later changes may come before the answer. */
		q->more = q->called = q->changed = q->look = q->track = false;
	}
	mq_consumer_claim(in->server, in->claim_queue, &claim, on_claimed, in);
}

/* Whether a pause would give any message back. */
static bool
pause_matters(const struct inbox *in, int queue)
{
	const struct inbox_queue *q = &in->queues[queue];
	const struct message *m;

	if (q->held > 0 || (q->paused && q->role == MQ_ROLE_NONE))
		return true;
	if (in->opt->command != NULL)
		return false;
	/* Printed messages can be taken back until they are written. */
	TAILQ_FOREACH(m, &in->all, link)
		if (m->state == MESSAGE_RUNNING)
			return true;
	return false;
}

/* Claims from the next queue.  A later queue is claimed from only when the
 * earlier ones have no more.  What cannot be claimed is left to others. */
static bool
claim_next(struct inbox *in, int from, size_t copying)
{
	bool more;
	int i;

	for (i = from; i < in->opt->queue_count; i++) {
		if (mq_consumer_lacks(in->server, i))
			continue;
		more = in->queues[i].more;
		in->claim_max = more && in->none_left && !in->all_paused ?
		    in->room(in->arg, i) :
		    0;
		if (in->claim_max == 0 && in->queues[i].called)
			roles_pass(in, i);
		if (in->claim_max > 0 ||
		    (in->looking && pause_matters(in, i))) {
			in->claim_queue = i;
			send_claim(in, copying);
			return true;
		}
		if (more && !in->queues[i].full)
			in->none_left = false;
		if (!in->none_left && !in->looking && !in->any_called)
			break;
	}
	/* Queues before `from` may have been called since. */
	in->any_called = in->any_called && from > 0;
	return false;
}

void
inbox_claim(struct inbox *in, size_t copying)
{
	double first = 0, due;
	int i;

	if (in->claiming || ev_is_active(&in->settle_first) ||
	    !session_is_up(in->session) || in->policy->stop >= STOP_SOON)
		return;
	if (in->in_pass && claim_next(in, in->claim_queue + 1, copying))
		return;
	/* The pass is over: all queues are done, or there is no more room. */
	if (in->in_pass) {
		for (i = 0; i < in->opt->queue_count; i++) {
			due = in->queues[i].due;
			if (due != 0 && (first == 0 || due < first))
				first = due;
		}
		ev_timer_stop(in->loop, &in->due_timer);
	}
	if (first != 0) {
		/* Else the timer counts from the beginning of this turn. */
		ev_now_update(in->loop);
		first -= mq_clock_steady_s();
		mq_timer_start(in->loop, &in->due_timer, MAX(first, 0));
	}
	in->looking = in->look_wanted;
	in->look_wanted = false;
	in->none_left = true;
	in->in_pass = claim_next(in, 0, copying);
}

void
inbox_down(struct inbox *in)
{
	in->claiming = in->in_pass = false;
	wakeup_forget(in);
}

void
inbox_renamed(struct inbox *in)
{
	int i;

	for (i = 0; i < in->opt->queue_count; i++)
		in->queues[i].received = 0;
}

bool
inbox_drained(const struct inbox *in)
{
	int i;

	for (i = 0; i < in->opt->queue_count; i++)
		if (in->queues[i].more && !in->all_paused)
			return false;
	return !in->claiming;
}

bool
inbox_expects(const struct inbox *in, int queue)
{
	int i;

	if (in->claiming && in->claim_queue == queue && in->claim_max > 0)
		return true;
	for (i = 0; i < queue; i++)
		if (in->queues[i].more)
			return false;
	return in->queues[queue].more && in->room(in->arg, queue) > 0;
}

/* --- beginning and end ------------------------------------------------------ */

void
inbox_init(struct inbox *in)
{
	size_t i, n = (size_t)in->opt->queue_count;
	struct inbox_queue *q;

	TAILQ_INIT(&in->all);
	in->queues = mq_xcalloc(n, sizeof(*in->queues));
	in->by_name = mq_xcalloc(n, sizeof(*in->by_name));
	for (i = 0; i < n; i++) {
		q = &in->queues[i];
		q->name = in->opt->queues[i];
		q->len = strlen(q->name);
		q->more = true;
		TAILQ_INIT(&q->all);
		TAILQ_INIT(&q->waiting);
		in->by_name[i] = q;
	}
	qsort(in->by_name, n, sizeof(*in->by_name), compare_names);
	ev_timer_init(&in->due_timer, on_due, 0, 0);
	ev_timer_init(&in->look_timer, on_look, 0, 0);
	ev_timer_init(&in->settle_first, on_not_settled, 0, 0);
	in->due_timer.data = in->look_timer.data = in;
	in->settle_first.data = in;
}

void
inbox_free(struct inbox *in)
{
	while (!TAILQ_EMPTY(&in->all))
		inbox_forget(in, TAILQ_FIRST(&in->all));
	free(in->by_name);
	free(in->queues);
}
