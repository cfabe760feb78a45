#include "reply.h"

#include <string.h>

#include "base/exit.h"
#include "error.h"

/* The servers word it in several ways; a command is "the 'NAME' command". */
bool
mq_reply_barred(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR &&
	    mq_error_noperm(reply->str) &&
	    (strstr(reply->str, " key") != NULL ||
		strstr(reply->str, "' key") != NULL);
}

bool
mq_reply_noscript(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR &&
	    strncmp(reply->str, "NOSCRIPT", 8) == 0;
}

bool
mq_reply_busy(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR && mq_error_busy(reply->str);
}

bool
mq_reply_missing(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR &&
	    strncmp(reply->str, MQ_MISSING, strlen(MQ_MISSING)) == 0;
}

const struct mq_answer *
mq_answer_to(const redisReply *reply, int type, struct mq_answer *a)
{
	if (reply == NULL)
		return NULL;
	*a = (struct mq_answer){0};
	if (reply->type == REDIS_REPLY_ERROR) {
		a->error = reply->str;
		a->status = mq_error_status(reply->str);
		a->missing = mq_reply_missing(reply);
	} else if (type != -1 && reply->type != type) {
		a->error = "unexpected reply";
		a->status = MQ_EXIT_UNAVAILABLE;
	}
	return a;
}
