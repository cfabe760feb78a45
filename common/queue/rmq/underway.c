/*
 * The rmq layout: on a cluster, ending transfers that somebody has begun, and
 * forgetting their marks; see rmq.h.
 */
#include <stdlib.h>
#include <string.h>

#include "rmq.h"

/* A mark stays for so long, as a program that was stopped may repeat a step late; when
 * a queue has very many marks, for a shorter time. */
#define MARK_MS	     (24 * INT64_C(3600000))
#define MARK_MANY_MS INT64_C(600000)
#define MARK_MANY    10000

/* Some marks of a queue: fields and values by turns. */
struct marks {
	struct rmq_cleaner *w;
	const char *queue;
	int64_t before_ms;
	redisReply *list;
	struct mq_command drop;
};

/* A mark is of the form "MS SOURCE".  NULL: it is new, or none of ours. */
static const char *
source_of(const struct marks *m, size_t i)
{
	const redisReply *value = m->list->element[2 * i + 1];
	char *source;

	if (strtoll(value->str, &source, 10) >= m->before_ms ||
	    *source != ' ' || rmq_queue_error(source + 1) != NULL)
		return NULL;
	return source + 1;
}

static void
ask_outgoing(void *arg, size_t i, struct mq_command *c)
{
	const struct marks *m = arg;
	const char *source = source_of(m, i);

	if (source == NULL) {
		mq_command_plain(c, "PING");
		return;
	}
	mq_command_plain(c, "HEXISTS");
	rmq_key_queue(c, source, "outgoing");
	mq_command_arg(
	    c, m->list->element[2 * i]->str, m->list->element[2 * i]->len);
}

static int
take_outgoing(void *arg, size_t i, redisReply *reply)
{
	struct marks *m = arg;
	const redisReply *field = m->list->element[2 * i];

	if (source_of(m, i) != NULL &&
	    mq_round_good(&m->w->round, reply, REDIS_REPLY_INTEGER) &&
	    reply->integer == 0)
		mq_command_arg(&m->drop, field->str, field->len);
	return 0;
}

/* Those that the source's outgoing has no more. */
static int
drop_marks(void *marks, redisReply *some)
{
	struct marks *m = marks;
	struct mq_redis *r = m->w->round.r;
	redisReply *reply;
	int none, rv;

	m->list = some;
	m->drop = mq_redis_command(r);
	mq_command_plain(&m->drop, "HDEL");
	rmq_key_queue(&m->drop, m->queue, "incoming");
	none = m->drop.args;
	rv = mq_ask_each(
	    r, m->list->elements / 2, ask_outgoing, take_outgoing, m);
	if (rv == -1 || m->drop.args == none) {
		mq_command_free(&m->drop);
		return rv;
	}
	rv = mq_round_call(&m->w->round, &m->drop, REDIS_REPLY_INTEGER, &reply);
	freeReplyObject(reply);
	return rv;
}

/* n: how many are outgoing, and the marks of those incoming. */
static int
clean_queue(struct rmq_cleaner *w, const char *queue, const long long *n,
    int64_t now_ms)
{
	int64_t age = n[1] > MARK_MANY ? MARK_MANY_MS : MARK_MS;
	struct marks m = {.w = w, .queue = queue, .before_ms = now_ms - age};
	long ended = n[0] > 0 && w->how->dry_run ? (long)n[0] : 0;
	int rv = 0;

	if (n[0] > 0 && !w->how->dry_run)
		rv = rmq_transfer_finish(&w->round, queue, NULL, &ended);
	w->out->transferred += ended;
	if (rv == 0 && n[1] > 0 && now_ms > 0 && !w->how->dry_run)
		rv = rmq_cleaner_fields(w, queue, "incoming", drop_marks, &m);
	return rv;
}

int
rmq_underway(struct rmq_cleaner *w)
{
	static const struct rmq_question lengths[] = {
	    {"HLEN", .what = "outgoing"}, {"HLEN", .what = "incoming"}};
	const struct mq_command c = mq_redis_command(w->round.r);
	struct mq_names queues = {0};
	long long *n = NULL;
	int64_t now_ms = 0;
	size_t i;
	int rv = rmq_cleaner_listed(w, RMQ_QUEUES, &queues, NULL);

	for (i = 0; i < queues.n; i++)
		if (rmq_is_scattered(&c, queues.list[i].name))
			rmq_cleaner_scattered(w, queues.list[i].name);
	if (rv == 0)
		rv = rmq_cleaner_now(w, NULL, &now_ms);
	if (rv == 0)
		rv = rmq_cleaner_ask(w, &queues, lengths, 2, &n);
	for (i = 0; i < queues.n && rv == 0; i++)
		rv = clean_queue(w, queues.list[i].name, n + 2 * i, now_ms);
	free(n);
	mq_names_free(&queues);
	return rv;
}
