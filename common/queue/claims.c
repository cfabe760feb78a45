/*
 * What a consumer gets: claims, and the messages that the server holds for it.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "consumer.h"
#include "redis/reply.h"

/* A claim that may get large messages takes one, and more if the last ones were
 * small. */
#define MOST 64

/* The bytes are taken out of the replies instead of being copied: a message may
 * be large. */
static struct mq_element *
elements_new(redisReply *const *replies, int n)
{
	struct mq_element *elements =
	    mq_xcalloc((size_t)n + 1, sizeof(*elements));
	int i;

	for (i = 0; i < n; i++) {
		elements[i] =
		    (struct mq_element){replies[i]->str, replies[i]->len};
		replies[i]->str = NULL;
	}
	return elements;
}

static void
elements_free(struct mq_element *elements, int n)
{
	while (n > 0)
		free(elements[--n].data);
	free(elements);
}

/* --- claims ------------------------------------------------------------------- */

static void send_claim(struct mq_consumer *, const struct mq_asker *);

static void
report_claimed(const struct mq_asker *asker, const struct mq_answer *a,
    struct mq_claimed *claimed, redisReply *const *replies)
{
	int n = claimed->n;

	if (n > 0)
		claimed->elements = elements_new(replies, n);
	((mq_claimed_fn *)asker->fn)(asker->arg, a, claimed);
	elements_free(claimed->elements, n);
}

/* The number of messages among the replies to a transaction; they are put at the
 * beginning of found. */
static int
find_moved(const redisReply *exec, redisReply **found)
{
	size_t i;
	int n = 0;

	for (i = 1; i < exec->elements; i++)
		if (exec->element[i]->type == REDIS_REPLY_STRING)
			found[n++] = exec->element[i];
	return n;
}

static void
take_moved(const struct mq_asker *asker, const redisReply *exec)
{
	struct mq_consumer *k = (struct mq_consumer *)(uintptr_t)asker->of;
	const redisReply *facts = exec->element[0];
	redisReply *found[MOST + 3];
	struct mq_claimed claimed = {0};
	struct mq_answer buf;
	const struct mq_answer *a =
	    mq_answer_to((redisReply *)(uintptr_t)facts, -1, &buf);
	int i, n = mq_layout_claimed(facts, &claimed);

	claimed.n = n;
	if (n > 0) {
		report_claimed(
		    asker, a, &claimed, facts->element + claimed.first);
		return;
	}
	if (n == 0)
		claimed.n = find_moved(exec, found);
	k->claim.ahead_ms = claimed.now_ms - mq_clock_steady_ms();
	k->claim.most = k->claim.most < MOST ? 2 * k->claim.most : MOST;
	for (i = 0; i < claimed.n; i++)
		if (found[i]->len >= MQ_LARGE)
			k->claim.most = 1;
	report_claimed(asker, a, &claimed, found);
}

/* An error says that this user, or server, has to claim in the usual way. */
static void
take_transaction(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_consumer *k = (struct mq_consumer *)(uintptr_t)asker->of;
	struct mq_claimed none = {0};

	if (reply == NULL) {
		report_claimed(asker, NULL, &none, NULL);
	} else if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
	    reply->element[0]->type != REDIS_REPLY_ERROR) {
		take_moved(asker, reply);
	} else {
		k->session.apart = reply->type == REDIS_REPLY_ARRAY &&
		    reply->elements > 0 && mq_reply_noscript(reply->element[0]);
		send_claim(k, asker);
	}
}

static void
send_transaction(struct mq_consumer *k, const struct mq_asker *asker)
{
	int most = k->session.rate_s > 0 ? 1 : k->claim.most, step;
	struct mq_claim how = k->claim.how;
	struct mq_command cmd = {0};

	how.max = how.max < most ? how.max : most;
	how.bytes = 1;
	mq_command_plain(&cmd, "MULTI");
	mq_async_send(k->async, &cmd, NULL, NULL);
	for (step = 0; k->layout->claim_large(
		 &k->session, k->claim.queue, &how, step, &cmd);
	     step++)
		mq_async_send(k->async, &cmd, NULL, NULL);
	mq_command_plain(&cmd, "EXEC");
	mq_async_ask(k->async, &cmd, take_transaction, asker);
}

static void
take_claimed(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_consumer *k = (struct mq_consumer *)(uintptr_t)asker->of;
	struct mq_claimed claimed = {0};
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, -1, &buf);
	int n = mq_answer_good(a) ? mq_layout_claimed(reply, &claimed) : 0;

	claimed.n = n;
	if (n == 0 && claimed.large && k->atomic) {
		send_transaction(k, asker);
	} else if (n == 0 && claimed.large) {
		k->session.apart = false;
		send_claim(k, asker);
	} else {
		report_claimed(asker, a, &claimed,
		    n > 0 ? reply->element + claimed.first : NULL);
	}
}

static void
send_claim(struct mq_consumer *k, const struct mq_asker *asker)
{
	struct mq_command cmd = {0};

	if (k->claim.how.tracked) {
		k->layout->track(
		    &k->session, k->claim.queue, k->claim.how.max == 0, &cmd);
		cmd.tracked = true;
		mq_async_send(k->async, &cmd, NULL, NULL);
	}
	k->layout->claim(&k->session, k->claim.queue, &k->claim.how, &cmd);
	mq_async_ask(k->async, &cmd, take_claimed, asker);
}

static void
take_empty(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_consumer *k = (struct mq_consumer *)(uintptr_t)asker->of;

	k->atomic = reply != NULL && reply->type == REDIS_REPLY_ARRAY;
}

/* If MULTI were refused, the server would carry out the commands behind it. */
static void
try_transaction(struct mq_consumer *k)
{
	struct mq_command cmd = {0};

	mq_command_plain(&cmd, "MULTI");
	mq_async_send(k->async, &cmd, NULL, NULL);
	mq_command_plain(&cmd, "EXEC");
	mq_async_ask(
	    k->async, &cmd, take_empty, &(struct mq_asker){NULL, NULL, k});
}

void
mq_consumer_claim(struct mq_consumer *k, int queue, const struct mq_claim *how,
    mq_claimed_fn *fn, void *arg)
{
	k->claim.queue = queue;
	k->claim.how = *how;
	if (k->claim.most == 0) {
		k->claim.most = 1;
		k->session.apart = k->layout->claim_large != NULL;
		if (k->session.apart)
			try_transaction(k);
	}
	send_claim(k, &(struct mq_asker){(mq_callback *)fn, arg, k});
}

/* --- messages that the server holds ------------------------------------------- */

static void
take_held(const struct mq_asker *asker, redisReply *reply)
{
	mq_held_fn *fn = (mq_held_fn *)asker->fn;
	struct mq_held held = {0};
	struct mq_answer buf;
	const struct mq_answer *a =
	    mq_answer_to(reply, REDIS_REPLY_ARRAY, &buf);
	int n = 0;

	if (mq_answer_good(a)) {
		n = (int)reply->elements - 1;
		held = (struct mq_held){reply->element[0]->integer,
		    elements_new(reply->element + 1, n), n};
	}
	fn(asker->arg, a, &held);
	elements_free(held.elements, n);
}

void
mq_consumer_held(struct mq_consumer *k, int queue, mq_held_fn *fn, void *arg)
{
	struct mq_command cmd = {0};

	k->layout->held(&k->session, queue, &cmd);
	mq_async_ask(k->async, &cmd, take_held,
	    &(struct mq_asker){(mq_callback *)fn, arg, NULL});
}
