/*
 * The lease of a consumer: joining, under a new name or the old one, renewing, and
 * leaving.
 *
 * On a cluster there are a heartbeat, which Go's cleaners look at, and a lease beside each
 * queue, and the nodes do not keep the order of commands.  So the connection is listed
 * before it writes other keys, and the heartbeat is renewed before the leases, and outlasts
 * them.
 */
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
	free(k->queues);
}

/* For a new name, the last steps of leaving have all keys that are not beside a queue. */
const char *
mq_consumer_away(const struct mq_consumer *k, int queue)
{
	struct mq_command cmd = mq_redis_command(k->redis);
	const char *why = NULL;
	int step = k->session.queue_count;

	if (queue == MQ_NEW_NAME)
		for (; why == NULL && k->layout->leave(&k->session, step, &cmd);
		     step++)
			why = mq_redis_away(k->redis, &cmd);
	else if ((queue == MQ_OWN_LEASE || k->layout->has & MQ_HAS_NODES) &&
	    k->layout->renew(&k->session, queue, 0, &cmd))
		why = mq_redis_away(k->redis, &cmd);
	mq_command_free(&cmd);
	return why;
}

bool
mq_consumer_is_heard(const struct mq_consumer *k)
{
	struct mq_command cmd = mq_redis_command(k->redis);
	bool heard;

	(void)k->layout->renew(&k->session, -1, 0, &cmd);
	heard = mq_redis_active(k->redis, &cmd);
	mq_command_free(&cmd);
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
take_lease(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, NULL, &buf);

	buf.n = lease_in(asker->of, a, reply);
	asker->fn(asker->arg, a);
}

void
mq_consumer_join(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);

	k->layout->join(&k->session, 0, &cmd);
	mq_consumer_ask(k, &cmd, take_lease, fn, arg);
}

static void
take_step(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_answer buf;

	if (asker->fn != NULL)
		asker->fn(
		    asker->arg, mq_answer_to(unless_away(reply), NULL, &buf));
}

/* Sends the steps of joining from this one on, and returns their number.  fn may be NULL. */
static int
send_steps(struct mq_consumer *k, int from, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);
	int step;

	for (step = from; k->layout->join(&k->session, step, &cmd); step++)
		mq_consumer_ask(k, &cmd, take_step, fn, arg);
	mq_command_free(&cmd);
	return step - from;
}

/* The connection is listed, so that a cleaner finds its other keys: sends their steps. */
static void
take_listed(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_consumer *k = asker->of;
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(
	    k->session.listed ? unless_away(reply) : reply, NULL, &buf);

	k->session.listed |= mq_answer_good(a);
	asker->fn(asker->arg, a);
	if (mq_answer_good(a))
		(void)send_steps(k, 2, asker->fn, asker->arg);
}

void
mq_consumer_tell_slots(struct mq_consumer *k)
{
	(void)send_steps(k, 1, NULL, NULL);
}

int
mq_consumer_enter(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_redis_command(k->redis);
	int i, step;

	if (k->queues == NULL)
		k->queues = mq_xcalloc(
		    (size_t)k->session.queue_count, sizeof(*k->queues));
	for (i = 0; i < k->session.queue_count; i++)
		k->queues[i] = (struct mq_consumer_queue){
		    k, mq_consumer_away(k, i) != NULL};
	for (i = 0; i < k->lapsed_count; i++)
		mq_redis_post(k->redis, &k->lapsed[i], NULL, NULL);
	k->lapsed_count = 0;
	if (!is_on_cluster(k))
		return send_steps(k, 1, fn, arg);
	(void)k->layout->join(&k->session, 1, &cmd);
	mq_consumer_ask(k, &cmd, take_listed, fn, arg);
	for (step = 1; k->layout->join(&k->session, step, &cmd); step++)
		;
	mq_command_free(&cmd);
	return step - 1;
}

static mq_asker_take take_renewed;

/* Renews the lease of a queue, or of the connection (-1), whose asker has an arg. */
static void
send_renewal(struct mq_consumer *k, int queue)
{
	struct mq_command cmd = mq_redis_command(k->redis);
	int step;

	for (step = 0; k->layout->renew(&k->session, queue, step, &cmd); step++)
		if (step == 0)
			mq_consumer_ask(k, &cmd, take_renewed, NULL,
			    queue == -1 ? k : NULL);
		else
			mq_redis_post(k->redis, &cmd, NULL, NULL);
	mq_command_free(&cmd);
}

/* After the connection's lease, renews those of the queues.  The last reply ends the renewal,
 * or the first bad one. */
static void
take_renewed(const struct mq_asker *asker, redisReply *reply)
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

/* Sends the next step of leaving after the reply to the one before: the nodes of a cluster do
 * not keep their order. */
static void
on_left(void *arg, redisReply *reply)
{
	struct mq_consumer *k = arg;
	struct mq_command cmd = mq_redis_command(k->redis);

	if (cmd.cluster && reply != NULL && reply->type != REDIS_REPLY_ERROR &&
	    k->layout->leave(&k->session, k->leave_step++, &cmd)) {
		k->leaving++;
		mq_redis_post(k->redis, &cmd, on_left, k);
	}
	mq_command_free(&cmd);
	if (--k->leaving == 0)
		k->left(k->left_arg);
}

static void
end_giving(struct mq_consumer *k)
{
	const redisReply go = {.type = REDIS_REPLY_NIL};
	struct mq_command cmd = mq_redis_command(k->redis);
	int queue;

	/* A queue that is away may have messages of this connection. */
	for (queue = 0; queue < k->session.queue_count; queue++)
		if (mq_consumer_lacks(k, queue)) {
			k->left(k->left_arg);
			return;
		}
	k->leaving = 1;
	k->leave_step = 0;
	while (!cmd.cluster &&
	    k->layout->leave(&k->session, k->leave_step++, &cmd)) {
		k->leaving++;
		mq_redis_post(k->redis, &cmd, on_left, k);
	}
	mq_command_free(&cmd);
	on_left(k, (redisReply *)(uintptr_t)&go);
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
