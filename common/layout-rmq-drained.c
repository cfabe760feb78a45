/*
 * The rmq layout: whether there is anything left to do.
 */
#include "layout-rmq.h"

#include "rmq-ask.h"
#include "rmq-keys.h"

/* Adds what could be claimed of one queue, and what these connections hold. */
static int
waiting_of(struct mq_redis *r, const char *queue, const redisReply *all,
    long long *sum)
{
	struct mq_command c = {0};
	redisReply *reply;
	size_t i;
	int rv = 0;

	mq_command_script(
	    &c, &mq_script_waiting, RMQ_HOME + (int)all->elements);
	rmq_key_home(&c, queue);
	for (i = 0; i < all->elements; i++)
		rmq_key_both(&c, all->element[i]->str, queue, "unacked");
	reply = mq_redis_call(r, &c);
	mq_command_free(&c);
	if (reply == NULL)
		return -1;
	*sum += reply->integer;
	if (reply->type != REDIS_REPLY_INTEGER)
		rv = mq_nonsense(r);
	freeReplyObject(reply);
	return rv;
}

static int
waiting(
    struct mq_redis *r, const char *const *queues, int count, long long *sum)
{
	redisReply *all = rmq_connections(r);
	int i, rv = 0;

	if (all == NULL)
		return -1;
	for (i = 0; i < count && rv == 0; i++)
		rv = waiting_of(r, queues[i], all, sum);
	freeReplyObject(all);
	return rv;
}

/*
 * All of a queue is counted in one step: when one message ends, the next one of
 * its group, which nobody could claim until then, takes its place.  Who joins
 * and claims between the two commands of a look is seen by the second look.
 */
int
rmq_drained(
    struct mq_redis *r, const char *const *queues, int count, bool *drained)
{
	long long left = 0;
	int look;

	for (look = 0; look < 2 && left == 0; look++)
		if (waiting(r, queues, count, &left) == -1)
			return -1;
	*drained = left == 0;
	return 0;
}
