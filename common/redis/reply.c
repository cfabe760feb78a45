#include "command.h"

#include <string.h>

#include "base/exit.h"
#include "connection.h"

/* Where the command's own words begin: servers before Redis 7 write "ERR Error running
 * script (call to f_SHA): @user_script:1: @user_script: 1: -OOM ...". */
static const char *
own_words(const char *error)
{
	static const char call[] = "ERR Error running script (call to f_";
	static const char line[] = "@user_script:";
	const char *colon;

	if (strncmp(error, call, sizeof(call) - 1) == 0 &&
	    (colon = strstr(error, "): ")) != NULL)
		error = colon + 3;
	while (strncmp(error, line, sizeof(line) - 1) == 0 &&
	    (colon = strstr(error + sizeof(line) - 1, ": ")) != NULL)
		error = colon + 2;
	return *error == '-' ? error + 1 : error;
}

/* Where they end: later ones write "OOM ... script: SHA, on @user_script:1.". */
static size_t
own_length(const char *words)
{
	static const char script[] = " script: ";
	const size_t before = sizeof(script) - 1 + 40;
	const char *on = strstr(words, ", on @user_script:");
	size_t n = on != NULL && (size_t)(on - words) > before &&
		strncmp(on - before, script, sizeof(script) - 1) == 0 ?
	    (size_t)(on - words) - before :
	    strlen(words);

	while (n > 0 && strchr("\r\n ", words[n - 1]) != NULL)
		n--;
	return n;
}

static void
strip_error(redisReply *reply)
{
	const char *words = own_words(reply->str);

	if (strncmp(words, "user_script:", 12) == 0 ||
	    strncmp(words, "ERR user_script:", 16) == 0)
		return;
	reply->len = own_length(words);
	memmove(reply->str, words, reply->len);
	reply->str[reply->len] = '\0';
}

void
mq_reply_strip_script(redisReply *reply)
{
	size_t i;

	if (reply->type == REDIS_REPLY_ERROR)
		strip_error(reply);
	for (i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements;
	     i++)
		if (reply->element[i]->type == REDIS_REPLY_ERROR)
			strip_error(reply->element[i]);
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
