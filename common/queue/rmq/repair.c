/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rmq layout: locks without a holder, and messages that are too late to run.
 *
 * These tools release a lock in the step in which its message ends.  If a Go program acks,
 * rejects or purges a message, or a list is deleted, the lock stays, until a census of the
 * queue proves that its holder is gone.  Rejected messages hold no locks.
 */
#include "rmq.h"

/* --- locks ------------------------------------------------------------------ */

/* The repair of a queue; the locks are as they were when it began. */
struct repair {
	struct rmq_cleaner *w;
	const struct mq_names *queue; /* one name */
	long long now, tick; /* unix ms, and the queue's, at the beginning */
	/* Value, which begins with the id of the holder, and field.  Sorted: the oldest
	 * message first, as the next ones of their groups get their turns in this order. */
	struct mq_names locks;
	struct mq_names holders; /* ids of messages that hold a lock */
	bool late;		 /* a message may be too late by now */
	long released;
};

/* Most locks released in one step. */
#define RELEASES 100

/* Until when a key is kept, in unix ms; 0: until its message ends.  The lock of a group is
 * "ID STAMP", of a key "ID MODE STAMP", where a mode may be a time. */
static long long
kept_until(const char *field, const char *value)
{
	const char *mode = value + MQ_ID_LEN;
	size_t digits = *mode == ' ' ? strspn(mode + 1, "0123456789") : 0;

	return *field == 'k' && digits > 0 && digits == strcspn(mode + 1, " ") ?
	    strtoll(mode, NULL, 10) :
	    0;
}

static void
add_lock(struct repair *p, const char *field, const char *value)
{
	long long until = kept_until(field, value);
	char id[MQ_ID_LEN + 1];

	if (until > p->now)
		return;
	mq_names_add(&p->locks, value, field);
	strlcpy(id, value, sizeof(id));
	if (until == 0)
		mq_names_add(&p->holders, id, NULL);
}

/* Parses locks, and the other fields: bounds of when the first message is too late. */
static int
parse_locks(void *arg, redisReply *some)
{
	struct repair *p = arg;
	redisReply **e = some->element;
	long long bound;
	size_t i;
	char what;

	for (i = 0; i + 1 < some->elements; i += 2) {
		bound = strtoll(e[i + 1]->str, NULL, 10);
		what = e[i]->str[0];
		if (what == 'e' || what == 'E')
			p->late |= bound < p->now;
		else if (what == 't' || what == 'T')
			p->late |= bound < p->tick;
		else if (strchr("gkmr", what) != NULL && what != '\0' &&
		    strlen(e[i + 1]->str) >= MQ_ID_LEN)
			add_lock(p, e[i]->str, e[i + 1]->str);
	}
	return 0;
}

static void
build_repair(const struct repair *p, const char *verb, struct mq_command *c)
{
	rmq_start(c, &rmq_script_repair, NULL, p->queue->list->name);
	MQ_COMMAND_ARGV(c, rmq_repair_argv, .how = mq_str(verb),
	    .dry = mq_int(p->w->how->dry_run));
}

/* Without a census, the locks whose time is over; else those without a holder, also of groups
 * with messages in line only. */
static struct mq_names
find_free(const struct repair *p, const struct rmq_census *c)
{
	const struct mq_name *lock = p->locks.list, *end = lock + p->locks.n;
	struct mq_names found = {0};
	char id[MQ_ID_LEN + 1];
	bool over;
	size_t i;

	for (; lock < end; lock++) {
		strlcpy(id, lock->name, sizeof(id));
		over = kept_until(lock->queue, lock->name) > 0;
		if (c == NULL ? over : !over && !mq_names_have(&c->seen, id))
			mq_names_add(&found, lock->name, lock->queue);
	}
	for (i = 0; c != NULL && i < c->idle.n; i++)
		mq_names_add(&found, "", c->idle.list[i].name);
	return found;
}

static int
release(struct repair *p, const struct mq_names *locks)
{
	struct mq_command c = mq_redis_command(p->w->round.r);
	size_t i = 0, end;
	int rv = 0;

	while (i < locks->n && rv == 0) {
		build_repair(p, "free", &c);
		for (end = MIN(locks->n, i + RELEASES); i < end; i++) {
			mq_command_str(&c, locks->list[i].queue);
			mq_command_str(&c, locks->list[i].name);
		}
		rv = mq_round_add(&p->w->round, &c, &p->released);
	}
	return rv;
}

/* --- the repair ---------------------------------------------------------------- */

/* Only mq-clean looks through queues with more messages, or locks. */
#define CHEAP 1000

/* Notes that a search for late messages begins, or has found all. */
static int
mark_search(struct repair *p, const char *verb)
{
	struct mq_command c = mq_redis_command(p->w->round.r);
	long marked = 0;

	build_repair(p, verb, &c);
	return mq_round_add(&p->w->round, &c, &marked);
}

enum { NOW, LOCKS, IN_LINE, TICK, READY, PRIORITY, DELAYED, QUESTIONS };
static const char questions[] =
    "TIME @|HLEN Q:locks|ZCOUNT Q:delayed " RMQ_FOLLOWS " +inf|?GET Q:clock|"
    "LLEN Q:ready|ZCARD Q:priority|ZCARD Q:delayed";

/* One consumer of a queue looks for the holders of its locks, once in 30 s; none if memory is
 * full, as SET is refused. */
static int
may_check(struct rmq_cleaner *w, const struct mq_names *queue, bool *may)
{
	long long *answer;
	int rv =
	    rmq_cleaner_ask(w, queue, "?SET Q:checked 1 NX PX 30000", &answer);

	*may = *answer != RMQ_NO_ANSWER;
	free(answer);
	return rv;
}

/* proves: finds locks without a holder, and releases them, unless a connection that is not
 * listed could have the holder: then *suspect tells whether there are any. */
static int
repair_locks(struct repair *p, bool proves, bool *suspect)
{
	struct mq_cleaned *out = p->w->out;
	bool dry_run = p->w->how->dry_run;
	struct rmq_census c = {.w = p->w,
	    .scope = proves ? RMQ_UNENDED : RMQ_WAITING,
	    .mends = !dry_run,
	    .late = p->late && !dry_run,
	    .wanted = &p->holders,
	    .complete = true};
	struct mq_names found = find_free(p, NULL);
	int rv = release(p, &found);

	if (rv == 0 && c.late)
		rv = mark_search(p, "begin");
	if (rv == 0)
		rv = rmq_census(&c, p->queue->list->name);
	mq_names_sort(&c.seen);
	mq_names_sort(&c.idle);
	if (rv == 0 && c.late && c.complete)
		rv = mark_search(p, "end");
	out->incomplete += rv == 0 && proves && !c.complete;
	p->released = 0;
	mq_names_free(&found);
	found = find_free(p, &c);
	proves &= rv == 0 && c.complete;
	if (proves && p->w->adopted_all)
		rv = release(p, &found);
	else
		*suspect = proves && found.n > 0;
	/* In a dry run, groups stay without a holder, and most of c.missing, which have
	 * messages in line, too, are also in c.idle. */
	if (dry_run)
		p->released -= MIN(c.missing, MIN((long)c.idle.n, p->released));
	out->locks += p->released + c.missing;
	out->expired += c.expired;
	if (!dry_run)
		rmq_cleaner_count(p->w, p->queue->list->name, 0, 0, c.expired);
	mq_names_free(&found);
	mq_names_free(&c.seen);
	mq_names_free(&c.idle);
	return rv;
}

/* *suspect: as of repair_locks(). */
static int
repair_once(struct rmq_cleaner *w, const struct mq_names *queue,
    const long long *has, bool *suspect)
{
	struct repair p = {
	    .w = w, .queue = queue, .now = has[NOW], .tick = has[TICK]};
	bool proves = w->adopted_all;
	int rv =
	    rmq_cleaner_fields(w, queue->list->name, "locks", parse_locks, &p);

	mq_names_sort(&p.locks);
	mq_names_sort(&p.holders);
	if (rv == 0 && !proves && !w->scan_incomplete && p.holders.n > 0)
		rv = may_check(w, queue, &proves);
	proves &= p.locks.n > 0 || has[IN_LINE] > 0;
	*suspect = false;
	if (rv == 0 && (p.late || proves))
		rv = repair_locks(&p, proves, suspect);
	mq_names_free(&p.locks);
	mq_names_free(&p.holders);
	return rv;
}

/*
 * A consumer looks through all keys only if a lock seems to have no holder, and then releases
 * the lock if another census does not see a holder, either.
 */
static int
repair_queue(
    struct rmq_cleaner *w, const struct mq_names *queue, long long *has)
{
	bool all = w->how->all, suspect = true;
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
	while (rv == 0 && suspect) {
		rv = repair_once(w, queue, has, &suspect);
		if (rv == 0 && suspect)
			rv = rmq_adopt_all(w);
	}
	return rv;
}

int
rmq_repair(struct rmq_cleaner *w)
{
	struct mq_names queues = {0}, one = {.n = 1};
	long long *has = NULL;
	int rv = rmq_busy_queues(w, &queues);

	if (rv == 0)
		rv = rmq_cleaner_ask(w, &queues, questions, &has);
	for (size_t i = 0; i < queues.n && rv == 0; i++) {
		one.list = queues.list + i;
		rv = repair_queue(w, &one, has + QUESTIONS * i);
	}
	free(has);
	mq_names_free(&queues);
	return rv;
}
