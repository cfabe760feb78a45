#include "answer.h"

#include "base/exit.h"
#include "connection.h"

const struct mq_answer *
mq_answer_to(const redisReply *reply, int type, struct mq_answer *a)
{
	if (reply == NULL)
		return NULL;
	*a = (struct mq_answer){0};
	if (reply->type == REDIS_REPLY_ERROR) {
		a->error = reply->str;
		a->status = mq_reply_status(reply->str);
	} else if (type != -1 && reply->type != type) {
		a->error = "a reply that makes no sense";
		a->status = MQ_EXIT_UNAVAILABLE;
	}
	return a;
}
