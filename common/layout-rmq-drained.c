/*
 * The rmq layout: whether there is anything left to do.
 */
#include "layout-rmq.h"

#include <stdlib.h>

#include "rmq-ask.h"
#include "rmq-keys.h"

/* Sums the lengths of all unacked lists of one queue. */
static int
unacked_of(struct mq_redis *r, const redisReply *all, const char *queue,
    long long *sum)
{
	size_t i;

	for (i = 0; i < all->elements; i++)
		if (rmq_send_about_both(r, "LLEN", all->element[i]->str, queue,
			"unacked") == -1)
			return -1;
	for (i = 0; i < all->elements; i++)
		if (rmq_expect_more(r, sum) == -1)
			return -1;
	return 0;
}

int
rmq_server_time(struct mq_redis *r, int64_t *ms)
{
	struct mq_command c = {0};
	redisReply *time;
	int rv = -1;

	mq_command_plain(&c, "TIME");
	time = mq_redis_call(r, &c);
	mq_command_free(&c);
	if (time == NULL)
		return -1;
	if (time->type == REDIS_REPLY_ARRAY && time->elements == 2) {
		*ms = strtoll(time->element[0]->str, NULL, 10) * 1000 +
		    strtoll(time->element[1]->str, NULL, 10) / 1000;
		rv = 0;
	}
	freeReplyObject(time);
	return rv;
}

/* Adds what could be claimed of one queue. */
static int
waiting_of(struct mq_redis *r, const char *queue, long long *sum)
{
	struct mq_command c = {0};
	redisReply *reply;
	int rv = 0;

	mq_command_script(&c, &mq_script_waiting, RMQ_HOME);
	rmq_key_home(&c, queue);
	reply = mq_redis_call(r, &c);
	mq_command_free(&c);
	if (reply == NULL)
		return -1;
	*sum += reply->integer;
	if (reply->type != REDIS_REPLY_INTEGER)
		rv = rmq_nonsense(r);
	freeReplyObject(reply);
	return rv;
}

/*
 * A message may move while we count, forwards from delayed over ready to
 * unacked, or backwards.  What is waiting is counted before and after what is
 * unacked, so a message that moves once is seen.
 */
int
rmq_drained(
    struct mq_redis *r, const char *const *queues, int count, bool *drained)
{
	redisReply *all = NULL;
	long long left = 0;
	int i, rv = -1;

	for (i = 0; i < count; i++)
		if (waiting_of(r, queues[i], &left) == -1)
			goto out;
	all = rmq_connections(r);
	if (all == NULL)
		goto out;
	for (i = 0; i < count; i++)
		if (unacked_of(r, all, queues[i], &left) == -1 ||
		    waiting_of(r, queues[i], &left) == -1)
			goto out;
	*drained = left == 0;
	rv = 0;
out:
	if (all != NULL)
		freeReplyObject(all);
	return rv;
}
