/*
 * The lease of a consumer: joining, under a new name or the old one, and renewing.
 *
 * On a cluster there is a lease beside each queue, as well as the heartbeat, and the
 * nodes do not keep the order of the commands.  So the connection is listed before it
 * leaves anything else behind, and its heartbeat, which Go's cleaners look at, is always
 * renewed before the leases, and outlasts them.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "consumer-parts.h"
#include "redis/reply.h"

/* A heartbeat whose renewal was answered so soon, in seconds, outlasts the leases of
 * queues that are renewed then. */
#define PROMPT_S 10.0

void
mq_consumer_free(struct mq_consumer *k)
{
	while (k->lapsed_count > 0)
		mq_command_free(&k->lapsed[--k->lapsed_count]);
	free(k->lapsed);
	k->lapsed = NULL;
}

/* Whether a connection has keys on several nodes.  A layout without leases of single
 * queues has all in one slot, and joins in one step. */
static bool
is_on_cluster(const struct mq_consumer *k)
{
	return mq_async_command(k->async).cluster &&
	    k->layout->renew_queue != NULL;
}

static struct mq_consumer *
consumer_of(const struct mq_asker *asker)
{
	return (struct mq_consumer *)(uintptr_t)asker->of;
}

static long long
lease_in(const struct mq_consumer *k, const struct mq_answer *a,
    const redisReply *reply)
{
	return mq_answer_good(a) ? k->layout->lease(reply, is_on_cluster(k)) :
				   0;
}

static void
take_lease(const struct mq_asker *asker, redisReply *reply)
{
	mq_number_fn *fn = (mq_number_fn *)asker->fn;
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, -1, &buf);

	fn(asker->arg, a, lease_in(consumer_of(asker), a, reply));
}

void
mq_consumer_join(struct mq_consumer *k, mq_number_fn *fn, void *arg)
{
	struct mq_command cmd = mq_async_command(k->async);

	k->layout->join(&k->session, 0, &cmd);
	mq_consumer_ask(k, &cmd, take_lease, (mq_callback *)fn, arg);
}

static void
send_lapsed(struct mq_consumer *k)
{
	int i;

	for (i = 0; i < k->lapsed_count; i++)
		mq_async_send(k->async, &k->lapsed[i], NULL, NULL);
	k->lapsed_count = 0;
}

/* The steps of joining from one on; returns how many they are. */
static int
send_steps(struct mq_consumer *k, int from, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_async_command(k->async);
	int step;

	for (step = from; k->layout->join(&k->session, step, &cmd); step++)
		mq_consumer_ask(
		    k, &cmd, mq_consumer_take_answer, (mq_callback *)fn, arg);
	mq_command_free(&cmd);
	return step - from;
}

/* The connection is listed: whatever the others leave, a cleaner finds. */
static void
take_listed(const struct mq_asker *asker, redisReply *reply)
{
	mq_answer_fn *fn = (mq_answer_fn *)asker->fn;
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, -1, &buf);

	fn(asker->arg, a);
	if (mq_answer_good(a))
		(void)send_steps(consumer_of(asker), 2, fn, asker->arg);
}

static int
count_steps(struct mq_consumer *k)
{
	struct mq_command cmd = mq_async_command(k->async);
	int step = 1;

	while (k->layout->join(&k->session, step, &cmd))
		step++;
	mq_command_free(&cmd);
	return step - 1;
}

/* The nodes of a cluster do not keep the order of the steps. */
void
mq_consumer_tell_slots(struct mq_consumer *k)
{
	struct mq_command cmd = mq_async_command(k->async);
	int step;

	for (step = 1; k->layout->join(&k->session, step, &cmd); step++)
		mq_async_send(k->async, &cmd, NULL, NULL);
}

int
mq_consumer_enter(struct mq_consumer *k, mq_answer_fn *fn, void *arg)
{
	struct mq_command cmd = mq_async_command(k->async);

	send_lapsed(k);
	if (!is_on_cluster(k))
		return send_steps(k, 1, fn, arg);
	(void)k->layout->join(&k->session, 1, &cmd);
	mq_consumer_ask(k, &cmd, take_listed, (mq_callback *)fn, arg);
	return count_steps(k);
}

static void
end_renewal(struct mq_consumer *k, const struct mq_answer *a, long long ms)
{
	mq_number_fn *fn = k->renewal.fn;

	k->renewal.fn = NULL;
	fn(k->renewal.arg, a, ms);
}

static void
take_queue_lease(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_consumer *k = consumer_of(asker);
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, -1, &buf);
	long long ms = lease_in(k, a, reply);

	if (k->renewal.fn != NULL && (--k->renewal.missing == 0 || ms == 0))
		end_renewal(k, a, ms);
}

static void
renew_queues(struct mq_consumer *k)
{
	struct mq_command cmd = mq_async_command(k->async);
	int queue, step;

	k->renewal.missing = k->session.queue_count;
	for (queue = 0; queue < k->session.queue_count; queue++)
		for (step = 0;
		     k->layout->renew_queue(&k->session, queue, step, &cmd);
		     step++)
			if (step == 0)
				mq_consumer_ask(
				    k, &cmd, take_queue_lease, NULL, NULL);
			else
				mq_async_send(k->async, &cmd, NULL, NULL);
	mq_command_free(&cmd);
}

/* A heartbeat that was renewed long ago may not outlast the other leases. */
static void
take_renewed(const struct mq_asker *asker, redisReply *reply)
{
	struct mq_consumer *k = consumer_of(asker);
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, -1, &buf);
	long long ms = lease_in(k, a, reply);

	if (ms == 0 || !is_on_cluster(k) || k->layout->renew_queue == NULL)
		end_renewal(k, a, ms);
	else if (mq_clock_steady_s() - k->renewal.sent > PROMPT_S)
		mq_consumer_renew(k, k->renewal.fn, k->renewal.arg);
	else
		renew_queues(k);
}

void
mq_consumer_renew(struct mq_consumer *k, mq_number_fn *fn, void *arg)
{
	struct mq_command cmd = mq_async_command(k->async);
	int step;

	k->renewal.fn = fn;
	k->renewal.arg = arg;
	k->renewal.sent = mq_clock_steady_s();
	for (step = 0; k->layout->renew(&k->session, step, &cmd); step++)
		if (step == 0)
			mq_consumer_ask(k, &cmd, take_renewed, NULL, NULL);
		else
			mq_async_send(k->async, &cmd, NULL, NULL);
	mq_command_free(&cmd);
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
	*cmd = mq_async_command(k->async);
	k->layout->lapsed(&k->session, queue, element, len, attempts, cmd);
}
