/*
 * Claims.  A claim is one script call for a queue, in the order in which the
 * queues were named.  A claim takes what there is room for, and never waits.  A
 * queue that had no more is claimed from again when it may have: see wakeup.c.  If
 * there is no room then, the consumer leaves the messages to others.
 */
#include "inbox.h"
#include "mq-consume/rules.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/xalloc.h"

/* Bytes of one claim, about; a single message may be longer. */
#define CLAIM_BYTES (1 << 20)

static void
take_elements(struct inbox *in, struct mq_claimed *claimed)
{
	struct mq_element *element;
	int i;

	in->queues[in->claim_queue].received += claimed->n;
	for (i = 0; i < claimed->n; i++) {
		element = &claimed->elements[i];
		inbox_add(in, in->claim_queue, element->data, element->len);
		element->data = NULL;
	}
	if (claimed->n > 0)
		tell(in, FACT_ARRIVED);
}

static bool
had_no_more(const struct inbox *in, const struct mq_claimed *claimed)
{
	size_t bytes = 0;
	int i;

	for (i = 0; i < claimed->n; i++)
		bytes += claimed->elements[i].len;
	return claimed->n < in->claim_max && bytes < CLAIM_BYTES;
}

/* A consumer that waits does not make a deleted queue again. */
static void
note_missing(struct inbox *in, bool missing)
{
	struct inbox_queue *q = &in->queues[in->claim_queue];

	if (missing && q->exists && !in->opt->quiet)
		mq_say(
		    "%s: the queue was deleted; waiting until it exists again",
		    q->name);
	q->exists = !missing;
}

static void
take_claimed(struct inbox *in, struct mq_claimed *claimed)
{
	struct inbox_queue *q = &in->queues[in->claim_queue];
	double now = mq_clock_steady_s();
	/* A claim of none only looks for pauses. */
	bool claimed_some = in->claim_max > 0;

	in->seen = true;
	q->tick = claimed->missing ? 0 : claimed->tick;
	in->server_ahead_ms = claimed->now_ms - (int64_t)(now * 1000);
	if (claimed_some && !claimed->paused)
		note_missing(in, claimed->missing);
	if (claimed_some || claimed->paused)
		q->due = claimed->due_ms < 0 || claimed->role == MQ_ROLE_IDLE ?
		    0 :
		    now + (double)claimed->due_ms / 1000;
	if (!claimed->paused && !had_no_more(in, claimed)) {
		q->more = true;
		in->none_left = false;
	}
	if (claimed_some)
		roles_claimed(in, claimed);
	take_elements(in, claimed);
	inbox_pause_seen(in, in->claim_queue, claimed->paused);
	/* The claim was on its way. */
	if (in->all_paused)
		in->hear(in->arg,
		    &(struct fact){
			.kind = FACT_QUEUE_PAUSED, .queue = in->claim_queue});
}

static void
on_claimed(
    void *arg, const struct mq_answer *answer, struct mq_claimed *claimed)
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
	tell(in, FACT_CLAIM_ANSWERED);
	if (claimed->n == MQ_CLAIM_LOST) {
		tell(in, FACT_CLAIM_LOST);
	} else if (claimed->n == MQ_CLAIM_BAD) {
		tell(in, FACT_NONSENSE);
	} else {
		take_claimed(in, claimed);
		in->in_pass = true;
		tell(in, FACT_WAKE);
	}
}

static void
send_claim(struct inbox *in)
{
	struct mq_claim claim = {.max = in->claim_max,
	    .bytes = CLAIM_BYTES,
	    .copied = in->copied(in->arg),
	    .rate = rules_of(in->opt, in->claim_queue)->rate};

	in->claiming = true;
	roles_claiming(&in->queues[in->claim_queue], &claim);
	claim.tracked &= in->server->session.wake != NULL;
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

/*
 * Claims from the next queue.  A later queue is claimed from only when the
 * earlier ones have no more.  What cannot be claimed is left to others.
 */
static bool
claim_next(struct inbox *in, int from)
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
			send_claim(in);
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
inbox_claim(struct inbox *in)
{
	if (in->claiming || ev_is_active(&in->settle_first) ||
	    !session_is_up(in->session) ||
	    policy_level(in->policy) >= STOP_SOON)
		return;
	if (in->in_pass && claim_next(in, in->claim_queue + 1))
		return;
	/* The pass is over: all queues are done, or there is no more room. */
	if (in->in_pass)
		wakeup_await_due(in);
	in->looking = in->look_wanted;
	in->look_wanted = false;
	in->none_left = true;
	in->in_pass = claim_next(in, 0);
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
inbox_is_claiming(const struct inbox *in)
{
	return in->claiming;
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

unsigned long
inbox_moves(const struct inbox *in)
{
	return in->moves;
}

void
inbox_init(struct inbox *in)
{
	const struct options *opt = in->opt;
	int i;

	TAILQ_INIT(&in->all);
	in->queues = mq_xcalloc((size_t)opt->queue_count, sizeof(*in->queues));
	for (i = 0; i < opt->queue_count; i++) {
		in->queues[i].name = opt->queues[i];
		TAILQ_INIT(&in->queues[i].all);
		TAILQ_INIT(&in->queues[i].waiting);
	}
	wakeup_init(in);
}

void
inbox_free(struct inbox *in)
{
	while (!TAILQ_EMPTY(&in->all))
		inbox_forget(in, TAILQ_FIRST(&in->all));
	wakeup_free(in);
	free(in->queues);
}
