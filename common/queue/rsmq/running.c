/*
 * The rsmq layout: what runs at our own consumers, and whether there is
 * anything left to do.
 */
#include "layout.h"

#include <stdlib.h>

#include "ask.h"
#include "base/xalloc.h"
#include "keys.h"
#include "queue/running.h"

/* --- what runs ------------------------------------------------------------------ */

struct gather {
	const redisReply *connections;
	const char *anywhere;
	struct mq_runs *out;
	char *host; /* of the connection that was asked about last */
};

enum { HOST, RUNS, ABOUT };

static void
ask(void *arg, size_t i, struct mq_command *c)
{
	const struct gather *g = arg;
	const char *connection = g->connections->element[i / ABOUT]->str;

	if (i % ABOUT == HOST) {
		mq_command_plain(c, "HGET");
		rsmq_key_lease(c, connection, g->anywhere);
		mq_command_str(c, "host");
	} else {
		mq_command_plain(c, "GET");
		rsmq_key_running(c, connection, g->anywhere);
	}
}

static int
take(void *arg, size_t i, const redisReply *reply)
{
	struct gather *g = arg;
	bool there = reply->type == REDIS_REPLY_STRING;

	if (!there && reply->type != REDIS_REPLY_NIL)
		return -1;
	if (i % ABOUT == HOST) {
		free(g->host);
		g->host = there ? mq_xstrdup(reply->str) : NULL;
	} else if (there && g->host != NULL) {
		/* Nothing runs where the lease is over. */
		mq_runs_read(g->out, reply->str, reply->len,
		    g->connections->element[i / ABOUT]->str, g->host);
	}
	return 0;
}

int
rsmq_running(struct mq_redis *r, struct mq_runs *out)
{
	char *anywhere = rsmq_anywhere(r);
	redisReply *all = rsmq_connections(r, anywhere);
	struct gather g = {
	    .connections = all, .anywhere = anywhere, .out = out};
	const struct mq_questions q = {ask, take, &g};
	int rv = -1;

	*out = (struct mq_runs){0};
	if (all != NULL) {
		rv = mq_ask_all(r, &q, ABOUT * all->elements);
		freeReplyObject(all);
	}
	free(g.host);
	free(anywhere);
	if (rv == -1)
		mq_runs_free(out);
	else
		mq_runs_sort(out);
	return rv;
}

/* --- what is left --------------------------------------------------------------- */

/* Whether one has nothing that is ready, or in anybody's hands. */
static int
is_empty(struct mq_redis *r, const char *queue, bool *empty)
{
	struct rsmq_hidden h = {0};
	int rv = rsmq_count_hidden(r, queue, &h);

	*empty = rv == 0 && h.ready == 0 && h.held == 0;
	rsmq_hidden_free(&h);
	return rv;
}

/* A message may go to where the first look has been already. */
int
rsmq_drained(
    struct mq_redis *r, const char *const *queues, int count, bool *drained)
{
	int look, i;

	*drained = true;
	for (look = 0; look < 2 && *drained; look++)
		for (i = 0; i < count && *drained; i++)
			if (is_empty(r, queues[i], drained) == -1)
				return -1;
	return 0;
}
