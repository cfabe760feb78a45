/*
 * Getting messages.  A claim is one script call per queue, in the order in
 * which the queues were named; it takes what there is room for and never
 * waits.  A queue that had no more is asked again when it may have: see
 * consume-changed.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "consume.h"
#include "executor.h"
#include "message/headers.h"

/* One claim takes about so much; a single message may be longer. */
#define CLAIM_BYTES (1 << 20)

static int
claim_room(const struct consumer *c, int queue)
{
	int batch = c->executor->bulk ? c->batch_size : 0;
	long room;

	if (policy_level(&c->policy) != STOP_NOT)
		return 0;
	room = policy_room(&c->policy, c->executor->room(c, queue), c->held,
	    c->queues[queue].held, batch);
	/* With some in hand, wait until it is worth a round. */
	if (c->held > 0 && room < c->held && !c->executor->wants_few(c, queue))
		return 0;
	return room > 0 ? (int)room : 0;
}

static void
take_elements(struct consumer *c, struct mq_claimed *claimed)
{
	struct mq_element *element;
	int i;

	c->queues[c->claim_queue].received += claimed->n;
	for (i = 0; i < claimed->n; i++) {
		element = &claimed->elements[i];
		message_new(c, c->claim_queue, element->data, element->len);
		element->data = NULL;
	}
	if (claimed->n > 0)
		engine_active(c);
}

static void
set_due_timer(struct consumer *c)
{
	double first = 0, due;
	int i;

	for (i = 0; i < c->opt->queue_count; i++) {
		due = c->queues[i].due;
		if (due != 0 && (first == 0 || due < first))
			first = due;
	}
	ev_timer_stop(c->loop, &c->due_timer);
	if (first == 0)
		return;
	/* From now on, and not since this turn of the loop has begun. */
	ev_now_update(c->loop);
	first -= mq_clock_steady_s();
	ev_timer_set(&c->due_timer, first > 0 ? first : 0, 0);
	ev_timer_start(c->loop, &c->due_timer);
}

static void
claim_refused(struct consumer *c, const struct mq_answer *answer)
{
	int status = answer->status;

	/* Who might once may do so again, as soon as somebody mends it. */
	if ((status == MQ_EXIT_NOPERM && !c->queues[c->claim_queue].seen) ||
	    status == MQ_EXIT_WRONGTYPE) {
		mq_say("%s: claim: %s%s", c->server.name, answer->error,
		    mq_reply_hint(answer->error));
		policy_stop(&c->policy, STOP_SOON, status, 0);
		return;
	}
	/* The tick tries again. */
	link_complain(c, answer->error);
	if (strncmp(answer->error, "READONLY", 8) == 0)
		link_reset(c, answer->error);
}

static bool
exhausted(const struct consumer *c, const struct mq_claimed *claimed)
{
	size_t bytes = 0;
	int i;

	for (i = 0; i < claimed->n; i++)
		bytes += claimed->elements[i].len;
	return claimed->n < c->claim_max && bytes < CLAIM_BYTES;
}

bool
claim_nothing(const struct consumer *c)
{
	int i;

	for (i = 0; i < c->opt->queue_count; i++)
		if (c->queues[i].more)
			return false;
	return !c->claiming;
}

bool
claim_comes(const struct consumer *c, int queue)
{
	int i;

	if (c->link != LINK_UP || c->complaint[0] != '\0')
		return false;
	if (c->claiming && c->claim_queue == queue && c->claim_max > 0)
		return true;
	for (i = 0; i < queue; i++)
		if (c->queues[i].more)
			return false;
	return c->queues[queue].more && claim_room(c, queue) > 0;
}

/* It is not made again by those who wait for its messages. */
static void
note_missing(struct consumer *c, bool missing)
{
	const char *name = c->opt->queues[c->claim_queue];
	struct queue *q = &c->queues[c->claim_queue];

	if (missing && q->there && !c->opt->quiet)
		mq_say("%s: somebody has deleted the queue; waiting until it "
		       "is there again",
		    name);
	q->there = !missing;
}

/* What one queue had for us. */
static void
take_claimed(struct consumer *c, struct mq_claimed *claimed)
{
	struct queue *q = &c->queues[c->claim_queue];

	q->seen = true;
	message_clock(c, c->claim_queue, claimed);
	if (c->claim_max > 0 && !claimed->paused)
		note_missing(c, claimed->missing);
	/* A look only does not find out what else there is. */
	if (c->claim_max > 0 || claimed->paused)
		q->due = claimed->due_ms < 0 ?
		    0 :
		    mq_clock_steady_s() + (double)claimed->due_ms / 1000;
	if (!claimed->paused && !exhausted(c, claimed)) {
		q->more = true;
		c->claim_empty = false;
	}
	take_elements(c, claimed);
	pause_seen(c, c->claim_queue, claimed->paused);
}

static void
on_claimed(
    void *arg, const struct mq_answer *answer, struct mq_claimed *claimed)
{
	struct consumer *c = arg;

	c->claiming = c->in_pass = false;
	c->moves++;
	if (answer == NULL)
		return;
	if (answer->error != NULL) {
		c->queues[c->claim_queue].more = true;
		claim_refused(c, answer);
		return;
	}
	/* A refused settlement that waits keeps its complaint. */
	if (c->settling == c->in_flight + c->company_count)
		c->complaint[0] = '\0';
	if (claimed->n == MQ_CLAIM_LOST) {
		link_rejoin(c);
		return;
	}
	if (claimed->n == MQ_CLAIM_BAD) {
		link_reset(c, "claim: a reply that makes no sense");
		return;
	}
	take_claimed(c, claimed);
	c->in_pass = true;
	engine_mark(c);
}

static void
send_claim(struct consumer *c)
{
	c->claiming = true;
	/* What changes from now on is told, and maybe before the answer. */
	if (c->claim_max > 0)
		c->queues[c->claim_queue].more = false;
	mq_consumer_claim(
	    &c->self, c->claim_queue, c->claim_max, CLAIM_BYTES, on_claimed, c);
}

/*
 * Asks the next queue that is to be asked.  A later queue comes in for more
 * messages only when the earlier ones have no more.
 */
static bool
claim_next(struct consumer *c, int from)
{
	bool more;
	int i;

	for (i = from; i < c->opt->queue_count; i++) {
		more = c->queues[i].more;
		c->claim_max = more && c->claim_empty ? claim_room(c, i) : 0;
		if (c->claim_max > 0 || (c->looking && pause_matters(c, i))) {
			c->claim_queue = i;
			send_claim(c);
			return true;
		}
		if (more)
			c->claim_empty = false;
		if (!c->claim_empty && !c->looking)
			break;
	}
	return false;
}

void
claim_more(struct consumer *c)
{
	if (c->link != LINK_UP || c->claiming ||
	    policy_level(&c->policy) >= STOP_SOON)
		return;
	if (c->in_pass && claim_next(c, c->claim_queue + 1))
		return;
	/* Every queue has been asked, or there is no more room. */
	if (c->in_pass)
		set_due_timer(c);
	c->looking = c->look_wanted;
	c->look_wanted = false;
	c->claim_empty = true;
	c->in_pass = claim_next(c, 0);
}

void
claim_wake(struct consumer *c)
{
	pause_look_soon(c);
	engine_mark(c);
}

void
claim_look(struct consumer *c)
{
	c->look_wanted = true;
	engine_mark(c);
}

static void
on_due(struct ev_loop *loop, ev_timer *w, int events)
{
	struct consumer *c = w->data;

	(void)loop;
	(void)events;
	changed_due(c);
	claim_wake(c);
}

void
claim_init(struct consumer *c)
{
	int i;

	TAILQ_INIT(&c->messages);
	c->queues = mq_xcalloc((size_t)c->opt->queue_count, sizeof(*c->queues));
	changed_init(c);
	for (i = 0; i < c->opt->queue_count; i++)
		TAILQ_INIT(&c->queues[i].waiting);
	ev_timer_init(&c->due_timer, on_due, 0, 0);
	c->due_timer.data = c;
}
