/*
 * The rmq layout: locks that nobody holds any more, and messages that are too
 * late to run.
 *
 * These tools let go of a lock in the step in which its message ends.  But a Go
 * program that acks, rejects or purges a message knows of no locks, and neither
 * does a plain DEL.  So all places of a queue are walked through, and a lock
 * whose holder was seen nowhere is let go of.  It must never be that of a
 * message that was only missed, and this is why it is not:
 *
 * - Messages go from delayed to ready to unacked, and the walk goes that way,
 *   too.  One that is in a place when its walk begins is seen there, or has gone
 *   on to one that is walked later, or has ended; see lua/check_locks.lua.
 * - What our scripts move the other way (a retry, a return) gets its locks
 *   written anew, and with a new stamp.  A lock is let go of only if it is, byte
 *   for byte, what it was before the walk began; that is judged in the step
 *   that lets go.
 * - So is one that was taken meanwhile, or taken again.
 * - A Go program moves a message the other way, unseen, only when it cleans: from
 *   the unacked list of a dead connection to ready.  Those lists are walked
 *   first, too.  What was claimed later, by a connection that lived then, can be
 *   cleaned away only when that has died.  So the connections are looked at all
 *   the time, and the walk proves nothing if one that was seen alive is not at
 *   its end, or if there was no look for nearly as long as a lease, in which one
 *   could have come and gone.
 * - An unacked list that no connection has would be missed: before this, all
 *   keys have been looked through, and such ones were adopted.  A consumer does
 *   so only when it has found that some holder is missing.  Where the server
 *   refuses to show its keys, no lock is let go of.
 *
 * Rejected messages hold nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rmq.h"

/* Consumers look for the holders of a queue's locks once in this time, whoever
 * of them does it. */
#define CHECK_MS 30000
/* With more messages than that, a queue is only looked through by mq-clean. */
#define CHEAP 1000

/* Whether all connections that lived still do. */
static int
live_on(struct rmq_check *p, bool *whole)
{
	struct mq_names now = {0};
	size_t i;
	int rv = rmq_check_unacked(p, &now, whole);

	mq_names_sort(&now);
	for (i = 0; i < p->live.n; i++)
		if (!mq_names_have(&now, p->live.list[i].name))
			*whole = false;
	mq_names_free(&now);
	return rv;
}

static void
build_repair(const struct rmq_check *p, const char *verb, struct mq_command *c)
{
	mq_command_script(c, &rmq_script_repair);
	rmq_queue_keys(c, p->queue);
	mq_command_str(c, verb);
}

static void
add_bound(struct mq_command *c, long long bound)
{
	if (bound >= 0)
		mq_command_int(c, bound);
	else
		mq_command_str(c, "");
}

/* The bounds of those that have not expired are about to be found, or found. */
static int
mark_bounds(struct rmq_check *p, const char *verb)
{
	struct mq_command c = mq_redis_command(p->w->round.r);
	long marked = 0;

	if (p->w->how->dry_run || !p->locks.late)
		return 0;
	build_repair(p, verb, &c);
	add_bound(&c, p->expires);
	add_bound(&c, p->last_tick);
	return mq_round_add(&p->w->round, &c, &marked);
}

static int
walk_all(struct rmq_check *p, bool proof, bool *whole)
{
	static const char *const places[] = {"delayed", "priority", "ready"};
	size_t i;
	int rv = mark_bounds(p, "begin");

	if (rv == 0 && proof)
		rv = rmq_check_unacked(p, &p->live, whole);
	for (i = 0; i < sizeof(places) / sizeof(places[0]) && rv == 0; i++)
		rv = rmq_check_place(p, places[i], NULL, whole);
	if (rv == 0 && proof)
		rv = live_on(p, whole);
	if (rv == 0 && *whole)
		rv = mark_bounds(p, "end");
	return rv;
}

/* Groups in which messages wait for a turn that nobody would give them. */
static int
give_turns(struct rmq_check *p)
{
	long n = 0;
	char from[32] = "";
	struct mq_command c = mq_redis_command(p->w->round.r);
	redisReply *reply;
	int rv;

	do {
		build_repair(p, "lines", &c);
		mq_command_str(&c, p->w->how->dry_run ? "1" : "0");
		mq_command_str(&c, from);
		rv = mq_round_call(&p->w->round, &c, REDIS_REPLY_ARRAY, &reply);
		*from = '\0';
		if (reply == NULL)
			return rv;
		if (reply->elements == 2 &&
		    reply->element[1]->type == REDIS_REPLY_STRING) {
			n += (long)reply->element[0]->integer;
			strlcpy(from, reply->element[1]->str, sizeof(from));
		}
		freeReplyObject(reply);
	} while (*from != '\0');
	/* In a dry run these are still missing, and most have a line, too. */
	if (p->w->how->dry_run)
		n = n > p->missing ? n - p->missing : 0;
	p->w->out->locks += n;
	return rv;
}

/* proof: finds out which locks have holders that are nowhere; frees: lets go of
 * these locks, too. */
static int
repair_all(struct rmq_check *p, bool proof, bool frees)
{
	bool whole = true;
	long n = 0;
	int rv = rmq_locks_free(p->w, p->queue, &p->locks, true, &n);

	if (proof)
		p->seen_s = mq_clock_s(CLOCK_MONOTONIC);
	if (rv == 0)
		rv = walk_all(p, proof, &whole);
	p->proven = rv == 0 && proof && whole &&
	    mq_clock_s(CLOCK_MONOTONIC) - p->seen_s < RMQ_UNSEEN_S;
	if (rv == 0 && proof && !p->proven)
		p->w->out->unproven++;
	if (p->proven && frees) {
		rv = rmq_locks_free(p->w, p->queue, &p->locks, false, &n);
		p->w->out->locks += n;
		if (rv == 0)
			rv = give_turns(p);
	}
	p->w->out->locks += p->missing;
	p->w->out->expired += p->late;
	if (!p->w->how->dry_run)
		rmq_cleaner_count(p->w, p->queue, 0, 0, p->late);
	return rv;
}

/* What there is of one queue. */
enum { LOCKS, IN_LINE, TICK, READY, PRIORITY, DELAYED, QUESTIONS };
static const struct rmq_question questions[QUESTIONS] = {
    {"HLEN", .what = "locks"},
    {"ZCOUNT", "delayed", .rest = RMQ_IN_LINE " +inf"},
    {"GET", "clock", .optional = true}, {"LLEN", .what = "ready"},
    {"ZCARD", .what = "priority"}, {"ZCARD", .what = "delayed"}};

/* Whether it is for this consumer to look for holders; see CHECK_MS. */
static int
take_check(struct rmq_cleaner *w, const char *queue, bool *ours)
{
	struct mq_command c = mq_redis_command(w->round.r);
	redisReply *reply;

	mq_command_plain(&c, "SET");
	rmq_key_queue(&c, queue, "checked");
	mq_command_words(&c, "1 NX PX");
	mq_command_int(&c, CHECK_MS);
	reply = mq_call(w->round.r, &c, -1);
	/* A full server refuses it. */
	*ours = reply != NULL && reply->type == REDIS_REPLY_STATUS;
	freeReplyObject(reply);
	return mq_redis_lost(w->round.r) ? -1 : 0;
}

/* *unseen: some holders were not seen, and nothing was let go of. */
static int
repair_once(struct rmq_cleaner *w, const char *queue, const long long *has,
    long long now, bool frees, bool *unseen)
{
	struct rmq_check p = {.w = w,
	    .queue = queue,
	    .expires = -1,
	    .last_tick = -1,
	    .locks = {.now = now, .tick = has[TICK]}};
	bool proof = frees;
	int rv = rmq_locks_load(w, queue, &p.locks);

	if (rv == 0 && !proof && !w->blind && p.locks.held > 0)
		rv = take_check(w, queue, &proof);
	if (rv == 0 &&
	    (p.locks.late || (proof && (p.locks.n > 0 || has[IN_LINE] > 0))))
		rv = repair_all(&p, proof, frees);
	*unseen = p.proven && !frees && rmq_locks_unseen(&p.locks);
	rmq_locks_clear(&p.locks);
	mq_names_free(&p.live);
	return rv;
}

/*
 * A consumer does not look through all keys each time.  So it does that when it
 * has missed a holder, and lets go of a lock only if it misses the holder again.
 */
static int
repair_queue(
    struct rmq_cleaner *w, const char *queue, long long *has, int64_t now)
{
	bool all = w->how->all, unseen;
	int i, rv = 0;

	if (has[TICK] == RMQ_NO_ANSWER)
		has[TICK] = 0;
	for (i = 0; i < QUESTIONS; i++)
		if (has[i] == RMQ_NO_ANSWER)
			return 0;
	if (has[LOCKS] == 0 && (has[IN_LINE] == 0 || !all))
		return 0;
	if (!all &&
	    (has[READY] + has[PRIORITY] + has[DELAYED] > CHEAP ||
		has[LOCKS] > CHEAP))
		return 0;
	if (mq_redis_command(w->round.r).cluster)
		rv = rmq_cleaner_now(w, queue, &now);
	if (rv == 0)
		rv = repair_once(w, queue, has, now, all && !w->blind, &unseen);
	if (rv == 0 && unseen && !w->adopted_all) {
		rv = rmq_adopt_all(w);
		w->adopted_all = true;
	}
	if (rv == 0 && unseen)
		rv = repair_once(w, queue, has, now, true, &unseen);
	return rv;
}

int
rmq_repair(struct rmq_cleaner *w)
{
	struct mq_names queues = {0};
	long long *has = NULL;
	int64_t now;
	size_t i;
	int rv = rmq_cleaner_now(w, NULL, &now);

	if (rv == 0)
		rv = rmq_busy_queues(w, &queues);
	if (rv == 0)
		rv = rmq_cleaner_ask(w, &queues, questions, QUESTIONS, &has);
	for (i = 0; i < queues.n && rv == 0; i++)
		rv = repair_queue(
		    w, queues.list[i].name, has + QUESTIONS * i, now);
	free(has);
	mq_names_free(&queues);
	return rv;
}
