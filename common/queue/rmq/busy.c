/*
 * The rmq layout: queues that cleaning has something to do in.
 *
 * A million queues may be known, and nearly all of them have no keys.  mq-clean looks
 * through all keys, and comes by those queues.  Consumers ask the known queues, some at
 * a time.
 */
#include "redis/connection.h"
#include "redis/ask.h"
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

/* Whether the node of the names is lost, and did not say which queues there are. */
static bool
are_missed(const struct mq_redis *r)
{
	struct mq_command c = mq_redis_command(r);
	bool missed;

	mq_command_plain(&c, "SSCAN");
	rmq_key_all(&c, RMQ_QUEUES);
	missed = mq_partial_missed(r, &c) != NULL;
	mq_command_free(&c);
	return missed;
}

int
rmq_busy_queues(struct rmq_cleaner *w, struct mq_names *queues)
{
	struct look l = {.w = w, .queues = queues};
	int rv;

	if (!w->how->all || w->blind) {
		rv = ask_known(w, queues);
		if (rv == 0 && w->how->all && are_missed(w->round.r))
			rv = rmq_find_queues(w->round.r, queues);
	} else {
		mq_names_sort(&w->busy);
		rv =
		    mq_ask_each(w->round.r, w->busy.n, ask_look, take_look, &l);
	}
	mq_names_sort(queues);
	return rv;
}
