/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The messages that the server holds for us.  After each join they are compared with the hand's.
 * A stalled server may carry out a command of an old connection later, so the counts are
 * compared once a second, while no message moves.  After the loss of the lease, other consumers
 * may have all messages.
 */
#include "parts.h"

struct question {
	struct engine *engine;
	int queue;
	unsigned long number; /* a message's; or hand_moves() */
};

static struct question *
make_question(struct engine *e, int queue, unsigned long number)
{
	struct question *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct question){e, queue, number};
	return q;
}

/* --- messages that the server does not hold -------------------------------------- */

/* Another consumer has the message now.  If the message has ended, or its settlement is answered,
 * a fact about it is on its way. */
static void
lose_message(struct engine *e, struct message *m)
{
	if (m->state == MESSAGE_SETTLED)
		return;
	outbox_lose(
	    e->outbox, m, "lease lost: another consumer has the message now");
	hand_lose(e->hand, m, false);
	if (m->state == MESSAGE_ENDED ||
	    (m->state == MESSAGE_RUNNING && executor_take_away(e->executor, m)))
		return;
	hand_forget(e->hand, m);
}

static void
on_exists(void *arg, const struct mq_answer *answer)
{
	struct question *q = arg;

	if (answer != NULL)
		tell(q->engine, FACT_EXISTS, .n = (long long)q->number,
		    .yes = answer->error != NULL || answer->n != 0);
	free(q);
}

void
holdings_found(struct engine *e, const struct fact *f)
{
	struct message *m = hand_find(e->hand, (unsigned long)f->n);

	/* The fate of a settling message is told by the answer to its settlement. */
	if (m == NULL || m->lost || m->state >= MESSAGE_SETTLING)
		return;
	if (f->yes)
		lose_message(e, m);
	else if (m->state == MESSAGE_UNSTARTED)
		hand_forget(e->hand, m);
	else
		hand_lose(e->hand, m, true);
}

static void
note_missing(struct engine *e, struct message *m)
{
	if (m->state == MESSAGE_SETTLING) {
		/* The settlement arrived; only its answer was lost. */
		if (m->sent)
			outbox_confirm(e->outbox, m);
		return;
	}
	/* Another consumer has the message now, or somebody deleted it. */
	if (e->opt->layout->exists == NULL)
		lose_message(e, m);
	else
		mq_consumer_exists(e->consumer, m->queue, m->element, m->len,
		    on_exists, make_question(e, m->queue, m->number));
}

void
holdings_compare(struct engine *e, const struct fact *f)
{
	struct message *m, *next;

	/* A claim answered since then gave the hand more messages than the server listed.  The
	 * next count tells whether to ask again. */
	if (!f->yes && (unsigned long)f->n != hand_moves(e->hand))
		return;
	hand_compare(e->hand, f->queue, f->holdings);
	for (m = hand_missing(e->hand, f->queue, NULL); m != NULL; m = next) {
		next = hand_missing(e->hand, f->queue, m);
		note_missing(e, m);
	}
}

/* --- counts -------------------------------------------------------------------- */

/* The server answers in order: the moves of now include all earlier answers. */
static void
on_held(void *arg, const struct mq_answer *answer)
{
	struct question *q = arg;
	struct engine *e = q->engine;

	if (mq_answer_good(answer) && session_is_up(e->session))
		tell(e, FACT_HOLDINGS, .queue = q->queue,
		    .n = (long long)hand_moves(e->hand),
		    .holdings = fact_holdings(answer->held));
	free(q);
}

static void
on_count(void *arg, const struct mq_answer *answer)
{
	struct question *q = arg;
	struct engine *e = q->engine;
	long long ours = hand_owned(e->hand, q->queue);

	if (q->number != hand_moves(e->hand) || !mq_answer_good(answer) ||
	    ours == answer->n || !session_is_up(e->session)) {
		free(q);
		return;
	}
	if (ours < answer->n && !e->opt->quiet)
		mq_say("%s: the server has unacked messages that this consumer "
		       "does not have",
		    e->server->name);
	mq_consumer_held(e->consumer, q->queue, on_held, q);
}

static void
count_queue(struct engine *e, int queue)
{
	mq_consumer_count_held(e->consumer, MQ_HELD_COUNT, &queue, 1, on_count,
	    make_question(e, queue, hand_moves(e->hand)));
}

static void
on_some(void *arg, const struct mq_answer *answer)
{
	struct engine *e = arg;
	int i;

	if (!mq_answer_good(answer) || answer->n == 0)
		return;
	/* Queues with messages of ours are counted already. */
	for (i = 0; i < e->opt->queue_count; i++)
		if (hand_owned(e->hand, i) == 0)
			count_queue(e, i);
}

void
holdings_count(struct engine *e, bool all)
{
	int *empty, n = 0, i;

	/* The answer to a claim or a settlement would come before, and spoil the comparison. */
	if (inbox_is_claiming(e->inbox) ||
	    hand_count(e->hand, -1, MESSAGE_SETTLING) > 0)
		return;
	empty = mq_xcalloc((size_t)e->opt->queue_count, sizeof(*empty));
	for (i = 0; i < e->opt->queue_count; i++)
		if (hand_owned(e->hand, i) == 0)
			empty[n++] = i;
		else
			count_queue(e, i);
	if (all)
		mq_consumer_count_held(
		    e->consumer, MQ_HELD_KEY, empty, n, on_some, e);
	free(empty);
}

/* --- a lost lease -------------------------------------------------------------- */

/* Whether the end of a lost message is yet to be told: by its run, a fact or an answer. */
static bool
has_end(struct engine *e, struct message *m)
{
	return m->state == MESSAGE_ENDED ||
	    (m->state == MESSAGE_RUNNING &&
		executor_take_away(e->executor, m)) ||
	    (m->state == MESSAGE_SETTLING && m->in_flight);
}

void
holdings_lose(struct engine *e)
{
	struct message *m, *next;

	for (m = hand_after(e->hand, -1, NULL); m != NULL; m = next) {
		next = hand_after(e->hand, -1, m);
		if (m->lost || m->state == MESSAGE_SETTLED)
			continue;
		mq_consumer_lapsed(
		    e->consumer, m->queue, m->element, m->len, m->attempts);
		if (m->state != MESSAGE_UNSTARTED)
			outbox_lose(e->outbox, m,
			    "lease lost: others may get the message");
		hand_lose(e->hand, m, false);
		if (has_end(e, m))
			continue;
		if (m->state == MESSAGE_SETTLING)
			outbox_drop(e->outbox, m);
		hand_forget(e->hand, m);
	}
	executor_kill(e->executor, SIGKILL);
	outbox_down(e->outbox);
	hand_renamed(e->hand);
	jobs_clean_soon(e->jobs);
}

void
holdings_check_lease(struct engine *e)
{
	if (e->ending || session_holds_lease(e->session))
		return;
	holdings_lose(e);
	session_lapsed(e->session);
}
