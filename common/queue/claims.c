/*
 * What a consumer gets: claims, and the messages that the server holds for it.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "consumer-parts.h"

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

static void
take_claimed(const struct mq_asker *asker, redisReply *reply)
{
	mq_claimed_fn *fn = (mq_claimed_fn *)asker->fn;
	struct mq_claimed claimed = {0};
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, -1, &buf);
	int n = mq_answer_good(a) ? mq_layout_claimed(reply, &claimed) : 0;

	claimed.n = n;
	if (n > 0)
		claimed.elements =
		    elements_new(reply->element + claimed.first, n);
	fn(asker->arg, a, &claimed);
	elements_free(claimed.elements, n);
}

void
mq_consumer_claim(struct mq_consumer *k, int queue, const struct mq_claim *how,
    mq_claimed_fn *fn, void *arg)
{
	struct mq_command cmd = mq_async_command(k->async);

	if (how->tracked) {
		k->layout->track(&k->session, queue, how->max == 0, &cmd);
		cmd.tracked = true;
		mq_async_send(k->async, &cmd, NULL, NULL);
	}
	k->layout->claim(&k->session, queue, how, &cmd);
	mq_consumer_ask(k, &cmd, take_claimed, (mq_callback *)fn, arg);
}

/* --- messages that the server holds ------------------------------------------- */

struct held_request {
	struct mq_consumer *consumer;
	int queue;
	mq_held_fn *fn;
	void *arg;
};

static void ask_held(struct held_request *, bool script);

/* Frees the request. */
static void
report_held(struct held_request *q, const struct mq_answer *a,
    long long received, redisReply *const *elements, size_t n)
{
	struct mq_held held = {received, NULL, (int)n};

	if (n > 0)
		held.elements = elements_new(elements, held.n);
	q->fn(q->arg, a, &held);
	elements_free(held.elements, held.n);
	free(q);
}

static void
take_held(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_answer buf;
	const struct mq_answer *a =
	    mq_answer_to(reply, REDIS_REPLY_ARRAY, &buf);

	if (mq_answer_good(a))
		report_held(asker->arg, a, reply->element[0]->integer,
		    reply->element + 1, reply->elements - 1);
	else
		report_held(asker->arg, a, 0, NULL, 0);
}

/* After an error, the script tells: transactions may not be permitted, or the queue
 * be on its way to another node. */
static void
take_transaction(const struct mq_asker *asker, redisReply *reply)
{
	struct held_request *q = asker->arg;
	const redisReply *count, *list;
	struct mq_answer answer = {0};

	if (reply == NULL) {
		report_held(q, NULL, 0, NULL, 0);
		return;
	}
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    reply->element[1]->type != REDIS_REPLY_ARRAY) {
		ask_held(q, true);
		return;
	}
	count = reply->element[0];
	list = reply->element[1];
	report_held(q, &answer,
	    count->type == REDIS_REPLY_STRING ? strtoll(count->str, NULL, 10) :
						0,
	    list->element, list->elements);
}

static void
send_end(struct mq_consumer *k, const char *name, int slot, mq_async_take *take,
    struct held_request *q)
{
	struct mq_command c = mq_async_command(k->async);

	mq_command_plain(&c, name);
	c.slot = slot;
	if (take == NULL)
		mq_async_send(k->async, &c, NULL, NULL);
	else
		mq_consumer_ask(k, &c, take, NULL, q);
}

/* One command, or two as a transaction, which on a cluster is at their node. */
static void
ask_held(struct held_request *q, bool script)
{
	struct mq_consumer *k = q->consumer;
	struct mq_command c[2] = {
	    mq_async_command(k->async), mq_async_command(k->async)};
	int slot;

	if (k->layout->held(&k->session, q->queue, script, c) == 1) {
		mq_consumer_ask(k, &c[0], take_held, NULL, q);
		return;
	}
	slot = c[0].slot;
	send_end(k, "MULTI", slot, NULL, q);
	mq_async_send(k->async, &c[0], NULL, NULL);
	mq_async_send(k->async, &c[1], NULL, NULL);
	send_end(k, "EXEC", slot, take_transaction, q);
}

void
mq_consumer_held(struct mq_consumer *k, int queue, mq_held_fn *fn, void *arg)
{
	struct held_request *q = mq_xcalloc(1, sizeof(*q));

	*q = (struct held_request){k, queue, fn, arg};
	ask_held(q, false);
}
