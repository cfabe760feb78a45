/*
 * The rmq layout: walks through all places of a queue; see lua/check_locks.lua.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rmq.h"

/* How often connections are looked at meanwhile, in seconds. */
#define WATCH_S 15.0

/* Where a walk is. */
struct walk {
	const char *place, *connection; /* connection: of unacked */
	struct mq_buf at, sign;
	bool more;
};

static void
build_step(struct rmq_check *p, const struct walk *at, struct mq_command *c)
{
	char tombstone[MQ_ID_LEN + 1];

	mq_id_make(&p->ids, (uint64_t)mq_clock_unix_us(), tombstone);
	mq_command_script(c, &rmq_script_check_locks);
	rmq_queue_keys(c, p->queue);
	rmq_key_queue(c, p->queue, "rejected");
	if (at->connection != NULL)
		rmq_key_both(c, at->connection, p->queue, "unacked");
	mq_command_str(c, at->place);
	mq_command_arg(c, at->at.data, at->at.len);
	mq_command_arg(c, at->sign.data, at->sign.len);
	mq_command_str(c, p->w->how->dry_run ? "1" : "0");
	mq_command_str(c, tombstone);
}

/* The lowest number that a reply has. */
static void
lower(long long *least, const redisReply *text)
{
	long long n;

	if (text->len == 0)
		return;
	n = strtoll(text->str, NULL, 10);
	if (*least == -1 || n < *least)
		*least = n;
}

enum { MORE, LATE, MISSING, EXPIRES, LAST_TICK, AT, SIGN, IDS };

static bool
is_sound(const redisReply *reply)
{
	size_t i;

	for (i = 0; i < reply->elements; i++)
		if (reply->element[i]->type !=
		    (i < EXPIRES ? REDIS_REPLY_INTEGER : REDIS_REPLY_STRING))
			return false;
	return i >= IDS;
}

static void
take_step(struct rmq_check *p, struct walk *at, const redisReply *reply)
{
	redisReply **e = reply->element;
	size_t i;

	at->more = is_sound(reply) && e[MORE]->integer != 0;
	if (!is_sound(reply))
		return;
	p->late += (long)e[LATE]->integer;
	p->missing += (long)e[MISSING]->integer;
	lower(&p->expires, e[EXPIRES]);
	lower(&p->last_tick, e[LAST_TICK]);
	mq_buf_set(&at->at, e[AT]->str, e[AT]->len);
	mq_buf_set(&at->sign, e[SIGN]->str, e[SIGN]->len);
	for (i = IDS; i < reply->elements; i++)
		if (e[i]->len == MQ_ID_LEN)
			rmq_locks_seen(&p->locks, e[i]->str);
}

/* A look at each of these connections. */
struct look {
	struct rmq_check *p;
	struct mq_names all, holding;
	struct mq_names *live; /* NULL: of no interest */
	bool *whole;
};

static void
ask_heartbeat(void *arg, size_t i, struct mq_command *c)
{
	const struct look *l = arg;

	mq_command_plain(c, "PTTL");
	rmq_key_connection(c, l->all.list[i].name, "heartbeat");
}

static int
take_heartbeat(void *arg, size_t i, redisReply *reply)
{
	struct look *l = arg;

	if (!mq_round_good(&l->p->w->round, reply, REDIS_REPLY_INTEGER))
		*l->whole = false;
	else if (reply->integer > 0 && l->live != NULL)
		mq_names_add(l->live, l->all.list[i].name, NULL);
	return 0;
}

/* Between two steps: none may come and go unseen, however long they take. */
static int
watch_connections(struct rmq_check *p, bool *whole)
{
	double now = mq_clock_s(CLOCK_MONOTONIC), unseen = now - p->seen_s;
	struct look l = {.p = p, .live = &p->live, .whole = whole};
	int rv;

	if (p->seen_s == 0 || unseen < WATCH_S)
		return 0;
	if (unseen > RMQ_UNSEEN_S)
		*whole = false;
	rv = rmq_cleaner_listed(p->w, RMQ_CONNECTIONS, &l.all, whole);
	if (rv == 0)
		rv = mq_ask_each(
		    p->w->round.r, l.all.n, ask_heartbeat, take_heartbeat, &l);
	mq_names_sort(&p->live);
	mq_names_free(&l.all);
	p->seen_s = now;
	return rv;
}

int
rmq_check_place(
    struct rmq_check *p, const char *place, const char *connection, bool *whole)
{
	struct walk at = {
	    .place = place, .connection = connection, .more = true};
	struct mq_command c = mq_redis_command(p->w->round.r);
	redisReply *reply;
	int rv = 0;

	mq_buf_addstr(&at.at, "0");
	while (rv == 0 && at.more) {
		build_step(p, &at, &c);
		rv = mq_round_call(&p->w->round, &c, REDIS_REPLY_ARRAY, &reply);
		at.more = false;
		if (reply == NULL) {
			*whole = false;
			break;
		}
		if (!is_sound(reply))
			*whole = false;
		take_step(p, &at, reply);
		freeReplyObject(reply);
		rv = watch_connections(p, whole);
	}
	mq_buf_free(&at.at);
	mq_buf_free(&at.sign);
	return rv;
}

/* Asks how much a connection holds, then for its heartbeat. */
static void
ask_holder(void *arg, size_t i, struct mq_command *c)
{
	const struct look *l = arg;

	if (i % 2 == 1) {
		ask_heartbeat(arg, i / 2, c);
		return;
	}
	mq_command_plain(c, "LLEN");
	rmq_key_both(c, l->all.list[i / 2].name, l->p->queue, "unacked");
}

static int
take_holder(void *arg, size_t i, redisReply *reply)
{
	struct look *l = arg;

	if (i % 2 == 1)
		return take_heartbeat(arg, i / 2, reply);
	if (!mq_round_good(&l->p->w->round, reply, REDIS_REPLY_INTEGER))
		*l->whole = false;
	else if (reply->integer > 0)
		mq_names_add(&l->holding, l->all.list[i / 2].name, NULL);
	return 0;
}

/* No name may be left out. */
int
rmq_check_unacked(struct rmq_check *p, struct mq_names *live, bool *whole)
{
	struct look l = {.p = p, .live = live, .whole = whole};
	int rv = rmq_cleaner_listed(p->w, RMQ_CONNECTIONS, &l.all, whole);
	size_t i;

	if (rv == 0 && *whole)
		rv = mq_ask_each(
		    p->w->round.r, 2 * l.all.n, ask_holder, take_holder, &l);
	for (i = 0; i < l.holding.n && rv == 0; i++)
		rv = rmq_check_place(
		    p, "unacked", l.holding.list[i].name, whole);
	mq_names_free(&l.holding);
	mq_names_free(&l.all);
	return rv;
}
