/*
 * The rmq layout: the queues that cleaning has something to do in, and making ready what
 * is due there.
 *
 * A million queues may be known, and nearly all of them have no keys.  mq-clean looks
 * through all keys, and comes by those queues.  Consumers ask the known queues, some at
 * a time.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "rmq.h"

struct look {
	struct rmq_cleaner *w;
	const redisReply *some; /* names, of a step; NULL: those of w->busy */
	struct mq_names *queues;
};

static const char *
name_of(const struct look *l, size_t i)
{
	return l->some != NULL ? l->some->element[i]->str :
				 l->w->busy.list[i].name;
}

/* Of a queue whose keys were seen, whether it is known; else whether it has keys. */
static void
ask_look(void *arg, size_t i, struct mq_command *c)
{
	const struct look *l = arg;

	if (l->some == NULL) {
		mq_command_plain(c, "SISMEMBER");
		rmq_key_all(c, RMQ_QUEUES);
		mq_command_str(c, name_of(l, i));
		return;
	}
	mq_command_plain(c, "EXISTS");
	rmq_key_queue(c, name_of(l, i), "locks");
	if (!rmq_is_scattered(c, name_of(l, i)))
		rmq_key_queue(c, name_of(l, i), "delayed");
}

static int
take_look(void *arg, size_t i, redisReply *reply)
{
	struct look *l = arg;

	if (mq_round_good(&l->w->round, reply, REDIS_REPLY_INTEGER) &&
	    reply->integer > 0)
		mq_names_add(l->queues, name_of(l, i), NULL);
	return 0;
}

static int
ask_known(struct rmq_cleaner *w, struct mq_names *queues)
{
	char cursor[MQ_CURSOR_SIZE] = "0";
	struct look l = {.w = w, .queues = queues};
	redisReply *some;
	int rv = 0;

	while (rv == 0 && *cursor != '\0') {
		rv =
		    mq_round_some_members(&w->round, RMQ_QUEUES, cursor, &some);
		l.some = some;
		if (rv == 0 && some != NULL)
			rv = mq_ask_each(w->round.r, some->elements, ask_look,
			    take_look, &l);
		freeReplyObject(some);
	}
	return rv;
}

int
rmq_busy_queues(struct rmq_cleaner *w, struct mq_names *queues)
{
	struct look l = {.w = w, .queues = queues};
	struct mq_command names = mq_redis_command(w->round.r);
	int rv;

	if (w->how->all && !w->blind) {
		mq_names_sort(&w->busy);
		rv =
		    mq_ask_each(w->round.r, w->busy.n, ask_look, take_look, &l);
	} else {
		rv = ask_known(w, queues);
		/* The node of the names may be lost, and not have said them. */
		mq_command_plain(&names, "SSCAN");
		rmq_key_all(&names, RMQ_QUEUES);
		if (rv == 0 && w->how->all &&
		    mq_partial_missed(w->round.r, &names) != NULL)
			rv = rmq_find_queues(w->round.r, queues);
		mq_command_free(&names);
	}
	mq_names_sort(queues);
	return rv;
}

/* Each queue has a tick, and a number of messages that are due. */
struct due {
	struct rmq_cleaner *w;
	struct mq_names queues;
	int64_t *now; /* each by the clock of its node */
	/* A clock that another program has set may say anything. */
	long long *tick, *count;
	bool by_tick; /* those are counted now that wait for a tick */
};

static void
ask_count(void *arg, size_t i, struct mq_command *c)
{
	const struct due *d = arg;
	int64_t tick = d->tick[i] <= 0 ? -1 :
	    d->tick[i] < MQ_TICK_MAX   ? d->tick[i] :
					 MQ_TICK_MAX;

	mq_command_plain(c, "ZCOUNT");
	rmq_key_queue(c, d->queues.list[i].name, "delayed");
	mq_command_int(c, d->by_tick ? RMQ_AT_TICK : -RMQ_AT_TICK);
	mq_command_int(c, d->by_tick ? RMQ_AT_TICK + tick : d->now[i]);
}

static int
take_count(void *arg, size_t i, redisReply *reply)
{
	struct due *d = arg;

	if (mq_round_good(&d->w->round, reply, REDIS_REPLY_INTEGER))
		d->count[i] += reply->integer;
	return 0;
}

static void
ask_time(void *arg, size_t i, struct mq_command *c)
{
	const struct due *d = arg;

	mq_command_plain(c, "TIME");
	rmq_beside_queue(c, d->queues.list[i].name);
}

static int
take_time(void *arg, size_t i, redisReply *reply)
{
	struct due *d = arg;

	if (mq_round_good(&d->w->round, reply, REDIS_REPLY_ARRAY))
		(void)mq_reply_time(reply, &d->now[i]);
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
	struct due d = {.w = w};
	struct mq_redis *r = w->round.r;
	int64_t now = 0;
	size_t i;
	int rv = rmq_cleaner_now(w, NULL, &now);

	if (rv == 0)
		rv = rmq_busy_queues(w, &d.queues);
	/* In a dry run, those that would be known by now. */
	for (i = 0; i < w->known.n; i++)
		mq_names_add(&d.queues, w->known.list[i].name, NULL);
	mq_names_sort(&d.queues);
	d.now = mq_xcalloc(d.queues.n + 1, sizeof(*d.now));
	d.count = mq_xcalloc(d.queues.n + 1, sizeof(*d.count));
	for (i = 0; i < d.queues.n; i++)
		d.now[i] = now;
	if (rv == 0 && mq_redis_command(r).cluster)
		rv = mq_ask_each(r, d.queues.n, ask_time, take_time, &d);
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
	free(d.now);
	free(d.tick);
	free(d.count);
	mq_names_free(&d.queues);
	return rv;
}
