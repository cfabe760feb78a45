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
#include "base/clock.h"
#include "rmq.h"

/* --- locks ------------------------------------------------------------------ */

/* Those of a queue as they were when a repair began. */
struct lock {
	redisReply *field, *value; /* the value begins with its holder's id */
	bool seen;		   /* the holder is somewhere */
	bool over;		   /* it was kept until a time that has come */
};

struct check {
	struct rmq_cleaner *w;
	const char *queue;
	long long now, tick; /* unix ms, and the queue's, at the beginning */
	struct lock *locks;  /* sorted by id once all are there */
	size_t n, cap;
	size_t held;		      /* those that are not over */
	bool has_late;		      /* some message may be too late by now */
	long long expires, last_tick; /* the lowest that were seen; -1: none */
	long late, missing;
	bool whole;	      /* nothing could be missed so far */
	bool proven;	      /* a holder that was not seen is nowhere */
	struct mq_names live; /* connections that were seen alive */
	/* When they were looked at last, CLOCK_MONOTONIC; 0: they are not. */
	double seen_s;
	struct mq_idgen ids;
};

/* How many are let go of in one step. */
#define FREE_COUNT 100

/*
 * A group's is "ID STAMP", a key's "ID MODE STAMP"; a mode that is a time means
 * that it is kept until then, whoever holds it.  Takes those that it keeps.
 */
static void
take_lock(struct check *p, redisReply **field, redisReply **value)
{
	const char *mode;
	bool timed;

	if ((*value)->len < MQ_ID_LEN)
		return;
	mode = (*value)->str + MQ_ID_LEN + 1;
	timed = (*field)->str[0] == 'k' && (*value)->len > MQ_ID_LEN &&
	    *mode != '\0' && strspn(mode, "0123456789") == strcspn(mode, " ");
	if (timed && strtoll(mode, NULL, 10) > p->now)
		return;
	if (p->n == p->cap) {
		p->cap = p->cap * 2 + 64;
		p->locks =
		    mq_xreallocarray(p->locks, p->cap, sizeof(*p->locks));
	}
	p->locks[p->n++] =
	    (struct lock){.field = *field, .value = *value, .over = timed};
	*field = *value = NULL;
	p->held += !timed;
}

/* A field that is no lock tells when the first message is too late. */
static int
take_fields(void *arg, redisReply *some)
{
	struct check *p = arg;
	redisReply **e = some->element;
	long long bound;
	size_t i;
	char what;

	for (i = 0; i + 1 < some->elements; i += 2) {
		bound = strtoll(e[i + 1]->str, NULL, 10);
		what = e[i]->str[0];
		if (what == 'g' || what == 'k')
			take_lock(p, &e[i], &e[i + 1]);
		else if (what == 'e' || what == 'E')
			p->has_late |= bound < p->now;
		else if (what == 't' || what == 'T')
			p->has_late |= bound < p->tick;
	}
	return 0;
}

static int
by_id(const void *a, const void *b)
{
	const struct lock *x = a, *y = b;

	return memcmp(x->value->str, y->value->str, MQ_ID_LEN);
}

/* The holder with this id is somewhere; it may have several. */
static void
note_seen(struct check *p, redisReply *id)
{
	const struct lock key = {.value = id}, *end = p->locks + p->n;
	struct lock *lock = NULL;

	if (p->n > 0 && id->len == MQ_ID_LEN)
		lock = bsearch(&key, p->locks, p->n, sizeof(key), by_id);
	if (lock == NULL)
		return;
	while (lock > p->locks && by_id(lock - 1, &key) == 0)
		lock--;
	for (; lock < end && by_id(lock, &key) == 0; lock++)
		lock->seen = true;
}

static void
build_repair(const struct check *p, const char *verb, struct mq_command *c)
{
	mq_command_script(c, &rmq_script_repair);
	rmq_key_queue(c, p->queue, RMQ_PLACES);
	mq_command_str(c, verb);
}

/* Lets go of those that are over, or of the others whose holders were not seen;
 * *n: how many. */
static int
free_locks(const struct check *p, bool over, long *n)
{
	const struct lock *lock = p->locks;
	struct mq_command c = mq_redis_command(p->w->round.r);
	int many = 0, rv = 0;

	*n = 0;
	for (; lock < p->locks + p->n && rv == 0; lock++) {
		if (lock->seen || lock->over != over)
			continue;
		if (many++ == 0) {
			build_repair(p, "free", &c);
			mq_command_int(&c, p->w->how->dry_run);
		}
		mq_command_arg(&c, lock->field->str, lock->field->len);
		mq_command_arg(&c, lock->value->str, lock->value->len);
		if (many == FREE_COUNT) {
			rv = mq_round_add(&p->w->round, &c, n);
			many = 0;
		}
	}
	return rv == 0 && many > 0 ? mq_round_add(&p->w->round, &c, n) : rv;
}

/* --- the walk ----------------------------------------------------------------- */

/* The walk proves nothing if the connections were not looked at for so many
 * seconds: less than a lease, in which one could come and go. */
#define UNSEEN_S 45.0
/* How often connections are looked at meanwhile, in seconds. */
#define WATCH_S 15.0

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

/* A reply; ids follow. */
enum { MORE, LATE, MISSING, EXPIRES, LAST_TICK, AT, SIGN, IDS };
#define FORM "###$$$$"

static bool
take_step(struct check *p, const redisReply *reply, struct mq_buf *at,
    struct mq_buf *sign)
{
	redisReply **e = reply->element;
	size_t i;

	p->late += (long)e[LATE]->integer;
	p->missing += (long)e[MISSING]->integer;
	lower(&p->expires, e[EXPIRES]);
	lower(&p->last_tick, e[LAST_TICK]);
	mq_buf_set(at, e[AT]->str, e[AT]->len);
	mq_buf_set(sign, e[SIGN]->str, e[SIGN]->len);
	for (i = IDS; i < reply->elements; i++)
		note_seen(p, e[i]);
	return e[MORE]->integer != 0;
}

static void
note_live(struct check *p, struct mq_names *live, const char *connection,
    long long ttl)
{
	if (ttl == RMQ_NO_ANSWER)
		p->whole = false;
	else if (ttl > 0)
		mq_names_add(live, connection, NULL);
}

/* Between two steps: none may come and go unseen, however long they take. */
static int
watch_connections(struct check *p)
{
	double now = mq_clock_s(CLOCK_MONOTONIC), unseen = now - p->seen_s;
	struct mq_names all = {0};
	long long *ttl = NULL;
	size_t i;
	int rv;

	if (p->seen_s == 0 || unseen < WATCH_S)
		return 0;
	if (unseen > UNSEEN_S)
		p->whole = false;
	rv = rmq_cleaner_listed(p->w, RMQ_CONNECTIONS, &all, &p->whole);
	if (rv == 0)
		rv = rmq_cleaner_ask(p->w, &all, "PTTL C:heartbeat", &ttl);
	for (i = 0; rv == 0 && i < all.n; i++)
		note_live(p, &p->live, all.list[i].name, ttl[i]);
	mq_names_sort(&p->live);
	mq_names_free(&all);
	free(ttl);
	p->seen_s = now;
	return rv;
}

/* Goes through one place; connection is for unacked.  late: only for what is too late. */
static int
check_place(
    struct check *p, const char *place, const char *connection, bool late)
{
	struct mq_command c = mq_redis_command(p->w->round.r);
	struct mq_buf at = {0}, sign = {0};
	char tombstone[MQ_ID_LEN + 1];
	redisReply *reply;
	bool more = true;
	int rv = 0;

	mq_buf_addstr(&at, "0");
	while (rv == 0 && more) {
		mq_id_make(&p->ids, (uint64_t)mq_clock_unix_us(), tombstone);
		mq_command_script(&c, &rmq_script_check_locks);
		rmq_keys(&c, connection, p->queue,
		    connection != NULL ? RMQ_PLACES " rejected unacked" :
					 RMQ_PLACES " rejected");
		mq_command_str(&c, place);
		mq_command_arg(&c, at.data, at.len);
		mq_command_arg(&c, sign.data, sign.len);
		mq_command_add(
		    &c, "%d %s %d", p->w->how->dry_run, tombstone, late);
		rv = mq_round_call(&p->w->round, &c, REDIS_REPLY_ARRAY, &reply);
		more = reply != NULL && mq_reply_is(reply, FORM);
		p->whole &= more;
		if (more) {
			more = take_step(p, reply, &at, &sign);
			rv = watch_connections(p);
		}
		freeReplyObject(reply);
	}
	mq_buf_free(&at);
	mq_buf_free(&sign);
	return rv;
}

/* Goes through the unacked lists of all connections, of which no name may be left out;
 * adds those that live. */
static int
check_unacked(struct check *p, struct mq_names *live)
{
	struct mq_names all = {0}, lists = {0};
	long long *has = NULL;
	size_t i;
	int rv = rmq_cleaner_listed(p->w, RMQ_CONNECTIONS, &all, &p->whole);

	for (i = 0; i < all.n && p->whole; i++)
		mq_names_add(&lists, all.list[i].name, p->queue);
	if (rv == 0)
		rv = rmq_cleaner_ask(
		    p->w, &lists, "LLEN B:unacked|PTTL C:heartbeat", &has);
	for (i = 0; rv == 0 && i < lists.n; i++) {
		note_live(p, live, lists.list[i].name, has[2 * i + 1]);
		p->whole &= has[2 * i] != RMQ_NO_ANSWER;
	}
	for (i = 0; rv == 0 && i < lists.n; i++)
		if (has[2 * i] > 0)
			rv = check_place(
			    p, "unacked", lists.list[i].name, false);
	mq_names_free(&lists);
	mq_names_free(&all);
	free(has);
	return rv;
}

/* --- the repair ---------------------------------------------------------------- */

/* Consumers look for the holders of a queue's locks once in this time, whoever
 * of them does it. */
#define CHECK_MS 30000
/* With more messages than that, a queue is only looked through by mq-clean. */
#define CHEAP 1000

/* The bounds of those that have not expired are about to be found, or found. */
static int
mark_bounds(struct check *p, const char *verb)
{
	struct mq_command c = mq_redis_command(p->w->round.r);
	long marked = 0;

	if (p->w->how->dry_run || !p->has_late)
		return 0;
	build_repair(p, verb, &c);
	mq_command_bound(&c, p->expires);
	mq_command_bound(&c, p->last_tick);
	return mq_round_add(&p->w->round, &c, &marked);
}

static int
walk_all(struct check *p, bool proof)
{
	static const char *const places[] = {"delayed", "priority", "ready"};
	const size_t n = sizeof(places) / sizeof(places[0]);
	struct mq_names now = {0};
	size_t i;
	int rv = mark_bounds(p, "begin");

	/* About in the order in which they would have been claimed. */
	for (i = 0; i < n && rv == 0 && p->has_late && !p->w->how->dry_run; i++)
		rv = check_place(p, places[(i + 1) % n], NULL, true);
	if (rv == 0 && proof)
		rv = check_unacked(p, &p->live);
	for (i = 0; i < n && rv == 0; i++)
		rv = check_place(p, places[i], NULL, false);
	/* All connections that lived still have to. */
	if (rv == 0 && proof)
		rv = check_unacked(p, &now);
	mq_names_sort(&now);
	for (i = 0; rv == 0 && i < p->live.n; i++)
		p->whole &= mq_names_have(&now, p->live.list[i].name);
	mq_names_free(&now);
	if (rv == 0 && p->whole)
		rv = mark_bounds(p, "end");
	return rv;
}

/* Groups in which messages wait for a turn that nobody would give them. */
static int
give_turns(struct check *p)
{
	long n = 0;
	char from[32] = "";
	struct mq_command c = mq_redis_command(p->w->round.r);
	redisReply *reply;
	int rv;

	do {
		build_repair(p, "lines", &c);
		mq_command_add(&c, "%d %s", p->w->how->dry_run, from);
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
repair_all(struct check *p, bool proof, bool frees)
{
	struct mq_cleaned *out = p->w->out;
	long n;
	int rv = free_locks(p, true, &n);

	if (proof)
		p->seen_s = mq_clock_s(CLOCK_MONOTONIC);
	if (rv == 0)
		rv = walk_all(p, proof);
	p->proven = rv == 0 && proof && p->whole &&
	    mq_clock_s(CLOCK_MONOTONIC) - p->seen_s < UNSEEN_S;
	if (rv == 0 && proof && !p->proven)
		out->unproven++;
	if (p->proven && frees) {
		rv = free_locks(p, false, &n);
		out->locks += n;
		if (rv == 0)
			rv = give_turns(p);
	}
	out->locks += p->missing;
	out->expired += p->late;
	if (!p->w->how->dry_run)
		rmq_cleaner_count(p->w, p->queue, 0, 0, p->late);
	return rv;
}

/* What there is of one queue. */
enum { LOCKS, IN_LINE, TICK, READY, PRIORITY, DELAYED, QUESTIONS };
static const char questions[] =
    "HLEN Q:locks|ZCOUNT Q:delayed " RMQ_IN_LINE " +inf|?GET Q:clock|"
    "LLEN Q:ready|ZCARD Q:priority|ZCARD Q:delayed";

/* *unseen: some holders were not seen, and nothing was let go of. */
static int
repair_once(struct rmq_cleaner *w, const char *queue, const long long *has,
    long long now, bool frees, bool *unseen)
{
	struct check p = {.w = w,
	    .queue = queue,
	    .now = now,
	    .tick = has[TICK],
	    .expires = -1,
	    .last_tick = -1,
	    .whole = true};
	struct mq_command c = mq_redis_command(w->round.r);
	redisReply *reply;
	bool proof = frees;
	size_t i;
	int rv = rmq_cleaner_fields(w, queue, "locks", take_fields, &p);

	if (p.n > 0)
		qsort(p.locks, p.n, sizeof(*p.locks), by_id);
	/* Whether it is for this consumer to look for holders; a full server refuses to
	 * say so. */
	if (rv == 0 && !proof && !w->blind && p.held > 0) {
		rmq_ask(&c, "SET Q:checked 1 NX PX", queue, NULL);
		mq_command_int(&c, CHECK_MS);
		reply = mq_call(w->round.r, &c, -1);
		proof = reply != NULL && reply->type == REDIS_REPLY_STATUS;
		freeReplyObject(reply);
		rv = mq_redis_lost(w->round.r) ? -1 : 0;
	}
	if (rv == 0 && (p.has_late || (proof && (p.n > 0 || has[IN_LINE] > 0))))
		rv = repair_all(&p, proof, frees);
	*unseen = false;
	for (i = 0; i < p.n; i++) {
		*unseen |=
		    p.proven && !frees && !p.locks[i].seen && !p.locks[i].over;
		freeReplyObject(p.locks[i].field);
		freeReplyObject(p.locks[i].value);
	}
	free(p.locks);
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
	struct mq_names lists = {0};
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
		rv = rmq_adopt_all(w, &lists);
		mq_names_free(&lists);
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
		rv = rmq_cleaner_ask(w, &queues, questions, &has);
	for (i = 0; i < queues.n && rv == 0; i++)
		rv = repair_queue(
		    w, queues.list[i].name, has + QUESTIONS * i, now);
	free(has);
	mq_names_free(&queues);
	return rv;
}
