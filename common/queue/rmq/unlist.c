/*
 * The rmq layout: forgetting dead connections whose messages are gone.
 *
 * On a cluster the sets of names are in other slots than the queues.  There the steps
 * are: the messages of a queue, as anywhere; then the queue is made known; then it is
 * taken from the connection; and when that has none, the connection's own keys and
 * its name go.  Each step can be repeated, and the next cleaner goes on with those that
 * a crash has left.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "queue/scripts.h"
#include "rmq.h"

/* The steps on a cluster, behind the messages. */
enum step { KNOW, TAKE, COUNT, INFO, RUNNING, NAME, STEPS };

struct unlist {
	struct rmq_cleaner *w;
	struct rmq_dead_queue *queues;
	size_t queue_n;
	struct rmq_dead **empty; /* without a queue, as far as is known */
	size_t n;
	enum step step;
};

static void
ask_to_unlist(void *arg, size_t i, struct mq_command *c)
{
	const struct unlist *all = arg;
	const char *connection = all->empty[i]->connection;

	mq_command_script(c, &rmq_script_unlist);
	rmq_key_all(c, RMQ_CONNECTIONS);
	rmq_key_connection(c, connection, "queues");
	rmq_key_connection(c, connection, "heartbeat");
	rmq_key_connection(c, connection, "info");
	rmq_key_connection(c, connection, "running");
	mq_command_str(c, connection);
}

static int
take_unlisted(void *arg, size_t i, redisReply *reply)
{
	struct unlist *all = arg;

	(void)i;
	if (mq_round_good(&all->w->round, reply, REDIS_REPLY_INTEGER))
		all->w->out->connections += reply->integer;
	return 0;
}

/* --- the same on a cluster ------------------------------------------------------- */

static void
ask_to_close(void *arg, size_t i, struct mq_command *c)
{
	const struct unlist *all = arg;
	const struct rmq_dead_queue *q = &all->queues[i];

	if (q->left != 0 || q->owner->failed) {
		mq_command_plain(c, "PING");
		return;
	}
	if (all->step == KNOW) {
		mq_command_script(c, &mq_script_write_when_full);
		rmq_key_all(c, RMQ_QUEUES);
		mq_command_str(c, "SADD");
	} else {
		mq_command_plain(c, "SREM");
		rmq_key_connection(c, q->owner->connection, "queues");
	}
	mq_command_str(c, q->queue);
}

static int
take_closed(void *arg, size_t i, redisReply *reply)
{
	struct unlist *all = arg;

	if (reply->type == REDIS_REPLY_ERROR) {
		(void)mq_round_good(&all->w->round, reply, REDIS_REPLY_INTEGER);
		all->queues[i].owner->failed = true;
	}
	return 0;
}

static void
ask_to_forget(void *arg, size_t i, struct mq_command *c)
{
	static const char *const verbs[] = {[COUNT] = "SCARD",
	    [INFO] = "DEL",
	    [RUNNING] = "DEL",
	    [NAME] = "SREM"};
	static const char *const keys[] = {
	    [COUNT] = "queues", [INFO] = "info", [RUNNING] = "running"};
	const struct unlist *all = arg;
	const struct rmq_dead *d = all->empty[i];

	mq_command_plain(c, d->failed ? "PING" : verbs[all->step]);
	if (d->failed)
		return;
	if (all->step != NAME) {
		rmq_key_connection(c, d->connection, keys[all->step]);
		return;
	}
	rmq_key_all(c, RMQ_CONNECTIONS);
	mq_command_str(c, d->connection);
}

static int
take_forgotten(void *arg, size_t i, redisReply *reply)
{
	struct unlist *all = arg;
	struct rmq_dead *d = all->empty[i];

	if (d->failed)
		return 0;
	if (!mq_round_good(&all->w->round, reply, REDIS_REPLY_INTEGER))
		d->failed = true;
	else if (all->step == COUNT)
		d->failed = reply->integer > 0;
	else if (all->step == NAME)
		all->w->out->connections += reply->integer;
	return 0;
}

/* One step of all after the other, as nodes do not keep their order. */
static int
close_on_cluster(struct unlist *all)
{
	struct mq_redis *r = all->w->round.r;
	int rv = 0;

	for (all->step = KNOW; rv == 0 && all->step < STEPS; all->step++)
		rv = all->step <= TAKE ?
		    mq_ask_each(
			r, all->queue_n, ask_to_close, take_closed, all) :
		    mq_ask_each(r, all->n, ask_to_forget, take_forgotten, all);
	return rv;
}

static int
unlist(struct unlist *all)
{
	struct rmq_cleaner *w = all->w;

	if (w->how->dry_run) {
		w->out->connections += (long)all->n;
		return 0;
	}
	if (mq_redis_command(w->round.r).cluster)
		return close_on_cluster(all);
	return mq_ask_each(
	    w->round.r, all->n, ask_to_unlist, take_unlisted, all);
}

/* Others had no queue, or another cleaner took their last one. */
int
rmq_unlist(struct rmq_cleaner *w, struct rmq_dead *dead, size_t n,
    struct rmq_dead_queue *queues, size_t queue_n)
{
	struct unlist all = {.w = w, .queues = queues, .queue_n = queue_n};
	struct rmq_dead *d;
	int rv;

	all.empty = mq_xcalloc(n + 1, sizeof(*all.empty));
	for (d = dead; d < dead + n; d++)
		if (!d->failed && !d->closed)
			all.empty[all.n++] = d;
	rv = unlist(&all);
	free(all.empty);
	return rv;
}
