/*
 * The rmq layout: cleaning up after dead connections.
 */
#include "layout-rmq.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "message.h"
#include "rmq-ask.h"
#include "rmq-keys.h"
#include "xalloc.h"

/* How many messages one call of the reclaim script moves at most. */
#define SLICE 500
/* A live heartbeat is renewed every second; less than this is on its way out. */
#define RENEWED_MS 55000
#define CRASHED	   "its consumer died while it ran"

/* How many messages could run at once there; 0 for peers that do not say. */
static int
slots_of(struct mq_redis *r, const char *connection, long *slots)
{
	redisReply *reply;

	if (rmq_send_about_connection(r, "HGET", connection, "info", "slots") ==
	    -1)
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
	mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), id);
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

static int
make_known(struct mq_redis *r, const char *queue)
{
	struct mq_command c = {0};
	redisReply *reply;

	rmq_force(&c, "SADD", RMQ_QUEUES);
	mq_command_str(&c, queue);
	reply = mq_redis_call(r, &c);
	mq_command_free(&c);
	if (reply == NULL)
		return -1;
	freeReplyObject(reply);
	return 0;
}

/*
 * One queue of a dead connection.  A crash anywhere in here leaves the
 * connection and the queue listed, so that the next cleaner goes on.
 */
static int
clean_queue(struct mq_redis *r, const char *connection, const char *queue,
    long slots, int limit, struct mq_cleaned *out)
{
	long long ignored;

	if (reclaim(r, connection, queue, slots, out) == -1 ||
	    return_running(r, connection, queue, limit, out) == -1 ||
	    reclaim(r, connection, queue, 0, out) == -1 ||
	    make_known(r, queue) == -1 ||
	    rmq_send_about_both(r, "DEL", connection, queue, "consumers") ==
		-1 ||
	    rmq_send_about_connection(r, "SREM", connection, "queues", queue) ==
		-1 ||
	    rmq_expect_number(r, &ignored) == -1 ||
	    rmq_expect_number(r, &ignored) == -1)
		return -1;
	return 0;
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
	    rmq_send_about_connection(
		r, "SMEMBERS", connection, "queues", NULL) == -1)
		return -1;
	queues = rmq_expect(r, REDIS_REPLY_ARRAY);
	if (queues == NULL)
		return -1;
	for (i = 0; i < queues->elements && rv == 0; i++)
		rv = clean_queue(
		    r, connection, queues->element[i]->str, slots, limit, out);
	freeReplyObject(queues);
	if (rv == -1 ||
	    rmq_send_about_set(r, "SREM", RMQ_CONNECTIONS, connection) == -1 ||
	    rmq_send_about_connection(r, "DEL", connection, "info", NULL) ==
		-1 ||
	    rmq_expect_number(r, &removed) == -1 ||
	    rmq_expect_number(r, &dropped) == -1)
		return -1;
	out->connections += (long)removed;
	return 0;
}

int
rmq_clean(
    struct mq_redis *r, const struct mq_clean *how, struct mq_cleaned *out)
{
	int limit = how->limit;
	redisReply *all = rmq_connections(r);
	long long *ttl;
	size_t i;
	int rv = -1;

	*out = (struct mq_cleaned){.next_ms = -1};
	if (all == NULL)
		return -1;
	ttl = mq_xcalloc(all->elements + 1, sizeof(*ttl));
	for (i = 0; i < all->elements; i++)
		if (rmq_send_about_connection(r, "PTTL", all->element[i]->str,
			"heartbeat", NULL) == -1)
			goto out;
	for (i = 0; i < all->elements; i++)
		if (rmq_expect_number(r, &ttl[i]) == -1)
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
