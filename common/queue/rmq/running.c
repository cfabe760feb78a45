/*
 * The rmq layout: what runs at the consumers.
 */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "queue/running.h"

/* Replies in hand at once: a connection may have a lot to tell. */
#define SLICE 100

/* The next reply, a string or NULL for nothing there; -1 on failure. */
static int
next_text(struct mq_redis *r, redisReply **out)
{
	redisReply *reply = mq_redis_reply(r);

	*out = NULL;
	if (reply == NULL)
		return -1;
	if (reply->type == REDIS_REPLY_STRING) {
		*out = reply;
		return 0;
	}
	if (mq_redis_refused(r, reply)) {
		freeReplyObject(reply);
		return -1;
	}
	freeReplyObject(reply);
	return 0;
}

/* The replies for one connection: its heartbeat, its list, its host. */
static int
read_one(struct mq_redis *r, const char *connection, struct mq_runs *out)
{
	redisReply *text = NULL, *host = NULL;
	long long ttl;
	int rv = -1;

	if (mq_expect_number(r, &ttl) == -1 || next_text(r, &text) == -1)
		return -1;
	if (next_text(r, &host) == 0) {
		if (ttl > 0 && text != NULL)
			mq_runs_read(out, text->str, text->len, connection,
			    host != NULL ? host->str : NULL);
		rv = 0;
	}
	if (text != NULL)
		freeReplyObject(text);
	if (host != NULL)
		freeReplyObject(host);
	return rv;
}

static int
ask_one(struct mq_redis *r, const char *connection)
{
	if (rmq_send_about_connection(
		r, "PTTL", connection, "heartbeat", NULL) == -1 ||
	    rmq_send_about_connection(r, "GET", connection, "running", NULL) ==
		-1)
		return -1;
	return rmq_send_about_connection(r, "HGET", connection, "info", "host");
}

static int
read_slice(struct mq_redis *r, redisReply *const *connections, size_t n,
    struct mq_runs *out)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (ask_one(r, connections[i]->str) == -1)
			return -1;
	for (i = 0; i < n; i++)
		if (read_one(r, connections[i]->str, out) == -1)
			return -1;
	return 0;
}

int
rmq_running(struct mq_redis *r, struct mq_runs *out)
{
	redisReply *all = rmq_connections(r);
	size_t i, n;
	int rv = 0;

	*out = (struct mq_runs){0};
	if (all == NULL)
		return -1;
	for (i = 0; i < all->elements && rv == 0; i += n) {
		n = all->elements - i < SLICE ? all->elements - i : SLICE;
		rv = read_slice(r, all->element + i, n, out);
	}
	freeReplyObject(all);
	if (rv == -1)
		mq_runs_free(out);
	else
		mq_runs_sort(out);
	return rv;
}
