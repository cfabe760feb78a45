#include "ending.h"

#include "base/exit.h"

/* How much later than asked for an answer may come. */
#define ANSWER_MS 10000

static enum mq_call
take_ending(struct mq_redis *r, const redisReply *reply, bool *ended,
    struct mq_ending *ending)
{
	if (mq_redis_refused(r, reply))
		return r->status == MQ_EXIT_UNAVAILABLE ||
			r->status == MQ_EXIT_AGAIN ?
		    MQ_CALL_AGAIN :
		    MQ_CALL_REFUSED;
	*ended = reply->type == REDIS_REPLY_STRING;
	if (*ended && mq_ending_read(reply->str, reply->len, ending) == -1)
		return MQ_CALL_NONSENSE;
	return MQ_CALL_DONE;
}

enum mq_call
mq_ending_ask(struct mq_redis *r, const struct mq_layout *layout,
    const char *queue, const char *id, int64_t block_ms, bool *ended,
    struct mq_ending *ending)
{
	struct mq_command c = {0};
	int64_t usual_ms = r->patience_ms;
	redisReply *reply = NULL;
	enum mq_call result = MQ_CALL_LOST;

	*ended = false;
	layout->result(&c, queue, id, block_ms);
	r->patience_ms = block_ms + ANSWER_MS;
	if (mq_redis_send(r, &c) == 0)
		reply = mq_redis_reply(r);
	r->patience_ms = usual_ms;
	if (reply != NULL)
		result = take_ending(r, reply, ended, ending);
	freeReplyObject(reply);
	mq_command_free(&c);
	return result;
}
