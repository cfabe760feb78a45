/*
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

#include "base/clock.h"
#include "base/xalloc.h"
#include "inbox.h"

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
		if (claimed->n > 0)
			wakeup_settle_first(in, q->quick);
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
