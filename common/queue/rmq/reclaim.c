/*
 * The rmq layout: taking dead connections apart, many at a time.
 *
 * A crash, or an error, anywhere in here leaves a connection listed as long as
 * it has a queue, and a queue as long as it has a message there.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "rmq.h"

/* How many connections are dealt with at a time, and how many of their queues: few,
 * as the server takes a millisecond or two for a step of each, and other clients wait
 * until it has taken all. */
#define MANY 500
#define FEW  2

/* Dead connections and their queues. */
struct reclaim {
	struct rmq_cleaner *w;
	struct rmq_dead *dead;
	struct rmq_dead_queue *queues;
	size_t dead_n, queue_n, queue_cap;
	/* The subjects of this step. */
	struct rmq_dead_queue *asked[FEW];
	size_t n;
};

static void
add_queue(struct reclaim *all, struct rmq_dead *d, const char *queue)
{
	struct rmq_cleaner *w = all->w;

	if (all->queue_n == all->queue_cap) {
		all->queue_cap =
		    all->queue_cap == 0 ? MANY : all->queue_cap * 2;
		all->queues = mq_xreallocarray(
		    all->queues, all->queue_cap, sizeof(*all->queues));
	}
	all->queues[all->queue_n++] = (struct rmq_dead_queue){
	    .owner = d, .queue = queue, .left = LONG_MAX};
	if (w->how->all && w->how->dry_run)
		mq_names_add(&w->known, queue, NULL);
}

static void
add_queues(struct reclaim *all, struct rmq_dead *d)
{
	const redisReply *queue;
	size_t i;

	for (i = 0; i < d->queues->elements; i++) {
		queue = d->queues->element[i];
		/* No key can be made of a name with a NUL in it here. */
		if (queue->type == REDIS_REPLY_STRING &&
		    strlen(queue->str) == queue->len)
			add_queue(all, d, queue->str);
		else
			d->failed = true;
	}
}

static long
number_of(const redisReply *text)
{
	return text->type == REDIS_REPLY_STRING ? strtol(text->str, NULL, 10) :
						  0;
}

/* A queue that others can be told to notify; NULL: none. */
static const char *
queue_in(const redisReply *text)
{
	return text->type == REDIS_REPLY_STRING &&
		strlen(text->str) == text->len &&
		rmq_queue_error(text->str) == NULL ?
	    text->str :
	    NULL;
}

static bool
read_info(struct rmq_cleaner *w, struct rmq_dead *d)
{
	const redisReply *slots, *host;
	long limit;

	if (d->info->elements != 4)
		return mq_round_nonsense(&w->round);
	slots = d->info->element[0];
	host = d->info->element[1];
	limit = number_of(d->info->element[2]);
	d->notify = queue_in(d->info->element[3]);
	d->slots = number_of(slots);
	/* The second half of LONG_MAX is for sums. */
	if (d->slots < 0 || d->slots > INT_MAX)
		d->slots = 0;
	if (host->type == REDIS_REPLY_STRING)
		d->host = host->str;
	d->attempts = limit > 0 && limit <= MQ_ATTEMPTS_MAX ? (int)limit : 0;
	/* Messages of a lapsed connection may have run, but none crashed. */
	if (mq_names_have(&w->lapsed, d->connection))
		d->slots = 0;
	d->ours = slots->type == REDIS_REPLY_STRING || d->host != NULL;
	return true;
}

static void
ask_about(void *arg, size_t i, struct mq_command *c)
{
	const struct reclaim *all = arg;
	const char *connection = all->dead[i / 2].connection;

	if (i % 2 == 1) {
		mq_command_plain(c, "SMEMBERS");
		rmq_key_connection(c, connection, "queues");
		return;
	}
	mq_command_plain(c, "HMGET");
	rmq_key_connection(c, connection, "info");
	mq_command_words(c, "slots host attempts notify");
}

static int
take_about(void *arg, size_t i, redisReply *reply)
{
	struct reclaim *all = arg;
	struct rmq_dead *d = &all->dead[i / 2];

	*(i % 2 == 1 ? &d->queues : &d->info) = reply;
	return MQ_KEEP;
}

/* Whether the i-th name is of another connection than the one before. */
static bool
is_another(const struct mq_name *dead, size_t i)
{
	return i == 0 || strcmp(dead[i].name, dead[i - 1].name) != 0;
}

static int
ask_dead(struct reclaim *all, const struct mq_name *dead, size_t n)
{
	size_t i;

	all->dead = mq_xcalloc(n, sizeof(*all->dead));
	for (i = 0; i < n; i++)
		if (is_another(dead, i))
			all->dead[all->dead_n++].connection = dead[i].name;
	return mq_ask_each(
	    all->w->round.r, 2 * all->dead_n, ask_about, take_about, all);
}

static bool
is_readable(struct rmq_cleaner *w, struct rmq_dead *d)
{
	return mq_round_good(&w->round, d->info, REDIS_REPLY_ARRAY) &&
	    mq_round_good(&w->round, d->queues, REDIS_REPLY_ARRAY) &&
	    read_info(w, d);
}

static void
find_queues(struct reclaim *all, const struct mq_name *dead, size_t n)
{
	struct rmq_dead *d = all->dead;
	size_t i;

	for (i = 0; i < n; i++) {
		if (is_another(dead, i)) {
			d += i > 0;
			d->failed = !is_readable(all->w, d);
		}
		if (d->failed)
			continue;
		if (dead[i].queue != NULL && all->w->how->dry_run)
			add_queue(all, d, dead[i].queue);
		else if (is_another(dead, i))
			add_queues(all, d);
	}
}

/* What the consumer itself did not say is as the settings of the queue are now. */
static void
ask_settings(void *arg, size_t i, struct mq_command *c)
{
	const struct reclaim *all = arg;

	mq_command_plain(c, "HMGET");
	rmq_side.settings(c, all->queues[i].queue);
	mq_command_words(c, "attempts notify");
}

static int
take_settings(void *arg, size_t i, redisReply *reply)
{
	const struct reclaim *all = arg;
	struct rmq_dead_queue *q = &all->queues[i];
	redisReply *const *e = reply->element;
	bool good = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
	long limit = good ? number_of(e[0]) : 0;

	q->settings = reply;
	/* Only what is known to have run can end here; see reclaim_dead.lua. */
	q->notify = !q->owner->ours	      ? NULL :
	    q->owner->notify != NULL || !good ? q->owner->notify :
						queue_in(e[1]);
	q->attempts = q->owner->attempts > 0	  ? q->owner->attempts :
	    limit > 0 && limit <= MQ_ATTEMPTS_MAX ? (int)limit :
						    all->w->how->limit;
	return MQ_KEEP;
}

/*
 * On a cluster, where no script could look: whether a queue has keys in the other form,
 * or messages that lie in several slots.
 */
static void
ask_others(void *arg, size_t i, struct mq_command *c)
{
	const struct reclaim *all = arg;
	const struct rmq_dead_queue *q = &all->queues[i / 2];
	const char *connection = q->owner->connection;

	mq_command_plain(c, "EXISTS");
	if (i % 2 == 1)
		rmq_key_both_other(c, connection, q->queue, "unacked");
	else if (rmq_is_scattered(c, q->queue))
		rmq_key_both(c, connection, q->queue, "unacked");
	else
		rmq_key_both_other(c, connection, q->queue, "consumers");
}

static int
take_others(void *arg, size_t i, redisReply *reply)
{
	const struct reclaim *all = arg;
	struct rmq_cleaner *w = all->w;
	const struct mq_command c = mq_redis_command(w->round.r);
	struct rmq_dead_queue *q = &all->queues[i / 2];

	/* What is in our form goes back, although the connection may have more. */
	if (!mq_round_good(&w->round, reply, REDIS_REPLY_INTEGER))
		q->owner->failed = true;
	else if (reply->integer > 0)
		rmq_dead_queue_leave(w, q);
	if (rmq_is_scattered(&c, q->queue)) {
		q->left = 0;
		rmq_cleaner_scattered(w, q->queue);
	}
	return 0;
}

static void
ask_step(void *arg, size_t i, struct mq_command *c)
{
	struct reclaim *all = arg;

	rmq_dead_queue_step(all->w, all->asked[i], c);
}

static int
take_step(void *arg, size_t i, redisReply *reply)
{
	struct reclaim *all = arg;

	rmq_dead_queue_reply(all->w, all->asked[i], reply);
	return MQ_KEEP;
}

/* Takes one more step with those of n queues that need one; all->n of them did. */
static int
step_queues(
    struct reclaim *all, struct rmq_dead_queue *queues, size_t n, bool show)
{
	size_t i;

	all->n = 0;
	for (i = 0; i < n; i++)
		if (queues[i].left >
		    (show ? 0 : rmq_dead_queue_kept(&queues[i]))) {
			rmq_dead_queue_begin(all->w, &queues[i], show);
			all->asked[all->n++] = &queues[i];
		}
	return mq_ask_each(all->w->round.r, all->n, ask_step, take_step, all);
}

static int
walk_queues(struct reclaim *all, bool show)
{
	size_t i, n;

	for (i = 0; i < all->queue_n; i += n) {
		n = all->queue_n - i < FEW ? all->queue_n - i : FEW;
		do {
			if (step_queues(all, all->queues + i, n, show) == -1)
				return -1;
		} while (all->n > 0);
	}
	return 0;
}

static void
free_dead(struct reclaim *all)
{
	size_t i;

	for (i = 0; i < all->queue_n; i++)
		rmq_dead_queue_free(&all->queues[i]);
	for (i = 0; i < all->dead_n; i++) {
		freeReplyObject(all->dead[i].info);
		freeReplyObject(all->dead[i].queues);
	}
	free(all->queues);
	free(all->dead);
}

static int
reclaim_some(struct rmq_cleaner *w, const struct mq_name *dead, size_t n)
{
	struct reclaim all = {.w = w};
	int rv = ask_dead(&all, dead, n);

	if (rv == 0) {
		find_queues(&all, dead, n);
		rv = mq_ask_each(
		    w->round.r, all.queue_n, ask_settings, take_settings, &all);
	}
	if (rv == 0 && mq_redis_command(w->round.r).cluster)
		rv = mq_ask_each(
		    w->round.r, 2 * all.queue_n, ask_others, take_others, &all);
	if (rv == 0)
		rv = walk_queues(&all, false);
	if (rv == 0)
		rv = walk_queues(&all, true);
	if (rv == 0)
		rv = rmq_unlist(
		    w, all.dead, all.dead_n, all.queues, all.queue_n);
	free_dead(&all);
	return rv;
}

int
rmq_reclaim(struct rmq_cleaner *w, const struct mq_name *dead, size_t total)
{
	size_t i, n;

	for (i = 0; i < total; i += n) {
		/* The first goes alone, and makes the scripts known. */
		n = i == 0 ? 1 : total - i < MANY ? total - i : MANY;
		/* All queues that one is named with together. */
		while (i + n < total && !is_another(dead, i + n))
			n++;
		if (reclaim_some(w, dead + i, n) == -1)
			return -1;
	}
	return 0;
}
