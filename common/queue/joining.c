/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The lease of a consumer: joining, under a new name or the old one, renewing, and
 * leaving.
 *
 * On a cluster there are a heartbeat, which Go's cleaners look at, and a lease beside each
 * queue, and the nodes do not keep the order of commands.  So the connection is listed
 * before it writes other keys, and the heartbeat is renewed before the leases, and outlasts
 * them.
 */
#include <sys/param.h>

#include <limits.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "consumer.h"

/* If a renewal of the heartbeat is answered within this time, it outlasts the queue leases
 * that are sent after it. */
#define PROMPT_S 10.0

void
mq_consumer_free(struct mq_consumer *k)
{
	while (k->lapsed_count > 0)
		mq_command_free(&k->lapsed[--k->lapsed_count]);
	free(k->lapsed);
	mq_steps_free(&k->steps);
	free(k->queues);
}

const char *
mq_consumer_away(const struct mq_consumer *k, int queue)
{
	struct mq_steps steps = {.redis = k->redis};
	const char *why = NULL;
	int i, n;

	if (queue == MQ_NEW_NAME)
		/* The steps of leaving have all keys of the connection itself. */
		k->layout->leave(&k->session, MQ_LEAVE_OWN, &steps);
	else if (queue == MQ_OWN_LEASE || k->layout->has & MQ_HAS_NODES)
		k->layout->renew(&k->session, queue, &steps);
	n = queue == MQ_NEW_NAME ? steps.n : MIN(steps.n, 1);
	for (i = 0; i < n && why == NULL; i++)
		why = mq_redis_away(k->redis, &steps.list[i]);
	mq_steps_free(&steps);
	return why;
}

bool
mq_consumer_is_heard(const struct mq_consumer *k)
{
	struct mq_steps steps = {.redis = k->redis};
	bool heard;

	k->layout->renew(&k->session, -1, &steps);
	heard = mq_redis_active(k->redis, &steps.list[0]);
	mq_steps_free(&steps);
	return heard;
}

/* Whether a connection has keys on several nodes.  A layout without MQ_HAS_NODES has all keys
 * in one slot, and joins in one step. */
static bool
is_on_cluster(const struct mq_consumer *k)
{
	return mq_redis_command(k->redis).cluster &&
	    (k->layout->has & MQ_HAS_NODES);
}

/* A reply without the error of a queue that is away: the session enters without that queue,
 * and has no message there. */
static const redisReply *
unless_away(const redisReply *reply)
{
	static const redisReply fine = {.type = REDIS_REPLY_NIL};

	return reply != NULL && mq_reply_missing(reply) ? &fine : reply;
}

static long long
lease_in(const struct mq_consumer *k, const struct mq_answer *a,
    const redisReply *reply)
{
	return mq_answer_good(a) ?
	    mq_layout_lease(k->layout, reply, is_on_cluster(k)) :
	    0;
}

static void
receive_lease(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, NULL, &buf);

	buf.n = lease_in(asker->of, a, reply);
	asker->fn(asker->arg, a);
}

/* Sends at most `most` steps of joining, from number `from` on, and returns the number of all
 * from there on.  fn may be NULL. */
static int
send_steps(struct mq_consumer *k, int from, int most, mq_asker_take *take,
    mq_answer_fn *fn, void *arg)
{
	struct mq_steps steps = {.redis = k->redis};
	int i, n;

	k->layout->join(&k->session, &steps);
	n = steps.n - from;
	for (i = 0; i < MIN(n, most); i++)
		mq_consumer_ask(k, &steps.list[from + i], take, fn, arg);
	mq_steps_free(&steps);
	return n;
}

void
mq_consumer_join(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	(void)send_steps(k, 0, 1, receive_lease, fn, arg);
}

static void
receive_step(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_answer buf;

	if (asker->fn != NULL)
		asker->fn(
		    asker->arg, mq_answer_to(unless_away(reply), NULL, &buf));
}

/* The connection is listed, so that a cleaner finds its other keys: sends their steps. */
static void
receive_listed(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_consumer *k = asker->of;
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(
	    k->session.listed ? unless_away(reply) : reply, NULL, &buf);

	k->session.listed |= mq_answer_good(a);
	asker->fn(asker->arg, a);
	if (mq_answer_good(a))
		(void)send_steps(
		    k, 2, INT_MAX, receive_step, asker->fn, asker->arg);
}

void
mq_consumer_tell_slots(struct mq_consumer *k)
{
	(void)send_steps(k, 1, INT_MAX, receive_step, NULL, NULL);
}

int
mq_consumer_enter(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	int i;

	if (k->queues == NULL)
		k->queues = mq_xcalloc(
		    (size_t)k->session.queue_count, sizeof(*k->queues));
	for (i = 0; i < k->session.queue_count; i++)
		k->queues[i] = (struct mq_consumer_queue){
		    k, mq_consumer_away(k, i) != NULL};
	for (i = 0; i < k->lapsed_count; i++)
		mq_redis_post(k->redis, &k->lapsed[i], NULL, NULL);
	k->lapsed_count = 0;
	return is_on_cluster(k) ?
	    send_steps(k, 1, 1, receive_listed, fn, arg) :
	    send_steps(k, 1, INT_MAX, receive_step, fn, arg);
}

static mq_asker_take receive_renewed;

/* Renews the lease of a queue, or of the connection (-1), whose asker has an arg. */
static void
send_renewal(struct mq_consumer *k, int queue)
{
	struct mq_steps steps = {.redis = k->redis};
	int i;

	k->layout->renew(&k->session, queue, &steps);
	mq_consumer_ask(
	    k, &steps.list[0], receive_renewed, NULL, queue == -1 ? k : NULL);
	for (i = 1; i < steps.n; i++)
		mq_redis_post(k->redis, &steps.list[i], NULL, NULL);
	mq_steps_free(&steps);
}

/* After the connection's lease, renews those of the queues.  The last reply ends the renewal,
 * or the first bad one. */
static void
receive_renewed(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_consumer *k = asker->of;
	bool own = asker->arg != NULL;
	const redisReply *answer = own ? reply : unless_away(reply);
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(answer, NULL, &buf);
	long long ms = lease_in(k, a, answer);
	mq_answer_fn *fn;
	int queue;

	if (own)
		k->renewal.missing = 1;
	if (own && ms != 0 && is_on_cluster(k)) {
		/* After a late reply, the heartbeat might not outlast the leases. */
		if (mq_clock_steady_s() - k->renewal.sent > PROMPT_S) {
			mq_consumer_renew(k, k->renewal.fn, k->renewal.arg);
			return;
		}
		for (queue = 0; queue < k->session.queue_count; queue++) {
			if (mq_consumer_lacks(k, queue))
				continue;
			k->renewal.missing++;
			send_renewal(k, queue);
		}
	}
	fn = k->renewal.fn;
	if (fn == NULL || k->renewal.missing == 0 ||
	    (--k->renewal.missing > 0 && ms != 0))
		return;
	k->renewal.fn = NULL;
	buf.n = ms;
	fn(k->renewal.arg, a);
}

void
mq_consumer_renew(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	k->renewal.fn = fn;
	k->renewal.arg = arg;
	k->renewal.missing = 0;
	k->renewal.sent = mq_clock_steady_s();
	k->session.renewals++;
	send_renewal(k, -1);
}

void
mq_consumer_lapsed(struct mq_consumer *k, int queue, const char *element,
    size_t len, long attempts)
{
	struct mq_command *cmd;

	if (k->layout->lapsed == NULL)
		return;
	k->lapsed = mq_xreallocarray(
	    k->lapsed, (size_t)k->lapsed_count + 1, sizeof(*k->lapsed));
	cmd = &k->lapsed[k->lapsed_count++];
	*cmd = mq_redis_command(k->redis);
	k->layout->lapsed(&k->session, queue, element, len, attempts, cmd);
}

/* --- leaving --------------------------------------------------------------------- */

/* Returns the consumer's messages in bounded steps, and then removes its keys. */

/* On a cluster, sends the next step of leaving after the reply to the one before: the nodes do
 * not keep their order. */
static void
on_left(void *arg, redisReply *reply)
{
	struct mq_consumer *k = arg;
	bool cluster = k->steps.list[0].cluster;
	int next = k->steps.n - --k->leaving;

	if (cluster && (reply == NULL || reply->type == REDIS_REPLY_ERROR))
		k->leaving = 0;
	if (k->leaving == 0)
		k->left(k->left_arg);
	else if (cluster)
		mq_redis_post(k->redis, &k->steps.list[next], on_left, k);
}

static void
end_giving(struct mq_consumer *k)
{
	int queue, i, n;

	/* A queue that is away may have messages of this connection. */
	for (queue = 0; queue < k->session.queue_count; queue++)
		if (mq_consumer_lacks(k, queue)) {
			k->left(k->left_arg);
			return;
		}
	mq_steps_free(&k->steps);
	k->steps.redis = k->redis;
	for (queue = 0; queue < k->session.queue_count; queue++)
		k->layout->leave(&k->session, queue, &k->steps);
	k->layout->leave(&k->session, MQ_LEAVE_OWN, &k->steps);
	k->leaving = k->steps.n;
	n = k->steps.list[0].cluster ? 1 : k->steps.n;
	for (i = 0; i < n; i++)
		mq_redis_post(k->redis, &k->steps.list[i], on_left, k);
}

/* If a message could not be returned, the connection stays listed, and a cleaner does the
 * rest. */
static void
on_given_back(void *arg, const struct mq_answer *a)
{
	struct mq_consumer_queue *q = arg;
	struct mq_consumer *k = q->of;

	if (!mq_answer_good(a))
		k->left(k->left_arg);
	else if (a->n > 0)
		mq_consumer_give_back(
		    k, (int)(q - k->queues), NULL, on_given_back, q);
	else if (--k->leaving == 0)
		end_giving(k);
}

void
mq_consumer_leave(struct mq_consumer *k, void (*left)(void *arg), void *arg)
{
	int queue;

	k->left = left;
	k->left_arg = arg;
	k->leaving = 1;
	for (queue = 0; queue < k->session.queue_count; queue++) {
		if (mq_consumer_lacks(k, queue))
			continue;
		k->leaving++;
		mq_consumer_give_back(
		    k, queue, NULL, on_given_back, &k->queues[queue]);
	}
	if (--k->leaving == 0)
		end_giving(k);
}
