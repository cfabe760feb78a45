#include "comparison.h"

#include <stdlib.h>

#include "base/say.h"
#include "base/xalloc.h"

/* --- messages that the server does not hold for us -------------------------- */

struct exists_request {
	struct comparison *comparison;
	unsigned long number; /* of a message, which may be gone meanwhile */
};

static struct message *
find_message(const struct inbox *in, unsigned long number)
{
	struct message *m = inbox_first(in);

	while (m != NULL && m->number != number)
		m = TAILQ_NEXT(m, link);
	return m;
}

static void
on_exists(void *arg, const struct mq_answer *answer, long long n)
{
	struct exists_request *q = arg;
	struct comparison *c = q->comparison;
	struct message *m = find_message(c->inbox, q->number);

	free(q);
	/* A settling message has an answer of its own. */
	if (answer == NULL || m == NULL || m->lost ||
	    m->state == MESSAGE_SETTLING)
		return;
	if (answer->error != NULL || n != 0)
		tell(c, FACT_TAKEN, .message = m);
	else if (m->state == MESSAGE_HELD)
		inbox_forget(c->inbox, m);
	else
		m->gone = true;
}

/* Another consumer runs the message now, or somebody deleted it. */
static void
ask_exists(struct comparison *c, struct message *m)
{
	struct exists_request *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct exists_request){c, m->number};
	if (mq_consumer_exists(
		c->server, m->queue, m->element, m->len, on_exists, q))
		return;
	free(q);
	tell(c, FACT_TAKEN, .message = m);
}

static void
on_missing(void *arg, struct message *m)
{
	struct comparison *c = arg;

	if (m->state != MESSAGE_SETTLING)
		ask_exists(c, m);
	else if (m->sent)
		/* The settlement arrived; only its answer was lost. */
		outbox_confirm(c->outbox, m);
}

void
comparison_held(struct comparison *c, int queue, struct mq_held *held)
{
	inbox_reconcile(c->inbox, queue, held, on_missing, c);
}

/* --- counting --------------------------------------------------------------- */

struct count_request {
	struct comparison *comparison;
	int queue;
	unsigned long moves;
};

static unsigned long
moves_of(const struct comparison *c)
{
	return inbox_moves(c->inbox) + outbox_moves(c->outbox);
}

static void
on_held(void *arg, const struct mq_answer *answer, struct mq_held *held)
{
	struct count_request *q = arg;
	struct comparison *c = q->comparison;
	int queue = q->queue;

	free(q);
	if (answer == NULL || answer->error != NULL ||
	    !session_is_up(c->session))
		return;
	/* The server answers in order: no earlier answer is missing. */
	comparison_held(c, queue, held);
	tell(c, FACT_WAKE);
}

static void
on_count(void *arg, const struct mq_answer *answer, long long count)
{
	struct count_request *q = arg;
	struct comparison *c = q->comparison;
	long long ours = inbox_count(c->inbox, q->queue);

	if (q->moves != moves_of(c) || answer == NULL ||
	    answer->error != NULL || ours == count ||
	    !session_is_up(c->session)) {
		free(q);
		return;
	}
	if (ours < count && !c->quiet)
		mq_say("%s: the server has unacked messages that this consumer "
		       "does not have",
		    c->server_name);
	mq_consumer_held(c->server, q->queue, on_held, q);
}

void
comparison_tick(struct comparison *c, int queue_count, bool all)
{
	struct count_request *q;
	int i;

	/* An answer that comes before those to these questions spoils the
	 * comparison, and changes the moves. */
	if (inbox_is_claiming(c->inbox) || outbox_settling(c->outbox) > 0)
		return;
	for (i = 0; i < queue_count; i++) {
		if (!all && inbox_count(c->inbox, i) == 0)
			continue;
		q = mq_xcalloc(1, sizeof(*q));
		*q = (struct count_request){c, i, moves_of(c)};
		mq_consumer_held_count(c->server, i, on_count, q);
	}
}
