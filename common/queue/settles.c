/*
 * How a consumer ends the stay of messages in its hands.
 */
#include "base/clock.h"
#include "consumer.h"
#include "redis/reply.h"

static void
take_settled(const struct mq_asker *asker, redisReply *reply)
{
	mq_settled_fn *fn = (mq_settled_fn *)asker->fn;
	struct mq_answer buf;
	const struct mq_answer *a = mq_answer_to(reply, -1, &buf);

	fn(asker->arg, a,
	    mq_answer_good(a) ? mq_layout_settled(reply) : MQ_SETTLED_LOST);
}

/* Whatever has refused: settle() finds out, and says so. */
static void
take_large(const struct mq_asker *asker, redisReply *reply)
{
	mq_settled_fn *fn = (mq_settled_fn *)asker->fn;
	const struct mq_answer answer = {0};
	const redisReply *step;
	bool done = false;

	if (reply != NULL && reply->type == REDIS_REPLY_ARRAY &&
	    reply->elements > MQ_SETTLE_LARGE) {
		step = reply->element[MQ_SETTLE_LARGE];
		done = step->type == REDIS_REPLY_INTEGER && step->integer == 1;
	}
	fn(asker->arg, reply == NULL ? NULL : &answer,
	    done ? MQ_SETTLED : MQ_SETTLED_UNKNOWN);
}

static void
send_large(struct mq_consumer *k, int queue, const struct mq_settlement *how,
    const struct mq_asker *asker)
{
	int64_t now_ms = mq_clock_steady_ms() + k->claim.ahead_ms;
	struct mq_command cmd = mq_async_command(k->async);
	int step;

	mq_command_plain(&cmd, "MULTI");
	mq_async_send(k->async, &cmd, NULL, NULL);
	for (step = 0; k->layout->settle_large(
		 &k->session, queue, how, now_ms, step, &cmd);
	     step++)
		if (cmd.script != NULL)
			mq_async_send_eval(k->async, &cmd);
		else
			mq_async_send(k->async, &cmd, NULL, NULL);
	mq_command_plain(&cmd, "EXEC");
	mq_async_ask(k->async, &cmd, take_large, asker);
}

void
mq_consumer_settle(struct mq_consumer *k, int queue,
    const struct mq_settlement *how, mq_settled_fn *fn, void *arg)
{
	const struct mq_asker asker = {(mq_callback *)fn, arg, NULL};
	struct mq_command cmd = mq_async_command(k->async);

	if (how->spot.known && how->outcome != MQ_OUTCOME_ACK && k->atomic &&
	    !k->leading && k->layout->settle_large != NULL) {
		send_large(k, queue, how, &asker);
		return;
	}
	k->layout->settle(&k->session, queue, how, &cmd);
	mq_async_ask(k->async, &cmd, take_settled, &asker);
}

void
mq_consumer_ack_oldest(struct mq_consumer *k, int queue,
    const struct mq_acks *acks, mq_settled_fn *fn, void *arg)
{
	struct mq_command cmd = mq_async_command(k->async);

	k->layout->ack_oldest(&k->session, queue, acks, &cmd);
	mq_async_ask(k->async, &cmd, take_settled,
	    &(struct mq_asker){(mq_callback *)fn, arg, NULL});
}
