/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rmq layout: a census of the messages of a queue, in bounded steps while the queue
 * lives.  A lock or an attachment exists for a message with an id.  Go programs, which end
 * messages, know neither, so a cleaner releases what no message has any more.
 *
 * If a census has not seen an id, no message had it at any moment between the beginning
 * and the end of the census:
 *
 * - Messages go from delayed to ready to unacked to rejected, and the census goes the same
 *   way, through lists from the end that is claimed first, and through sets from the
 *   highest score, since a message in line gets a lower one when its turn begins.  So a
 *   message is seen where it was at the beginning, or where it has gone since.  If the
 *   last message of a step is not found in its list again, the list begins anew.
 * - A Go program moves a message the other way only when it cleans: from the unacked list
 *   of a dead connection to ready.  Those lists come first, and once more at the end.  A
 *   message that was claimed meanwhile can be cleaned away only when its connection has
 *   died.  So the connections are watched all the time: the census proves nothing if a
 *   connection dies meanwhile, or if they were not looked at for nearly as long as a
 *   lease, in which a connection could come and go.
 * - An unacked list of a connection that is not listed would be missed.  So a look through
 *   all keys adopts such lists before the census.  If the server refuses to show its keys,
 *   nothing is released.
 * - Scripts of these tools move messages the other way, too (a retry, a return).  They
 *   write the locks of the message anew, with a new stamp.  A lock that was taken since
 *   has another stamp, too.  So the step that releases a lock compares its value with the
 *   value before the census, byte for byte.
 *
 * Attachments have no such stamp for each move, and a message that goes to another queue
 * takes them along, so no census proves that they are not needed.  They are not removed,
 * but expire in an hour, and only after two censuses of all queues that saw no message of
 * theirs; a run, or a census that sees one, ends that hour.  See attach.c.
 */
#include "base/clock.h"
#include "rmq.h"

/* The census proves nothing if the connections were not looked at for this long: less than a
 * lease. */
#define UNSEEN_S 45.0
#define WATCH_S	 15.0

/* Lists all connections, with the queue; of each asks how long it lives, in ms, and how many
 * messages of the queue it holds.  Adds those that live. */
static int
ask_connections(struct rmq_census *c, const char *queue, struct mq_names *all,
    long long **n, struct mq_names *live)
{
	size_t i;
	int rv = rmq_cleaner_listed(c->w, RMQ_CONNECTIONS, all, &c->complete);

	for (i = 0; i < all->n; i++)
		all->list[i].queue = mq_xstrdup(queue);
	if (rv == 0)
		rv = rmq_cleaner_ask(
		    c->w, all, "PTTL C:heartbeat|LLEN B:unacked", n);
	for (i = 0; rv == 0 && i < 2 * all->n; i++) {
		c->complete &= (*n)[i] != RMQ_NO_ANSWER;
		if (i % 2 == 0 && (*n)[i] > 0)
			mq_names_add(live, all->list[i / 2].name, NULL);
	}
	return rv;
}

/* Looks at the connections again, if the last look was WATCH_S ago; called after each step. */
static int
watch_connections(struct rmq_census *c, const char *queue)
{
	double now = mq_clock_s(CLOCK_MONOTONIC);
	struct mq_names all = {0};
	long long *n = NULL;
	int rv;

	if (c->watched_s == 0 || now - c->watched_s < WATCH_S)
		return 0;
	c->complete &= now - c->watched_s <= UNSEEN_S;
	rv = ask_connections(c, queue, &all, &n, &c->live);
	mq_names_free(&all);
	free(n);
	c->watched_s = now;
	return rv;
}

/* The reply of lua/census.lua; names follow, of which locks of groups have GROUP_LEN bytes. */
enum { MORE, LATE, MISSING, AT, SIGN, NAMES };
#define FORM	  "###$$"
#define GROUP_LEN 14

static void
parse_step(struct rmq_census *c, const redisReply *reply)
{
	const char *name;
	size_t i;

	c->expired += (long)reply->element[LATE]->integer;
	c->missing += (long)reply->element[MISSING]->integer;
	for (i = NAMES; i < reply->elements; i++) {
		name = reply->element[i]->str;
		if (reply->element[i]->len == GROUP_LEN)
			mq_names_add(&c->idle, name, NULL);
		else if (mq_names_have(c->wanted, name))
			mq_names_add(&c->seen, name, NULL);
	}
}

/* Goes through one place; connection is for unacked.  late: in the order of claims. */
static int
walk_place(struct rmq_census *c, const char *queue, const char *place,
    const char *connection, bool late)
{
	struct mq_command call = mq_redis_command(c->w->round.r);
	struct mq_buf at = {0}, sign = {0};
	char tombstone[MQ_ID_LEN + 1];
	struct mq_idgen ids = {0};
	redisReply *reply;
	bool more = true;
	int rv = 0;

	mq_buf_addstr(&at, "0");
	while (rv == 0 && more) {
		mq_id_make(&ids, (uint64_t)mq_clock_unix_us(), tombstone);
		rmq_start(&call, &rmq_script_census, connection, queue);
		if (connection != NULL)
			rmq_keys(&call, connection, queue, "unacked");
		MQ_COMMAND_ARGV(&call, rmq_census_argv, .where = mq_str(place),
		    .at = mq_bytes(at.data, at.len),
		    .sign = mq_bytes(sign.data, sign.len),
		    .dry = mq_int(!c->mends), .tombstone = mq_str(tombstone),
		    .ascends = mq_int(late));
		rv = mq_round_call(
		    &c->w->round, &call, REDIS_REPLY_ARRAY, &reply);
		more = reply != NULL && mq_reply_is(reply, FORM);
		c->complete &= more;
		if (more) {
			parse_step(c, reply);
			mq_buf_set(&at, reply->element[AT]->str,
			    reply->element[AT]->len);
			mq_buf_set(&sign, reply->element[SIGN]->str,
			    reply->element[SIGN]->len);
			more = reply->element[MORE]->integer != 0;
			rv = watch_connections(c, queue);
		}
		freeReplyObject(reply);
	}
	mq_buf_free(&at);
	mq_buf_free(&sign);
	return rv;
}

/* Goes through the unacked lists of all connections; adds live connections to *live. */
static int
walk_unacked(struct rmq_census *c, const char *queue, struct mq_names *live)
{
	struct mq_names all = {0};
	long long *n = NULL;
	size_t i;
	int rv = ask_connections(c, queue, &all, &n, live);

	for (i = 0; rv == 0 && i < all.n; i++)
		if (n[2 * i + 1] > 0)
			rv = walk_place(
			    c, queue, "unacked", all.list[i].name, false);
	mq_names_free(&all);
	free(n);
	return rv;
}

/* Messages on their way to another queue of a cluster are at none of the places, so the census
 * is incomplete. */
static int
check_outgoing(struct rmq_census *c, const char *queue)
{
	struct mq_redis *r = c->w->round.r;
	long long n = 0;

	if (!mq_redis_command(r).cluster)
		return 0;
	c->complete &=
	    rmq_call_number(r, "HLEN Q:outgoing", queue, NULL, &n) == 0 &&
	    n == 0;
	return mq_redis_lost(r) ? -1 : 0;
}

int
rmq_census(struct rmq_census *c, const char *queue)
{
	static const char *const places[] = {"delayed", "priority", "ready"};
	const size_t n = sizeof(places) / sizeof(places[0]);
	const struct mq_command call = mq_redis_command(c->w->round.r);
	struct mq_names live = {0};
	size_t i;
	int rv = 0;

	c->complete &= !rmq_is_scattered(&call, queue);
	for (i = 0; i < n && rv == 0 && c->late; i++)
		rv = walk_place(c, queue, places[(i + 1) % n], NULL, true);
	c->watched_s =
	    c->scope == RMQ_UNENDED ? mq_clock_s(CLOCK_MONOTONIC) : 0;
	if (rv == 0 && c->scope == RMQ_UNENDED)
		rv = walk_unacked(c, queue, &c->live);
	for (i = 0; i < n && rv == 0; i++)
		rv = walk_place(c, queue, places[i], NULL, false);
	if (rv == 0 && c->scope != RMQ_WAITING)
		rv = walk_unacked(c, queue, &live);
	if (rv == 0 && c->scope == RMQ_ANYWHERE)
		rv = walk_place(c, queue, "rejected", NULL, false);
	if (rv == 0 && c->scope == RMQ_ANYWHERE)
		rv = check_outgoing(c, queue);
	/* A connection that was alive must still be. */
	mq_names_sort(&live);
	for (i = 0; rv == 0 && i < c->live.n; i++)
		c->complete &= mq_names_have(&live, c->live.list[i].name);
	if (c->watched_s != 0)
		c->complete &=
		    mq_clock_s(CLOCK_MONOTONIC) - c->watched_s < UNSEEN_S;
	mq_names_free(&c->live);
	mq_names_free(&live);
	return rv;
}
