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
#include "base/xalloc.h"
#include "rmq.h"

/* --- locks ------------------------------------------------------------------ */

/* Those of a queue as they were when a repair began. */
struct lock {
	char id[MQ_ID_LEN + 1]; /* of its holder */
	char *field, *value;
	size_t field_len, value_len;
	bool seen; /* the holder is somewhere */
	bool over; /* it was kept until a time that has come */
};

struct locks {
	long long now, tick; /* unix ms, and the queue's, at the beginning */
	struct lock *list;   /* sorted by id once all are there */
	size_t n, cap;
	size_t held; /* those that are not over */
	bool late;   /* some message may be too late by now */
};

/* How many are let go of in one step. */
#define FREE_COUNT 100

static char *
copy_text(const redisReply *s)
{
	char *p = mq_xcalloc(1, s->len + 1);

	memcpy(p, s->str, s->len);
	return p;
}

static bool
is_number(const char *p)
{
	return *p != '\0' && strspn(p, "0123456789") == strcspn(p, " ");
}

/*
 * A group's is "ID STAMP", a key's "ID MODE STAMP"; a mode that is a time means
 * that it is kept until then, whoever holds it.
 */
static void
add_lock(struct locks *l, const redisReply *field, const redisReply *value)
{
	bool key = field->len > 0 && field->str[0] == 'k', timed = false;
	struct lock *lock;

	if (value->len < MQ_ID_LEN)
		return;
	if (key && value->len > MQ_ID_LEN)
		timed = is_number(value->str + MQ_ID_LEN + 1);
	if (timed && strtoll(value->str + MQ_ID_LEN + 1, NULL, 10) > l->now)
		return;
	if (l->n == l->cap) {
		l->cap = l->cap == 0 ? 64 : l->cap * 2;
		l->list = mq_xreallocarray(l->list, l->cap, sizeof(*l->list));
	}
	lock = &l->list[l->n++];
	*lock = (struct lock){.field = copy_text(field),
	    .value = copy_text(value),
	    .field_len = field->len,
	    .value_len = value->len,
	    .over = timed};
	memcpy(lock->id, value->str, MQ_ID_LEN);
	l->held += !timed;
}

/* A field that is no lock tells when the first message is too late. */
static void
take_field(struct locks *l, const redisReply *field, const redisReply *value)
{
	long long bound;

	if (field->len == 0)
		return;
	if (field->str[0] == 'g' || field->str[0] == 'k') {
		add_lock(l, field, value);
		return;
	}
	bound = strtoll(value->str, NULL, 10);
	if (strchr("eE", field->str[0]) != NULL)
		l->late |= bound < l->now;
	else if (strchr("tT", field->str[0]) != NULL)
		l->late |= bound < l->tick;
}

static int
take_fields(void *locks, redisReply *some)
{
	size_t i;

	for (i = 0; i + 1 < some->elements; i += 2)
		take_field(locks, some->element[i], some->element[i + 1]);
	return 0;
}

static int
by_id(const void *a, const void *b)
{
	const struct lock *x = a, *y = b;

	return memcmp(x->id, y->id, MQ_ID_LEN);
}

/* Reads all; now and tick are set. */
static int
load_locks(struct rmq_cleaner *w, const char *queue, struct locks *l)
{
	int rv = rmq_cleaner_fields(w, queue, "locks", take_fields, l);

	if (l->n > 0)
		qsort(l->list, l->n, sizeof(*l->list), by_id);
	return rv;
}

/* The holder with this id is somewhere. */
static void
note_seen(struct locks *l, const char *id)
{
	size_t low = 0, high = l->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (memcmp(l->list[middle].id, id, MQ_ID_LEN) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < l->n && memcmp(l->list[low].id, id, MQ_ID_LEN) == 0; low++)
		l->list[low].seen = true;
}

/* Whether some holder was not seen. */
static bool
is_unseen(const struct locks *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (!l->list[i].seen && !l->list[i].over)
			return true;
	return false;
}

/* Lets go of those that are over, or of the others whose holders were not seen;
 * *n: how many. */
static int
free_locks(struct rmq_cleaner *w, const char *queue, const struct locks *l,
    bool over, long *n)
{
	const struct lock *lock;
	struct mq_command c = mq_redis_command(w->round.r);
	int many = 0, rv = 0;
	size_t i;

	*n = 0;
	for (i = 0; i < l->n && rv == 0; i++) {
		lock = &l->list[i];
		if (lock->seen || lock->over != over)
			continue;
		if (many++ == 0) {
			mq_command_script(&c, &rmq_script_repair);
			rmq_queue_keys(&c, queue);
			mq_command_str(&c, "free");
			mq_command_str(&c, w->how->dry_run ? "1" : "0");
		}
		mq_command_arg(&c, lock->field, lock->field_len);
		mq_command_arg(&c, lock->value, lock->value_len);
		if (many == FREE_COUNT) {
			rv = mq_round_add(&w->round, &c, n);
			many = 0;
		}
	}
	return rv == 0 && many > 0 ? mq_round_add(&w->round, &c, n) : rv;
}

static void
clear_locks(struct locks *l)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		free(l->list[i].field);
		free(l->list[i].value);
	}
	free(l->list);
	*l = (struct locks){0};
}

/* --- the walk ----------------------------------------------------------------- */

struct check {
	struct rmq_cleaner *w;
	const char *queue;
	struct locks locks;
	long long expires, last_tick; /* the lowest that were seen; -1: none */
	long late, missing;
	bool proven;	      /* a holder that was not seen is nowhere */
	struct mq_names live; /* connections that were seen alive */
	/* When they were looked at last, CLOCK_MONOTONIC; 0: they are not. */
	double seen_s;
	struct mq_idgen ids;
};

/* The walk proves nothing if the connections were not looked at for so many
 * seconds: less than a lease, in which one could come and go. */
#define UNSEEN_S 45.0
/* How often connections are looked at meanwhile, in seconds. */
#define WATCH_S 15.0

/* Where a walk is. */
struct walk {
	const char *place, *connection; /* connection: of unacked */
	struct mq_buf at, sign;
	bool more;
};

static void
build_step(struct check *p, const struct walk *at, struct mq_command *c)
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
take_step(struct check *p, struct walk *at, const redisReply *reply)
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
			note_seen(&p->locks, e[i]->str);
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
watch_connections(struct check *p, bool *whole)
{
	double now = mq_clock_s(CLOCK_MONOTONIC), unseen = now - p->seen_s;
	struct mq_names all = {0};
	long long *ttl = NULL;
	size_t i;
	int rv;

	if (p->seen_s == 0 || unseen < WATCH_S)
		return 0;
	if (unseen > UNSEEN_S)
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

/*
 * Goes through one place; connection is for unacked.  *whole becomes false if
 * that did not work.
 */
static int
check_place(
    struct check *p, const char *place, const char *connection, bool *whole)
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

/* Goes through the unacked lists of all connections, of which no name may be left out;
 * adds those that live. */
static int
check_unacked(struct check *p, struct mq_names *live, bool *whole)
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
			rv = check_place(
			    p, "unacked", lists.list[i].name, whole);
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

/* Whether all connections that lived still do. */
static int
live_on(struct check *p, bool *whole)
{
	struct mq_names now = {0};
	size_t i;
	int rv = check_unacked(p, &now, whole);

	mq_names_sort(&now);
	for (i = 0; i < p->live.n; i++)
		if (!mq_names_have(&now, p->live.list[i].name))
			*whole = false;
	mq_names_free(&now);
	return rv;
}

static void
build_repair(const struct check *p, const char *verb, struct mq_command *c)
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
mark_bounds(struct check *p, const char *verb)
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
walk_all(struct check *p, bool proof, bool *whole)
{
	static const char *const places[] = {"delayed", "priority", "ready"};
	size_t i;
	int rv = mark_bounds(p, "begin");

	if (rv == 0 && proof)
		rv = check_unacked(p, &p->live, whole);
	for (i = 0; i < sizeof(places) / sizeof(places[0]) && rv == 0; i++)
		rv = check_place(p, places[i], NULL, whole);
	if (rv == 0 && proof)
		rv = live_on(p, whole);
	if (rv == 0 && *whole)
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
repair_all(struct check *p, bool proof, bool frees)
{
	bool whole = true;
	long n = 0;
	int rv = free_locks(p->w, p->queue, &p->locks, true, &n);

	if (proof)
		p->seen_s = mq_clock_s(CLOCK_MONOTONIC);
	if (rv == 0)
		rv = walk_all(p, proof, &whole);
	p->proven = rv == 0 && proof && whole &&
	    mq_clock_s(CLOCK_MONOTONIC) - p->seen_s < UNSEEN_S;
	if (rv == 0 && proof && !p->proven)
		p->w->out->unproven++;
	if (p->proven && frees) {
		rv = free_locks(p->w, p->queue, &p->locks, false, &n);
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
	struct check p = {.w = w,
	    .queue = queue,
	    .expires = -1,
	    .last_tick = -1,
	    .locks = {.now = now, .tick = has[TICK]}};
	bool proof = frees;
	int rv = load_locks(w, queue, &p.locks);

	if (rv == 0 && !proof && !w->blind && p.locks.held > 0)
		rv = take_check(w, queue, &proof);
	if (rv == 0 &&
	    (p.locks.late || (proof && (p.locks.n > 0 || has[IN_LINE] > 0))))
		rv = repair_all(&p, proof, frees);
	*unseen = p.proven && !frees && is_unseen(&p.locks);
	clear_locks(&p.locks);
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
		rv = rmq_cleaner_ask(w, &queues, questions, QUESTIONS, &has);
	for (i = 0; i < queues.n && rv == 0; i++)
		rv = repair_queue(
		    w, queues.list[i].name, has + QUESTIONS * i, now);
	free(has);
	mq_names_free(&queues);
	return rv;
}
