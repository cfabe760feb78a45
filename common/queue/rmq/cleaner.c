/*
 * The rmq layout: what the steps of a round of cleaning share.
 */
#include "rmq.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

int
rmq_call_names(struct mq_redis *r, const char *set, struct mq_names *names,
    struct mq_names *odd)
{
	redisReply *all = mq_call_members(r, set);

	if (all == NULL)
		return -1;
	mq_rows_list(names, all, odd);
	freeReplyObject(all);
	return 0;
}

int
rmq_cleaner_listed(
    struct rmq_cleaner *w, const char *set, struct mq_names *names, bool *whole)
{
	redisReply *all;
	int rv = mq_round_members(&w->round, set, &all);

	if (all != NULL)
		mq_rows_list(names, all, NULL);
	if (whole != NULL)
		*whole &= all != NULL && names->n == all->elements;
	freeReplyObject(all);
	return rv;
}

int
rmq_cleaner_now(struct rmq_cleaner *w, const char *queue, int64_t *ms)
{
	struct mq_command c = mq_redis_command(w->round.r);
	redisReply *time;
	int rv;

	*ms = 0;
	mq_command_plain(&c, "TIME");
	if (queue != NULL)
		rmq_beside_queue(&c, queue);
	rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &time);
	if (time != NULL)
		(void)mq_reply_time(time, ms);
	freeReplyObject(time);
	return rv;
}

struct questioning {
	struct rmq_cleaner *w;
	const struct mq_names *names;
	const struct rmq_question *list;
	size_t n;
	long long *answers;
};

static void
ask_question(void *arg, size_t i, struct mq_command *c)
{
	const struct questioning *all = arg;
	const struct mq_name *name = &all->names->list[i / all->n];

	rmq_ask(c, &all->list[i % all->n], name->name, name->queue);
}

static int
take_number(void *arg, size_t i, redisReply *reply)
{
	struct questioning *all = arg;
	int64_t ms;

	if (reply->type == REDIS_REPLY_STRING)
		all->answers[i] = strtoll(reply->str, NULL, 10);
	else if (mq_reply_time(reply, &ms) == 0)
		all->answers[i] = ms;
	else if (reply->type == REDIS_REPLY_INTEGER)
		all->answers[i] = reply->integer;
	else if (!all->list[i % all->n].optional)
		(void)mq_round_good(&all->w->round, reply, REDIS_REPLY_INTEGER);
	return 0;
}

int
rmq_cleaner_ask(struct rmq_cleaner *w, const struct mq_names *names,
    const struct rmq_question *list, size_t n, long long **answers)
{
	struct questioning all = {w, names, list, n, NULL};
	size_t i;

	*answers = mq_xcalloc(n * names->n + 1, sizeof(**answers));
	for (i = 0; i < n * names->n; i++)
		(*answers)[i] = RMQ_NO_ANSWER;
	all.answers = *answers;
	return mq_ask_each(
	    w->round.r, n * names->n, ask_question, take_number, &all);
}

int
rmq_cleaner_fields(struct rmq_cleaner *w, const char *queue, const char *what,
    int (*take)(void *arg, redisReply *some), void *arg)
{
	struct mq_command c = mq_redis_command(w->round.r);
	char cursor[MQ_CURSOR_SIZE] = "0";
	redisReply *reply, *some;
	int rv = 0;

	while (rv == 0 && *cursor != '\0') {
		mq_command_plain(&c, "HSCAN");
		rmq_key_queue(&c, queue, what);
		mq_command_str(&c, cursor);
		mq_command_str(&c, "COUNT");
		mq_command_int(&c, MQ_CURSOR_STEP);
		rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &reply);
		if (reply == NULL)
			break;
		some = mq_cursor_take(cursor, reply);
		if (some != NULL && mq_reply_is(some, ""))
			rv = take(arg, some);
		freeReplyObject(reply);
	}
	return rv;
}

void
rmq_cleaner_count(struct rmq_cleaner *w, const char *queue, long crashed,
    long rejected, long expired)
{
	size_t n = w->count_n;
	struct rmq_count *at;

	if (crashed == 0 && expired == 0)
		return;
	/* Most of a queue come one after the other. */
	if (n == 0 || strcmp(w->counts[n - 1].queue, queue) != 0) {
		w->counts =
		    mq_xreallocarray(w->counts, n + 1, sizeof(*w->counts));
		w->counts[w->count_n++] =
		    (struct rmq_count){.queue = mq_xstrdup(queue)};
	}
	at = &w->counts[w->count_n - 1];
	at->n.runs += crashed;
	at->n.crashed += crashed;
	at->n.failed += rejected + expired;
	at->n.expired += expired;
}
