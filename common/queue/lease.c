#include "lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/xalloc.h"
#include "message/headers.h"
#include "receipt-session.h"
#include "redis/partial.h"

#define CLAIM_BYTES ((size_t)1024 * 1024)
/* So many names are tried. */
#define NAMES 50

struct mq_lease {
	struct receipt_session of;
	struct mq_lease_terms terms;
	char connection[MQ_LEASE_NAME];
	bool joined; /* under this name, and its lease was not found over */
	bool empty;  /* there was nothing the last time */
	redisReply *reply; /* has the elements of the messages */
	struct mq_leased *messages;
	int count;
};

struct mq_lease *
mq_lease_new(
    const struct mq_lease_queue *queue, const struct mq_lease_terms *terms)
{
	struct mq_lease *l = mq_xcalloc(1, sizeof(*l));

	receipt_session_open(&l->of, queue);
	l->terms = *terms;
	l->of.session.connection = l->of.session.consumer = l->connection;
	l->of.session.make = terms->make;
	l->of.session.slots = terms->max;
	l->of.session.attempts = terms->attempts;
	l->of.session.lease_ms = terms->ms;
	return l;
}

static void
forget_messages(struct mq_lease *l)
{
	int i;

	for (i = 0; i < l->count; i++) {
		mq_envelope_free(&l->messages[i].envelope);
		free(l->messages[i].receipt);
	}
	free(l->messages);
	freeReplyObject(l->reply);
	l->messages = NULL;
	l->reply = NULL;
	l->count = 0;
}

void
mq_lease_free(struct mq_lease *l)
{
	forget_messages(l);
	free(l);
}

/* The first step begins the lease, and is confirmed before the others.  A queue that
 * cannot be listed is one nevertheless. */
static int
send_steps(struct mq_lease *l)
{
	struct mq_redis *redis = l->of.queue.redis;
	struct mq_command c = mq_redis_command(redis), asked;
	const char *why;
	bool spare;
	int step;

	for (step = 0; l->of.queue.layout->join(&l->of.session, step, &c);
	     step++) {
		spare = c.optional;
		c.optional = true;
		asked = c;
		if (mq_call_done(redis, &c) == -1)
			return -1;
		why = spare ? NULL : mq_partial_missed(redis, &asked);
		if (why != NULL)
			return mq_redis_fail(
			    redis, MQ_EXIT_UNAVAILABLE, "%s", why);
	}
	mq_command_free(&c);
	return 0;
}

/* Under a new name, of which the keys are not on a node of a cluster that is away. */
static int
join_queue(struct mq_lease *l)
{
	struct mq_redis *redis = l->of.queue.redis;
	int rv, left = NAMES;
	char random[7];

	do {
		mq_id_random(&l->of.ids, random, 6);
		snprintf(l->connection, sizeof(l->connection), "%s-%s",
		    l->terms.tag, random);
		rv = send_steps(l);
	} while (rv == -1 && !mq_redis_lost(redis) &&
	    redis->status == MQ_EXIT_UNAVAILABLE && --left > 0);
	l->of.session.make &= rv == -1;
	l->joined = rv == 0;
	return rv;
}

/* The lease of a connection that found nothing has been running out since. */
static int
keep_joined(struct mq_lease *l)
{
	int held;

	if (l->joined && !l->empty)
		return 0;
	held = l->joined ? receipt_session_renew(&l->of, 0, 1) : 0;
	return held == 0 ? join_queue(l) : held > 0 ? 0 : -1;
}

/* How many elements the reply has; or MQ_CLAIM_LOST. */
static int
claim_messages(struct mq_lease *l, struct mq_claimed *facts)
{
	const struct mq_claim how = {.max = l->terms.max, .bytes = CLAIM_BYTES};
	struct mq_command c = mq_redis_command(l->of.queue.redis);
	int n;

	l->of.queue.layout->claim(&l->of.session, 0, &how, &c);
	l->reply = mq_call(l->of.queue.redis, &c, -1);
	if (l->reply == NULL)
		return -1;
	n = mq_layout_claimed(l->reply, facts);
	if (n == MQ_CLAIM_BAD) {
		(void)mq_nonsense(l->of.queue.redis);
		l->of.queue.redis->status = MQ_EXIT_WRONGTYPE;
		return -1;
	}
	l->joined = n != MQ_CLAIM_LOST;
	l->empty = n == 0;
	return n;
}

/* A message that cannot run goes to the rejected ones instead. */
static int
refuse_message(struct mq_lease *l, struct mq_leased *m, bool late)
{
	const struct mq_counts n = {.failed = !late, .expired = late};
	struct mq_ending end = {
	    .state = late ? MQ_END_EXPIRED : MQ_END_REJECTED,
	    .text = m->why,
	    .status = -1,
	    .finished_ms = mq_clock_unix_us() / 1000};

	if (late)
		mq_envelope_set(&m->envelope, MQ_HEADER_ERROR, m->why);
	if (receipt_session_reject(&l->of, m, late, NULL, &end) == -1)
		return -1;
	receipt_session_count(&l->of, &n);
	return 0;
}

/* Rejects those that cannot run, and gives the others their receipts, in their
 * order.  Returns how many those are. */
static int
sort_messages(struct mq_lease *l, int n, const struct mq_claimed *facts)
{
	const redisReply *e;
	struct mq_leased *m;
	const char *bad;
	int good = 0;
	bool late;

	l->messages = mq_xcalloc((size_t)n, sizeof(*l->messages));
	for (; l->count < n; l->count++) {
		m = &l->messages[l->count];
		e = l->reply->element[facts->first + (size_t)l->count];
		bad = receipt_session_unpack(&l->of, m, e->str, e->len);
		late = bad == NULL &&
		    mq_message_over(&m->envelope, facts->now_ms, facts->tick,
			m->why, sizeof(m->why));
		if (bad != NULL)
			snprintf(m->why, sizeof(m->why), "bad header: %s", bad);
		if (bad == NULL && !late)
			m->receipt =
			    mq_xasprintf("%s.%d", l->connection, ++good);
		else if (refuse_message(l, m, late) == -1)
			return -1;
	}
	return good;
}

/* Makes the receipts known, and begins the lease. */
static int
hand_out_messages(struct mq_lease *l, int n)
{
	struct mq_part *elements = mq_xcalloc((size_t)n, sizeof(*elements));
	struct mq_redis *redis = l->of.queue.redis;
	const struct mq_leased *m = l->messages;
	struct mq_command c = mq_redis_command(redis);
	redisReply *reply;
	int i, held;

	for (i = 0; i < n; m++)
		if (m->receipt != NULL)
			elements[i++] = (struct mq_part){m->element, m->len};
	l->of.queue.layout->receipts(&l->of.session, elements, n, &c);
	free(elements);
	reply = mq_call(l->of.queue.redis, &c, -1);
	if (reply == NULL)
		return -1;
	held = reply->type == REDIS_REPLY_INTEGER && reply->integer == n;
	freeReplyObject(reply);
	if (held)
		held = receipt_session_renew(&l->of, l->terms.ms, 1);
	if (held != 0)
		return held;
	redis->status = MQ_EXIT_AGAIN;
	snprintf(redis->error, sizeof(redis->error), "%s: lease lost",
	    l->connection);
	return -1;
}

int
mq_lease_take(struct mq_lease *l, const struct mq_leased **messages)
{
	struct mq_claimed facts;
	int n, good;

	forget_messages(l);
	if (keep_joined(l) == -1)
		return -1;
	n = claim_messages(l, &facts);
	if (n <= 0)
		return n;
	good = sort_messages(l, n, &facts);
	if (good == -1 || (good > 0 && hand_out_messages(l, good) == -1))
		return -1;
	*messages = l->messages;
	return n;
}

int
mq_lease_undo(struct mq_lease *l)
{
	int i;

	for (i = l->count; i-- > 0;)
		if (l->messages[i].receipt != NULL &&
		    receipt_session_return(&l->of, &l->messages[i], NULL) == -1)
			return -1;
	return mq_lease_end(l);
}

int
mq_lease_end(struct mq_lease *l)
{
	return receipt_session_vacate(&l->of);
}
