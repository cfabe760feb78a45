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

/* Adds the connection if it lives; *whole becomes false if nobody knows. */
static void
note_live(
    struct mq_names *live, const char *connection, long long ttl, bool *whole)
{
	if (ttl == RMQ_NO_ANSWER)
		*whole = false;
	else if (ttl > 0)
		mq_names_add(live, connection, NULL);
}

/* Between two steps: none may come and go unseen, however long they take. */
static int
watch_connections(struct rmq_check *p, bool *whole)
{
	double now = mq_clock_s(CLOCK_MONOTONIC), unseen = now - p->seen_s;
	struct mq_names all = {0};
	long long *ttl = NULL;
	size_t i;
	int rv;

	if (p->seen_s == 0 || unseen < WATCH_S)
		return 0;
	if (unseen > RMQ_UNSEEN_S)
		*whole = false;
	rv = rmq_cleaner_listed(p->w, RMQ_CONNECTIONS, &all, whole);
	if (rv == 0)
		rv = rmq_cleaner_ask(p->w, &all, &rmq_heartbeat, 1, &ttl);
	for (i = 0; rv == 0 && i < all.n; i++)
		note_live(&p->live, all.list[i].name, ttl[i], whole);
	mq_names_sort(&p->live);
	mq_names_free(&all);
	free(ttl);
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

/* No name may be left out. */
int
rmq_check_unacked(struct rmq_check *p, struct mq_names *live, bool *whole)
{
	const struct rmq_question questions[] = {
	    {"LLEN", "unacked", .of = RMQ_OF_BOTH}, rmq_heartbeat};
	struct mq_names all = {0}, lists = {0};
	long long *has = NULL;
	size_t i;
	int rv = rmq_cleaner_listed(p->w, RMQ_CONNECTIONS, &all, whole);

	for (i = 0; i < all.n && *whole; i++)
		mq_names_add(&lists, all.list[i].name, p->queue);
	if (rv == 0)
		rv = rmq_cleaner_ask(p->w, &lists, questions, 2, &has);
	for (i = 0; rv == 0 && i < lists.n; i++) {
		note_live(live, lists.list[i].name, has[2 * i + 1], whole);
		*whole &= has[2 * i] != RMQ_NO_ANSWER;
	}
	for (i = 0; rv == 0 && i < lists.n; i++)
		if (has[2 * i] > 0)
			rv = rmq_check_place(
			    p, "unacked", lists.list[i].name, whole);
	mq_names_free(&lists);
	mq_names_free(&all);
	free(has);
	return rv;
}
