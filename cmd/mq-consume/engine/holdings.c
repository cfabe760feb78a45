/*
 * The messages that the server holds for us.  After each join they are compared with ours.  A
 * stalled server may carry out a command of an old connection later: so once a second, while
 * no message moves, their number is.  And a lost lease: others may have them all.
 */
#include "parts.h"

struct question {
	struct engine *engine;
	int queue;
	/* Of a message, which may be gone meanwhile; or the moves so far. */
	unsigned long number;
};

static struct question *
make_question(struct engine *e, int queue, unsigned long number)
{
	struct question *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct question){e, queue, number};
	return q;
}

/* --- messages that the server does not hold -------------------------------------- */

/* Another consumer has the message now.  One that has ended, or is answered, has a fact of its
 * own. */
static void
take_over(struct engine *e, struct message *m)
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

	/* A settling message has an answer of its own. */
	if (m == NULL || m->lost || m->state >= MESSAGE_SETTLING)
		return;
	if (f->yes)
		take_over(e, m);
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
	/* Another consumer runs the message now, or somebody deleted it. */
	if (e->opt->layout->exists == NULL)
		take_over(e, m);
	else
		mq_consumer_exists(e->consumer, m->queue, m->element, m->len,
		    on_exists, make_question(e, m->queue, m->number));
}

void
holdings_compare(struct engine *e, const struct fact *f)
{
	struct message *m, *next;

	/* A claim may have been answered together with this question, after it: the hand has
	 * more than the server had then.  The next count tells whether to ask again. */
	if (!f->yes && (unsigned long)f->n != hand_moves(e->hand))
		return;
	hand_compare(e->hand, f->queue, f->holdings);
	for (m = hand_missing(e->hand, f->queue, NULL); m != NULL; m = next) {
		next = hand_missing(e->hand, f->queue, m);
		note_missing(e, m);
	}
}

/* --- their number -------------------------------------------------------------- */

/* The server answers in order: no earlier answer is missing. */
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
	/* The others are counted already. */
	for (i = 0; i < e->opt->queue_count; i++)
		if (hand_owned(e->hand, i) == 0)
			count_queue(e, i);
}

void
holdings_count(struct engine *e, bool all)
{
	int *empty, n = 0, i;

	/* An answer that comes before those to these questions spoils the
	 * comparison, and changes the moves. */
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

/* One that runs, has ended, or is in flight has an end of its own. */
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
