/*
 * The rmq layout: counting what is there.
 */
#include "layout-rmq.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rmq-ask.h"
#include "rmq-keys.h"
#include "xalloc.h"

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

/* The server's clock in unix milliseconds. */
static int
server_time(struct mq_redis *r, long long *ms)
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

/* Adds what is ready and what is due of one queue. */
static int
waiting_of(struct mq_redis *r, const char *queue, long long *sum)
{
	struct mq_command c = {0};
	long long now;
	int rv = -1;

	if (server_time(r, &now) == -1)
		return -1;
	mq_command_plain(&c, "ZCOUNT");
	rmq_key_queue(&c, queue, "delayed");
	mq_command_str(&c, "-inf");
	mq_command_int(&c, now);
	if (mq_redis_send(r, &c) == 0 &&
	    rmq_send_about_queue(r, "LLEN", queue, "ready") == 0 &&
	    rmq_expect_more(r, sum) == 0 && rmq_expect_more(r, sum) == 0)
		rv = 0;
	mq_command_free(&c);
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

static int
by_name(const void *a, const void *b)
{
	const struct mq_queue_stats *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static struct mq_queue_stats *
find(const struct mq_stats *stats, const char *name)
{
	struct mq_queue_stats key = {.name = (char *)(uintptr_t)name};

	return bsearch(
	    &key, stats->queues, (size_t)stats->count, sizeof(key), by_name);
}

static void
add_queue(struct mq_stats *stats, const char *name, bool known)
{
	stats->queues[stats->count++] =
	    (struct mq_queue_stats){.name = mq_xstrdup(name), .known = known};
}

static int
list_named(struct mq_redis *r, const char *const *queues, int count,
    struct mq_stats *out)
{
	long long known;
	int i;

	out->queues = mq_xcalloc((size_t)count, sizeof(*out->queues));
	for (i = 0; i < count; i++)
		if (rmq_send_about_set(r, "SISMEMBER", RMQ_QUEUES, queues[i]) ==
		    -1)
			return -1;
	for (i = 0; i < count; i++) {
		if (rmq_expect_number(r, &known) == -1)
			return -1;
		add_queue(out, queues[i], known != 0);
	}
	return 0;
}

static int
list_all(struct mq_redis *r, struct mq_stats *out)
{
	redisReply *names;
	size_t i;

	if (rmq_send_about_set(r, "SMEMBERS", RMQ_QUEUES, NULL) == -1)
		return -1;
	names = rmq_expect(r, REDIS_REPLY_ARRAY);
	if (names == NULL)
		return -1;
	out->queues = mq_xcalloc(names->elements + 1, sizeof(*out->queues));
	for (i = 0; i < names->elements; i++)
		add_queue(out, names->element[i]->str, true);
	freeReplyObject(names);
	return 0;
}

static int
count_queues(struct mq_redis *r, struct mq_stats *out)
{
	struct mq_queue_stats *q;
	int i;

	for (i = 0; i < out->count; i++) {
		q = &out->queues[i];
		if (rmq_send_about_queue(r, "LLEN", q->name, "ready") == -1 ||
		    rmq_send_about_queue(r, "ZCARD", q->name, "delayed") ==
			-1 ||
		    rmq_send_about_queue(r, "LLEN", q->name, "rejected") == -1)
			return -1;
	}
	for (i = 0; i < out->count; i++) {
		q = &out->queues[i];
		if (rmq_expect_number(r, &q->ready) == -1 ||
		    rmq_expect_number(r, &q->delayed) == -1 ||
		    rmq_expect_number(r, &q->rejected) == -1)
			return -1;
	}
	return 0;
}

/* Adds what one connection holds of the queues it consumes. */
static int
count_consumed(struct mq_redis *r, const char *connection,
    const redisReply *consumed, struct mq_stats *out)
{
	struct mq_queue_stats *q;
	size_t i;

	for (i = 0; i < consumed->elements; i++)
		if (rmq_send_about_both(r, "LLEN", connection,
			consumed->element[i]->str, "unacked") == -1 ||
		    rmq_send_about_both(r, "SCARD", connection,
			consumed->element[i]->str, "consumers") == -1)
			return -1;
	for (i = 0; i < consumed->elements; i++) {
		struct mq_queue_stats other = {0};

		q = find(out, consumed->element[i]->str);
		if (q == NULL)
			q = &other;
		if (rmq_expect_more(r, &q->unacked) == -1 ||
		    rmq_expect_more(r, &q->consumers) == -1)
			return -1;
	}
	return 0;
}

static int
count_connections(struct mq_redis *r, struct mq_stats *out)
{
	redisReply *all = rmq_connections(r), **consumed;
	size_t i;
	int rv = -1;

	if (all == NULL)
		return -1;
	consumed = mq_xcalloc(all->elements + 1, sizeof(*consumed));
	for (i = 0; i < all->elements; i++)
		if (rmq_send_about_connection(r, "SMEMBERS",
			all->element[i]->str, "queues", NULL) == -1)
			goto out;
	for (i = 0; i < all->elements; i++) {
		consumed[i] = rmq_expect(r, REDIS_REPLY_ARRAY);
		if (consumed[i] == NULL)
			goto out;
	}
	rv = 0;
	for (i = 0; i < all->elements && rv == 0; i++)
		rv = count_consumed(r, all->element[i]->str, consumed[i], out);
out:
	for (i = 0; i < all->elements; i++)
		if (consumed[i] != NULL)
			freeReplyObject(consumed[i]);
	free(consumed);
	freeReplyObject(all);
	return rv;
}

/* The rows in the order, and as often, as their names were given. */
static void
in_order(const char *const *queues, int count, struct mq_stats *out)
{
	struct mq_stats rows = {
	    .queues = mq_xcalloc((size_t)count, sizeof(*rows.queues))};
	const struct mq_queue_stats *row;

	for (; rows.count < count; rows.count++) {
		row = find(out, queues[rows.count]);
		if (row != NULL)
			rows.queues[rows.count] = *row;
		rows.queues[rows.count].name = mq_xstrdup(queues[rows.count]);
	}
	mq_stats_free(out);
	*out = rows;
}

int
rmq_stats(struct mq_redis *r, const char *const *queues, int count,
    bool connections, struct mq_stats *out)
{
	(void)connections;
	int rv;

	*out = (struct mq_stats){0};
	rv = count == 0 ? list_all(r, out) : list_named(r, queues, count, out);
	if (rv == 0) {
		qsort(out->queues, (size_t)out->count, sizeof(*out->queues),
		    by_name);
		rv = count_queues(r, out);
	}
	if (rv == 0)
		rv = count_connections(r, out);
	if (rv == 0 && count > 0)
		in_order(queues, count, out);
	if (rv == -1)
		mq_stats_free(out);
	return rv;
}
