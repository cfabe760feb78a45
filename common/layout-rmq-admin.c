/*
 * The rmq layout's operations that look at many keys: each is a few rounds,
 * with all commands of a round in one pipeline.
 */
#include "layout.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exit.h"
#include "message.h"
#include "rmq-keys.h"
#include "xalloc.h"

/* How many messages one call of the reclaim script moves at most. */
#define SLICE 500
/* A live heartbeat is renewed every second; less than this is on its way out. */
#define RENEWED_MS 55000
#define CRASHED	   "its consumer died while it ran"

int rmq_clean(struct mq_redis *, int, struct mq_cleaned *);
int rmq_drained(struct mq_redis *, const char *const *, int, bool *);
int rmq_stats(struct mq_redis *, const char *const *, int, struct mq_stats *);

static int
send_about_set(
    struct mq_redis *r, const char *verb, const char *key, const char *member)
{
	struct mq_command c = {0};
	int rv;

	mq_command_plain(&c, verb);
	mq_command_str(&c, key);
	if (member != NULL)
		mq_command_str(&c, member);
	rv = mq_redis_send(r, &c);
	mq_command_free(&c);
	return rv;
}

static int
send_about_queue(
    struct mq_redis *r, const char *verb, const char *queue, const char *what)
{
	struct mq_command c = {0};
	int rv;

	mq_command_plain(&c, verb);
	rmq_key_queue(&c, queue, what);
	rv = mq_redis_send(r, &c);
	mq_command_free(&c);
	return rv;
}

static int
send_about_connection(struct mq_redis *r, const char *verb,
    const char *connection, const char *what, const char *member)
{
	struct mq_command c = {0};
	int rv;

	mq_command_plain(&c, verb);
	rmq_key_connection(&c, connection, what);
	if (member != NULL)
		mq_command_str(&c, member);
	rv = mq_redis_send(r, &c);
	mq_command_free(&c);
	return rv;
}

static int
send_about_both(struct mq_redis *r, const char *verb, const char *connection,
    const char *queue, const char *what)
{
	struct mq_command c = {0};
	int rv;

	mq_command_plain(&c, verb);
	rmq_key_both(&c, connection, queue, what);
	rv = mq_redis_send(r, &c);
	mq_command_free(&c);
	return rv;
}

/* The next reply, which must be of this type; NULL with the error set. */
static redisReply *
expect(struct mq_redis *r, int type)
{
	redisReply *reply = mq_redis_reply(r);

	if (reply == NULL)
		return NULL;
	if (!mq_redis_refused(r, reply) && reply->type == type)
		return reply;
	if (reply->type != REDIS_REPLY_ERROR) {
		r->status = MQ_EXIT_UNAVAILABLE;
		snprintf(r->error, sizeof(r->error),
		    "%s: a reply that makes no sense", r->server->name);
	}
	freeReplyObject(reply);
	return NULL;
}

static int
expect_number(struct mq_redis *r, long long *n)
{
	redisReply *reply = expect(r, REDIS_REPLY_INTEGER);

	if (reply == NULL)
		return -1;
	*n = reply->integer;
	freeReplyObject(reply);
	return 0;
}

/* Adds the next number to *sum. */
static int
expect_more(struct mq_redis *r, long long *sum)
{
	long long n;

	if (expect_number(r, &n) == -1)
		return -1;
	*sum += n;
	return 0;
}

/* --- cleaning ------------------------------------------------------------- */

/* How many messages could run at once there; 0 for peers that do not say. */
static int
slots_of(struct mq_redis *r, const char *connection, long *slots)
{
	redisReply *reply;

	if (send_about_connection(r, "HGET", connection, "info", "slots") == -1)
		return -1;
	reply = mq_redis_reply(r);
	if (reply == NULL)
		return -1;
	*slots = 0;
	if (reply->type == REDIS_REPLY_STRING)
		*slots = strtol(reply->str, NULL, 10);
	if (*slots < 0)
		*slots = 0;
	freeReplyObject(reply);
	return 0;
}

static int
reclaim(struct mq_redis *r, const char *connection, const char *queue,
    long keep, struct mq_cleaned *out)
{
	struct mq_command c = {0};
	redisReply *reply;
	long long moved = SLICE;

	while (moved == SLICE) {
		mq_command_script(&c, &mq_script_reclaim, 2);
		rmq_key_both(&c, connection, queue, "unacked");
		rmq_key_queue(&c, queue, "ready");
		mq_command_int(&c, keep);
		mq_command_int(&c, SLICE);
		reply = mq_redis_call(r, &c);
		if (reply == NULL)
			break;
		moved = reply->integer;
		out->returned += moved;
		freeReplyObject(reply);
	}
	mq_command_free(&c);
	return moved == SLICE ? -1 : 0;
}

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/*
 * Makes the header that has the crash on it.  Returns true when it was one too
 * many.  A message with a bad header has nowhere to write it: it goes back as
 * it is, and whoever claims it next rejects it.
 */
static bool
charge(struct mq_settlement *how, int limit, struct mq_buf *header)
{
	struct mq_idgen ids = {0};
	struct mq_envelope e;
	char id[MQ_ID_LEN + 1];
	const char *why;
	long attempts;

	if (mq_envelope_parse(how->element, how->len, &e, &why) == -1)
		return false;
	attempts = mq_envelope_get_long(&e, MQ_HEADER_ATTEMPT, 0) + 1;
	mq_id_make(&ids, now_us(), id);
	if (mq_message_id(&e) != NULL)
		memcpy(id, mq_message_id(&e), sizeof(id));
	mq_message_record(&e, id, attempts,
	    attempts < limit ? CRASHED : "attempts exhausted: " CRASHED);
	mq_envelope_write_header(&e, header);
	how->header = header->data;
	how->header_len = header->len;
	how->payload_at = (size_t)(e.payload - how->element);
	mq_envelope_free(&e);
	return attempts >= limit;
}

static int
return_charged(struct mq_redis *r, const struct mq_session *dead,
    const redisReply *element, int limit, struct mq_cleaned *out)
{
	struct mq_command c = {0};
	struct mq_buf header = {0};
	struct mq_settlement how = {.outcome = MQ_OUTCOME_FRONT,
	    .element = element->str,
	    .len = element->len};
	redisReply *reply;

	if (charge(&how, limit, &header))
		how.outcome = MQ_OUTCOME_REJECT;
	mq_layout_rmq.settle(dead, 0, &how, &c);
	reply = mq_redis_call(r, &c);
	mq_command_free(&c);
	mq_buf_free(&header);
	if (reply == NULL)
		return -1;
	/* Another cleaner may have been first. */
	if (mq_layout_rmq.settled(reply))
		*(how.outcome == MQ_OUTCOME_REJECT ? &out->rejected :
						     &out->returned) += 1;
	freeReplyObject(reply);
	return 0;
}

/*
 * What may have been running when the connection died: the oldest messages,
 * as many as it had slots.  LRANGE tells the newest first, which is the order
 * in which they must go back to the front.
 */
static int
return_running(struct mq_redis *r, const char *connection, const char *queue,
    int limit, struct mq_cleaned *out)
{
	const char *const queues[] = {queue};
	const struct mq_session dead = {
	    .connection = connection, .queues = queues, .queue_count = 1};
	struct mq_command c = {0};
	redisReply *reply;
	size_t i;
	int rv = 0;

	mq_layout_rmq.held(&dead, 0, &c);
	reply = mq_redis_call(r, &c);
	mq_command_free(&c);
	if (reply == NULL)
		return -1;
	for (i = 0; i < reply->elements && rv == 0; i++)
		rv = return_charged(r, &dead, reply->element[i], limit, out);
	freeReplyObject(reply);
	return rv;
}

/*
 * One queue of a dead connection.  A crash anywhere in here leaves the
 * connection and the queue listed, so that the next cleaner goes on.
 */
static int
clean_queue(struct mq_redis *r, const char *connection, const char *queue,
    long slots, int limit, struct mq_cleaned *out)
{
	redisReply *reply;
	int i, rv = 0;

	if (reclaim(r, connection, queue, slots, out) == -1 ||
	    return_running(r, connection, queue, limit, out) == -1 ||
	    reclaim(r, connection, queue, 0, out) == -1)
		return -1;
	if (send_about_set(r, "SADD", RMQ_QUEUES, queue) == -1 ||
	    send_about_both(r, "DEL", connection, queue, "consumers") == -1 ||
	    send_about_connection(r, "SREM", connection, "queues", queue) == -1)
		return -1;
	for (i = 0; i < 3 && rv == 0; i++) {
		reply = expect(r, REDIS_REPLY_INTEGER);
		if (reply == NULL)
			rv = -1;
		else
			freeReplyObject(reply);
	}
	return rv;
}

static int
clean_connection(struct mq_redis *r, const char *connection, int limit,
    struct mq_cleaned *out)
{
	redisReply *queues;
	long long removed, dropped;
	long slots;
	size_t i;
	int rv = 0;

	if (slots_of(r, connection, &slots) == -1 ||
	    send_about_connection(r, "SMEMBERS", connection, "queues", NULL) ==
		-1)
		return -1;
	queues = expect(r, REDIS_REPLY_ARRAY);
	if (queues == NULL)
		return -1;
	for (i = 0; i < queues->elements && rv == 0; i++)
		rv = clean_queue(
		    r, connection, queues->element[i]->str, slots, limit, out);
	freeReplyObject(queues);
	if (rv == -1 ||
	    send_about_set(r, "SREM", RMQ_CONNECTIONS, connection) == -1 ||
	    send_about_connection(r, "DEL", connection, "info", NULL) == -1 ||
	    expect_number(r, &removed) == -1 ||
	    expect_number(r, &dropped) == -1)
		return -1;
	out->connections += (long)removed;
	return 0;
}

static redisReply *
connections(struct mq_redis *r)
{
	if (send_about_set(r, "SMEMBERS", RMQ_CONNECTIONS, NULL) == -1)
		return NULL;
	return expect(r, REDIS_REPLY_ARRAY);
}

int
rmq_clean(struct mq_redis *r, int limit, struct mq_cleaned *out)
{
	redisReply *all = connections(r);
	long long *ttl;
	size_t i;
	int rv = -1;

	*out = (struct mq_cleaned){.next_ms = -1};
	if (all == NULL)
		return -1;
	ttl = mq_xcalloc(all->elements + 1, sizeof(*ttl));
	for (i = 0; i < all->elements; i++)
		if (send_about_connection(r, "PTTL", all->element[i]->str,
			"heartbeat", NULL) == -1)
			goto out;
	for (i = 0; i < all->elements; i++)
		if (expect_number(r, &ttl[i]) == -1)
			goto out;
	rv = 0;
	for (i = 0; i < all->elements && rv == 0; i++)
		if (ttl[i] <= 0)
			rv = clean_connection(
			    r, all->element[i]->str, limit, out);
		else if (ttl[i] < RENEWED_MS &&
		    (out->next_ms == -1 || ttl[i] < out->next_ms))
			out->next_ms = ttl[i];
out:
	free(ttl);
	freeReplyObject(all);
	return rv;
}

/* --- counting ------------------------------------------------------------- */

/* Sums the lengths of all unacked lists of one queue. */
static int
unacked_of(struct mq_redis *r, const redisReply *all, const char *queue,
    long long *sum)
{
	size_t i;

	for (i = 0; i < all->elements; i++)
		if (send_about_both(r, "LLEN", all->element[i]->str, queue,
			"unacked") == -1)
			return -1;
	for (i = 0; i < all->elements; i++)
		if (expect_more(r, sum) == -1)
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
	    send_about_queue(r, "LLEN", queue, "ready") == 0 &&
	    expect_more(r, sum) == 0 && expect_more(r, sum) == 0)
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
	all = connections(r);
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
		if (send_about_set(r, "SISMEMBER", RMQ_QUEUES, queues[i]) == -1)
			return -1;
	for (i = 0; i < count; i++) {
		if (expect_number(r, &known) == -1)
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

	if (send_about_set(r, "SMEMBERS", RMQ_QUEUES, NULL) == -1)
		return -1;
	names = expect(r, REDIS_REPLY_ARRAY);
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
		if (send_about_queue(r, "LLEN", q->name, "ready") == -1 ||
		    send_about_queue(r, "ZCARD", q->name, "delayed") == -1 ||
		    send_about_queue(r, "LLEN", q->name, "rejected") == -1)
			return -1;
	}
	for (i = 0; i < out->count; i++) {
		q = &out->queues[i];
		if (expect_number(r, &q->ready) == -1 ||
		    expect_number(r, &q->delayed) == -1 ||
		    expect_number(r, &q->rejected) == -1)
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
		if (send_about_both(r, "LLEN", connection,
			consumed->element[i]->str, "unacked") == -1 ||
		    send_about_both(r, "SCARD", connection,
			consumed->element[i]->str, "consumers") == -1)
			return -1;
	for (i = 0; i < consumed->elements; i++) {
		struct mq_queue_stats other = {0};

		q = find(out, consumed->element[i]->str);
		if (q == NULL)
			q = &other;
		if (expect_more(r, &q->unacked) == -1 ||
		    expect_more(r, &q->consumers) == -1)
			return -1;
	}
	return 0;
}

static int
count_connections(struct mq_redis *r, struct mq_stats *out)
{
	redisReply *all = connections(r), **consumed;
	size_t i;
	int rv = -1;

	if (all == NULL)
		return -1;
	consumed = mq_xcalloc(all->elements + 1, sizeof(*consumed));
	for (i = 0; i < all->elements; i++)
		if (send_about_connection(r, "SMEMBERS", all->element[i]->str,
			"queues", NULL) == -1)
			goto out;
	for (i = 0; i < all->elements; i++) {
		consumed[i] = expect(r, REDIS_REPLY_ARRAY);
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

	for (; rows.count < count; rows.count++) {
		rows.queues[rows.count] = *find(out, queues[rows.count]);
		rows.queues[rows.count].name = mq_xstrdup(queues[rows.count]);
	}
	mq_stats_free(out);
	*out = rows;
}

int
rmq_stats(struct mq_redis *r, const char *const *queues, int count,
    struct mq_stats *out)
{
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
