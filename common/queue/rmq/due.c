/*
 * The rmq layout: making ready what is due.
 */
#include <stdlib.h>
#include <string.h>

#include "clean.h"
#include "keys.h"
#include "scripts.h"

int
rmq_round_ms(struct rmq_round *w, long long *ms)
{
	redisReply *time;
	int64_t now = 0;
	int rv;

	mq_command_plain(mq_pipe_next(&w->pipe), "TIME");
	rv = rmq_round_ask(w, REDIS_REPLY_ARRAY, &time);
	*ms = 0;
	if (time == NULL)
		return rv;
	if (mq_reply_time(time, &now) == 0)
		*ms = now;
	freeReplyObject(time);
	return rv;
}

int
rmq_known_queues(struct rmq_round *w, struct mq_names *queues)
{
	struct mq_command *c = mq_pipe_next(&w->pipe);
	redisReply *all;
	size_t i;
	int rv;

	mq_command_plain(c, "SMEMBERS");
	mq_command_str(c, RMQ_QUEUES);
	rv = rmq_round_ask_strings(w, &all);
	if (all == NULL)
		return rv;
	for (i = 0; i < all->elements; i++)
		/* No key can be made of a name with a NUL in it here. */
		if (strlen(all->element[i]->str) == all->element[i]->len)
			mq_names_add(queues, all->element[i]->str, NULL);
	freeReplyObject(all);
	return rv;
}

/* Moves one queue's due messages, slice by slice. */
static int
promote(struct rmq_round *w, const char *queue)
{
	struct mq_command *c;
	redisReply *reply;
	bool more = true;
	int rv = 0;

	while (more && rv == 0) {
		c = mq_pipe_next(&w->pipe);
		mq_command_script(c, &rmq_script_promote, RMQ_HOME);
		rmq_key_home(c, queue);
		rv = rmq_round_ask(w, REDIS_REPLY_ARRAY, &reply);
		more = false;
		if (reply == NULL)
			continue;
		if (reply->elements == 2) {
			w->out->due += (long)reply->element[0]->integer;
			more = reply->element[1]->integer != 0;
		}
		freeReplyObject(reply);
	}
	return rv;
}

static void
ask_count(struct rmq_round *w, const char *queue, long long from, long long to)
{
	struct mq_command *c = mq_pipe_next(&w->pipe);

	mq_command_plain(c, "ZCOUNT");
	rmq_key_queue(c, queue, "delayed");
	mq_command_int(c, from);
	mq_command_int(c, to);
}

/* Sends what was asked of n queues, and adds the integers to counts. */
static int
take_counts(struct rmq_round *w, size_t n, long long *counts)
{
	const redisReply *reply;
	size_t i;
	int rv = mq_pipe_run(w->r, &w->pipe);

	for (i = 0; i < n && rv == 0; i++) {
		reply = w->pipe.replies[i];
		if (rmq_round_good(w, reply, REDIS_REPLY_INTEGER))
			counts[i] += reply->integer;
	}
	mq_pipe_clear(&w->pipe);
	return rv;
}

/* A clock that somebody else has set may say anything. */
static long long
tick_of(const redisReply *reply)
{
	long long tick = reply->type == REDIS_REPLY_STRING ?
	    strtoll(reply->str, NULL, 10) :
	    0;

	return tick < MQ_TICK_MAX ? tick : MQ_TICK_MAX;
}

static int
read_clocks(struct rmq_round *w, const struct mq_name *queues, size_t n,
    long long *ticks)
{
	struct mq_command *c;
	size_t i;
	int rv;

	for (i = 0; i < n; i++) {
		c = mq_pipe_next(&w->pipe);
		mq_command_plain(c, "GET");
		rmq_key_queue(c, queues[i].name, "clock");
	}
	rv = mq_pipe_run(w->r, &w->pipe);
	for (i = 0; i < n && rv == 0; i++)
		ticks[i] = tick_of(w->pipe.replies[i]);
	mq_pipe_clear(&w->pipe);
	return rv;
}

/*
 * Asks how many are due in each of n queues, by their time or their tick;
 * due[i] becomes that.
 */
static int
count_due(struct rmq_round *w, const struct mq_name *queues, size_t n,
    long long now, long long *due)
{
	long long ticks[MQ_PIPE_MAX] = {0};
	size_t i;
	int rv = read_clocks(w, queues, n, ticks);

	memset(due, 0, n * sizeof(*due));
	for (i = 0; i < n && rv == 0; i++)
		ask_count(w, queues[i].name, -RMQ_AT_TICK, now);
	if (rv == 0)
		rv = take_counts(w, n, due);
	for (i = 0; i < n && rv == 0; i++)
		ask_count(w, queues[i].name, RMQ_AT_TICK,
		    RMQ_AT_TICK + (ticks[i] > 0 ? ticks[i] : -1));
	return rv == 0 ? take_counts(w, n, due) : rv;
}

static int
make_ready(
    struct rmq_round *w, const struct mq_name *queues, size_t n, long long now)
{
	long long due[MQ_PIPE_MAX];
	size_t i;
	int rv = count_due(w, queues, n, now, due);

	for (i = 0; i < n && rv == 0; i++)
		if (w->how->dry_run)
			w->out->due += (long)due[i];
		else if (due[i] > 0)
			rv = promote(w, queues[i].name);
	return rv;
}

int
rmq_due(struct rmq_round *w)
{
	struct mq_names queues = {0};
	size_t i, n;
	long long now;
	int rv = rmq_round_ms(w, &now);

	if (rv == 0)
		rv = rmq_known_queues(w, &queues);
	/* In a dry run, those that would be known by now. */
	for (i = 0; i < w->known.n; i++)
		mq_names_add(&queues, w->known.list[i].name, NULL);
	mq_names_sort(&queues);
	for (i = 0; i < queues.n && rv == 0; i += n) {
		n = queues.n - i;
		if (n > MQ_PIPE_MAX)
			n = MQ_PIPE_MAX;
		rv = make_ready(w, queues.list + i, n, now);
	}
	mq_names_free(&queues);
	return rv;
}
