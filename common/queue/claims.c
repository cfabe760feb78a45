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
	int most = k->claim.how.rate.per_s > 0 ? 1 : k->claim.most, step;
	struct mq_claim how = k->claim.how;
	struct mq_command cmd = mq_async_command(k->async);

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
take_empty(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_consumer *k = (struct mq_consumer *)(uintptr_t)asker->of;

	k->atomic = reply != NULL && reply->type == REDIS_REPLY_ARRAY;
}

/* If MULTI were refused, the server would carry out the commands behind it. */
static void
try_transaction(struct mq_consumer *k)
{
	struct mq_command cmd = mq_async_command(k->async);

	mq_command_plain(&cmd, "MULTI");
	mq_async_send(k->async, &cmd, NULL, NULL);
	mq_command_plain(&cmd, "EXEC");
	mq_async_ask(
	    k->async, &cmd, take_empty, &(struct mq_asker){NULL, NULL, k});
}

/* --- a large message that is due ---------------------------------------------- */

static void
claim_whole(struct mq_consumer *k, const struct mq_asker *asker)
{
	k->session.apart = false;
	send_claim(k, asker);
	k->session.apart = true;
}

/* WATCH may be refused, as may each. */
static void
take_step(void *arg, redisReply *reply)
{
	struct mq_consumer *k = arg;

	if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
		k->leading = false;
}

static void
ask_each(struct mq_consumer *k, struct mq_command *c, int n,
    mq_async_take *take, const struct mq_asker *asker)
{
	int i;

	for (i = 0; i < n - 1; i++)
		if (c[i].script != NULL)
			mq_async_send_eval(k->async, &c[i]);
		else
			mq_async_send(k->async, &c[i], take_step, k);
	mq_async_ask(k->async, &c[i], take, asker);
}

/* The next one may be due, too, but those that are ready have their turn. */
static void
take_led(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_consumer *k = (struct mq_consumer *)(uintptr_t)asker->of;
	struct mq_claimed none = {0};

	k->leading = false;
	if (reply == NULL)
		report_claimed(asker, NULL, &none, NULL);
	else if (mq_layout_led(reply))
		send_transaction(k, asker);
	else
		claim_whole(k, asker);
}

static void
take_large_due(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_consumer *k = (struct mq_consumer *)(uintptr_t)asker->of;
	const char *queue = k->session.queues[k->claim.queue];
	struct mq_command c[MQ_LEAD] = {{.script = NULL}};
	int n = 0;

	if (k->leading && reply != NULL)
		n = k->layout->lead_move(queue, reply, c);
	if (n > 0) {
		ask_each(k, c, n, take_led, asker);
		return;
	}
	/* Nothing is watched behind it. */
	if (reply != NULL)
		try_transaction(k);
	take_led(asker, reply);
}

static void
lead_large(struct mq_consumer *k, int64_t now_ms, const struct mq_asker *asker)
{
	const char *queue = k->session.queues[k->claim.queue];
	struct mq_command c[MQ_LEAD] = {{.script = NULL}};

	k->leading = true;
	ask_each(k, c, k->layout->lead_look(queue, now_ms, c), take_large_due,
	    asker);
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
	if (n == 0 && claimed.large_due && k->atomic) {
		lead_large(k, claimed.now_ms, asker);
	} else if (n == 0 && claimed.large && k->atomic) {
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
	struct mq_command cmd = mq_async_command(k->async);

	if (k->claim.how.tracked) {
		k->layout->track(
		    &k->session, k->claim.queue, k->claim.how.max == 0, &cmd);
		cmd.tracked = true;
		mq_async_send(k->async, &cmd, NULL, NULL);
	}
	k->layout->claim(&k->session, k->claim.queue, &k->claim.how, &cmd);
	mq_async_ask(k->async, &cmd, take_claimed, asker);
}

void
mq_consumer_claim(struct mq_consumer *k, int queue, const struct mq_claim *how,
    mq_claimed_fn *fn, void *arg)
{
	k->claim.queue = queue;
	k->claim.how = *how;
	if (k->claim.most == 0) {
		k->claim.most = 1;
		/* On a cluster, MULTI names no node. */
		k->session.apart = k->layout->claim_large != NULL &&
		    !mq_async_command(k->async).cluster;
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

/* What a connection's claims have brought, and the list of what it holds. */
static const struct mq_answer *
read_held_apart(
    const redisReply *exec, struct mq_held *held, struct mq_answer *buf)
{
	const redisReply *claimed = exec->element[0];
	redisReply *list = exec->element[1];
	const struct mq_answer *a = mq_answer_to(list, REDIS_REPLY_ARRAY, buf);

	if (!mq_answer_good(a))
		return a;
	held->received =
	    claimed->str != NULL ? strtoll(claimed->str, NULL, 10) : 0;
	held->n = (int)list->elements;
	held->elements = elements_new(list->element, held->n);
	return a;
}

/* After an error, the script tells the next time. */
static void
take_held_apart(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_consumer *k = (struct mq_consumer *)(uintptr_t)asker->of;
	mq_held_fn *fn = (mq_held_fn *)asker->fn;
	struct mq_held held = {0};
	struct mq_answer buf;
	const struct mq_answer *a =
	    mq_answer_to(reply, REDIS_REPLY_ARRAY, &buf);

	if (mq_answer_good(a))
		a = read_held_apart(reply, &held, &buf);
	k->atomic = k->atomic && (a == NULL || a->error == NULL);
	fn(asker->arg, a, &held);
	elements_free(held.elements, held.n);
}

static void
send_held_apart(struct mq_consumer *k, int queue, mq_held_fn *fn, void *arg)
{
	struct mq_command cmd = mq_async_command(k->async);
	int step;

	mq_command_plain(&cmd, "MULTI");
	mq_async_send(k->async, &cmd, NULL, NULL);
	for (step = 0; k->layout->held_apart(&k->session, queue, step, &cmd);
	     step++)
		mq_async_send(k->async, &cmd, NULL, NULL);
	mq_command_plain(&cmd, "EXEC");
	mq_async_ask(k->async, &cmd, take_held_apart,
	    &(struct mq_asker){(mq_callback *)fn, arg, k});
}

void
mq_consumer_held(struct mq_consumer *k, int queue, mq_held_fn *fn, void *arg)
{
	struct mq_command cmd = mq_async_command(k->async);

	if (k->atomic && k->layout->held_apart != NULL) {
		send_held_apart(k, queue, fn, arg);
		return;
	}
	k->layout->held(&k->session, queue, &cmd);
	mq_async_ask(k->async, &cmd, take_held,
	    &(struct mq_asker){(mq_callback *)fn, arg, NULL});
}
