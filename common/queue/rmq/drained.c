/*
 * The rmq layout: whether there is anything left to do.
 */
#include "rmq.h"

#include <string.h>

#include "redis/connection.h"

/* Adds what could be claimed of the queues, and what connections hold of them. */
static int
count_waiting(
    struct mq_redis *r, const char *const *queues, int count, long long *sum)
{
	redisReply *all = mq_call_members(r, RMQ_CONNECTIONS);
	struct mq_command c = mq_redis_command(r);
	long long n = 0;
	size_t k;
	int i, rv = 0;

	if (all == NULL)
		return -1;
	for (i = 0; i < count && rv == 0; i++) {
		mq_command_script(&c, &rmq_script_count_claimable);
		rmq_key_queue(&c, queues[i], RMQ_PLACES);
		for (k = 0; k < all->elements; k++)
			rmq_key_both(
			    &c, all->element[k]->str, queues[i], "unacked");
		rv = mq_call_number(r, &c, &n);
		*sum += n;
	}
	freeReplyObject(all);
	return rv;
}

/* Lists a connection that holds some messages, if nobody does. */
static int
list_again(struct mq_redis *r, const struct mq_name *name, bool *found)
{
	static const struct rmq_question sets[] = {
	    {"SADD", "queues", RMQ_OF_CONNECTION, .queue = true},
	    {"SADD", RMQ_CONNECTIONS, RMQ_OF_NONE, .name = true}};
	struct mq_command c = mq_redis_command(r);
	long long of_connection = 0, of_all = 0;

	if (!c.cluster) {
		rmq_adopt(&c, name->name, name->queue, false);
		(void)mq_call_number(r, &c, &of_all);
	} else if (rmq_call_number(r, &sets[0], name->name, name->queue,
		       &of_connection) == 0) {
		/* Each set is on a node of its own. */
		(void)rmq_call_number(r, &sets[1], name->name, NULL, &of_all);
	}
	*found |= of_connection + of_all > 0;
	return mq_redis_lost(r) ? -1 : 0;
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
	struct mq_names lists = {0};
	long long left = 0;
	bool found = false;
	size_t i;
	int look, k, rv = 0;

	/* What others hold of a queue is on its own node, which has to answer. */
	mq_partial_begin(r);
	for (look = 0; look < 2 && left == 0; look++)
		if (count_waiting(r, queues, count, &left) == -1)
			return -1;
	/* Only when it seems that nothing is left: it looks through all keys. */
	if (left == 0)
		rv = rmq_find_names(r, true, 0, &lists);
	for (i = 0; i < lists.n && rv == 0; i++) {
		for (k = 0; k < count; k++)
			if (strcmp(queues[k], lists.list[i].queue) == 0)
				break;
		if (k < count)
			rv = list_again(r, &lists.list[i], &found);
	}
	mq_names_free(&lists);
	*drained = left == 0 && !found;
	return rv;
}
