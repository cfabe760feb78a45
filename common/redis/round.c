#include "round.h"

#include <stdio.h>

bool
mq_round_good(struct mq_round *round, const redisReply *reply, int type)
{
	struct mq_redis *r = round->r;

	if (reply->type == type)
		return true;
	if (mq_reply_barred(reply)) {
		round->refused++;
		return false;
	}
	if (!mq_redis_refused(r, reply))
		(void)mq_nonsense(r);
	if (round->status == 0) {
		round->status = r->status;
		snprintf(round->error, sizeof(round->error), "%s", r->error);
	}
	return false;
}

bool
mq_round_nonsense(struct mq_round *round)
{
	static const redisReply nonsense = {.type = REDIS_REPLY_NIL};

	return mq_round_good(round, &nonsense, REDIS_REPLY_ARRAY);
}

/* The reply to a command, whatever it is; NULL: the connection is lost. */
static redisReply *
call_once(struct mq_redis *r, struct mq_command *c)
{
	redisReply *reply = mq_redis_answer(r, c);

	mq_command_free(c);
	return reply;
}

int
mq_round_call(
    struct mq_round *round, struct mq_command *c, int type, redisReply **out)
{
	redisReply *reply = call_once(round->r, c);

	*out = NULL;
	if (reply == NULL)
		return -1;
	if (mq_round_good(round, reply, type))
		*out = reply;
	else
		freeReplyObject(reply);
	return 0;
}

int
mq_round_call_strings(
    struct mq_round *round, struct mq_command *c, redisReply **out)
{
	int rv = mq_round_call(round, c, REDIS_REPLY_ARRAY, out);

	if (*out != NULL && !mq_reply_strings(*out)) {
		freeReplyObject(*out);
		*out = NULL;
		(void)mq_round_nonsense(round);
	}
	return rv;
}

int
mq_round_add(struct mq_round *round, struct mq_command *c, long *sum)
{
	redisReply *reply;
	int rv = mq_round_call(round, c, REDIS_REPLY_INTEGER, &reply);

	if (reply != NULL)
		*sum += (long)reply->integer;
	freeReplyObject(reply);
	return rv;
}

int
mq_round_end(struct mq_round *round)
{
	if (round->status == 0)
		return 0;
	round->r->status = round->status;
	snprintf(round->r->error, sizeof(round->r->error), "%s", round->error);
	return -1;
}
