/* The rmq layout: making ready what is due. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "rmq.h"

/* Each queue has a tick, and a number of messages that are due. */
struct due {
	struct rmq_cleaner *w;
	struct mq_names queues;
	int64_t now;
	/* now, on a cluster by the clock of each node; a tick that another program has set
	 * may be anything. */
	long long *at, *tick, *count;
	bool by_tick; /* those are counted now that wait for a tick */
};

static void
ask_count(void *arg, size_t i, struct mq_command *c)
{
	const struct due *d = arg;
	int64_t tick = d->tick[i] <= 0 ? -1 :
	    d->tick[i] < MQ_TICK_MAX   ? d->tick[i] :
					 MQ_TICK_MAX;
	int64_t now =
	    d->at != NULL && d->at[i] != RMQ_NO_ANSWER ? d->at[i] : d->now;

	mq_command_plain(c, "ZCOUNT");
	rmq_key_queue(c, d->queues.list[i].name, "delayed");
	mq_command_int(c, d->by_tick ? RMQ_AT_TICK : -RMQ_AT_TICK);
	mq_command_int(c, d->by_tick ? RMQ_AT_TICK + tick : now);
}

static int
take_count(void *arg, size_t i, redisReply *reply)
{
	struct due *d = arg;

	if (mq_round_good(&d->w->round, reply, REDIS_REPLY_INTEGER))
		d->count[i] += reply->integer;
	return 0;
}

/* Moves one queue's due messages, slice by slice. */
static int
promote(struct rmq_cleaner *w, const char *queue)
{
	struct mq_command c = mq_redis_command(w->round.r);
	redisReply *reply;
	bool more = true;
	int rv = 0;

	while (more && rv == 0) {
		mq_command_script(&c, &rmq_script_promote);
		rmq_queue_keys(&c, queue);
		rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &reply);
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

int
rmq_due(struct rmq_cleaner *w)
{
	static const struct rmq_question clock = {
	    "GET", "clock", .optional = true};
	static const struct rmq_question time = {"TIME", .of = RMQ_OF_NODE};
	struct due d = {.w = w};
	struct mq_redis *r = w->round.r;
	size_t i;
	int rv = rmq_cleaner_now(w, NULL, &d.now);

	if (rv == 0)
		rv = rmq_busy_queues(w, &d.queues);
	/* In a dry run, those that would be known by now. */
	for (i = 0; i < w->known.n; i++)
		mq_names_add(&d.queues, w->known.list[i].name, NULL);
	mq_names_sort(&d.queues);
	d.count = mq_xcalloc(d.queues.n + 1, sizeof(*d.count));
	if (rv == 0 && mq_redis_command(r).cluster)
		rv = rmq_cleaner_ask(w, &d.queues, &time, 1, &d.at);
	if (rv == 0)
		rv = rmq_cleaner_ask(w, &d.queues, &clock, 1, &d.tick);
	if (rv == 0)
		rv = mq_ask_each(r, d.queues.n, ask_count, take_count, &d);
	d.by_tick = true;
	if (rv == 0)
		rv = mq_ask_each(r, d.queues.n, ask_count, take_count, &d);
	for (i = 0; i < d.queues.n && rv == 0; i++)
		if (w->how->dry_run)
			w->out->due += (long)d.count[i];
		else if (d.count[i] > 0)
			rv = promote(w, d.queues.list[i].name);
	free(d.at);
	free(d.tick);
	free(d.count);
	mq_names_free(&d.queues);
	return rv;
}
