/*
 * The rmq layout: locks that nobody holds any more, and messages that are too late to run.
 *
 * These tools release a lock in the step in which its message ends.  If a Go program acks,
 * rejects or purges a message, or somebody deletes a list, the lock stays, until a census of
 * the queue proves that its holder is nowhere.  Rejected messages hold nothing.
 */
#include "rmq.h"

/* --- locks ------------------------------------------------------------------ */

struct lock {
	redisReply *field, *value; /* the value begins with its holder's id */
	bool over;		   /* it was kept until a time that has come */
};

/* The repair of a queue; locks are as they were when it began. */
struct repair {
	struct rmq_cleaner *w;
	const char *queue;
	long long now, tick; /* unix ms, and the queue's, at the beginning */
	struct lock *locks;
	size_t n, cap;
	struct mq_names holders; /* of those that are not over: ids */
	bool late;		 /* some message may be too late by now */
	struct mq_command release;
	int releases; /* locks in the command */
	long released;
};

/* How many are released in one step. */
#define RELEASES 100

/*
 * A group's is "ID STAMP", a key's "ID MODE STAMP"; a mode that is a time means that the key
 * is kept until then, whoever holds it.  Takes those that it keeps.
 */
static void
keep_lock(struct repair *p, redisReply **field, redisReply **value)
{
	const char *mode;
	char id[MQ_ID_LEN + 1];
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
	if (!timed) {
		strlcpy(id, (*value)->str, sizeof(id));
		mq_names_add(&p->holders, id, NULL);
	}
	*field = *value = NULL;
}

/* The oldest message first: the next ones of their groups get their turns in this order. */
static int
by_id(const void *a, const void *b)
{
	const struct lock *x = a, *y = b;

	return memcmp(x->value->str, y->value->str, MQ_ID_LEN);
}

/* A field that is no lock tells when the first message is too late. */
static int
take_fields(void *arg, redisReply *some)
{
	struct repair *p = arg;
	redisReply **e = some->element;
	long long bound;
	size_t i;
	char what;

	for (i = 0; i + 1 < some->elements; i += 2) {
		bound = strtoll(e[i + 1]->str, NULL, 10);
		what = e[i]->str[0];
		if (what == 'g' || what == 'k')
			keep_lock(p, &e[i], &e[i + 1]);
		else if (what == 'e' || what == 'E')
			p->late |= bound < p->now;
		else if (what == 't' || what == 'T')
			p->late |= bound < p->tick;
	}
	return 0;
}

static void
build_repair(const struct repair *p, const char *verb, struct mq_command *c)
{
	rmq_start(c, &rmq_script_repair, NULL, p->queue);
	MQ_COMMAND_ARGV(c, rmq_repair_argv, .how = mq_str(verb),
	    .dry = mq_int(p->w->how->dry_run));
}

static int
send_release(struct repair *p)
{
	if (p->releases == 0)
		return 0;
	p->releases = 0;
	return mq_round_add(&p->w->round, &p->release, &p->released);
}

/* Adds a lock to those that go in one step. */
static int
release(struct repair *p, const char *field, size_t field_len,
    const char *value, size_t value_len)
{
	if (p->releases == 0)
		build_repair(p, "free", &p->release);
	mq_command_arg(&p->release, field, field_len);
	mq_command_arg(&p->release, value, value_len);
	return ++p->releases < RELEASES ? 0 : send_release(p);
}

static bool
is_free(const struct lock *lock, const struct rmq_census *c)
{
	char id[MQ_ID_LEN + 1];

	strlcpy(id, lock->value->str, sizeof(id));
	return !lock->over && !mq_names_have(&c->seen, id);
}

/* Those that are over; or, with a census, those that nobody holds. */
static int
release_all(struct repair *p, const struct rmq_census *c)
{
	const struct lock *lock = p->locks;
	const char *group;
	size_t i;
	int rv = 0;

	for (; lock < p->locks + p->n && rv == 0; lock++)
		if (c == NULL ? lock->over : is_free(lock, c))
			rv = release(p, lock->field->str, lock->field->len,
			    lock->value->str, lock->value->len);
	for (i = 0; c != NULL && i < c->idle.n && rv == 0; i++) {
		group = c->idle.list[i].name;
		rv = release(p, group, strlen(group), "", 0);
	}
	return rv == 0 ? send_release(p) : rv;
}

/* --- the repair ---------------------------------------------------------------- */

/* Consumers look for the holders of a queue's locks once in this time, whoever of them
 * does it. */
#define CHECK_MS 30000
/* With more messages than that, a queue is only looked through by mq-clean. */
#define CHEAP 1000

/* A search for late messages begins, or has found all. */
static int
mark_search(struct repair *p, const char *verb)
{
	struct mq_command c = mq_redis_command(p->w->round.r);
	long marked = 0;

	build_repair(p, verb, &c);
	return mq_round_add(&p->w->round, &c, &marked);
}

/* What there is of one queue. */
enum { LOCKS, IN_LINE, TICK, READY, PRIORITY, DELAYED, QUESTIONS };
static const char questions[] =
    "HLEN Q:locks|ZCOUNT Q:delayed " RMQ_IN_LINE " +inf|?GET Q:clock|"
    "LLEN Q:ready|ZCARD Q:priority|ZCARD Q:delayed";

/* Whether it is for this consumer to look for holders; a full server refuses to say so. */
static bool
may_check(struct rmq_cleaner *w, const char *queue)
{
	struct mq_command c = mq_redis_command(w->round.r);
	redisReply *reply;
	bool may;

	rmq_ask(&c, "SET Q:checked 1 NX PX", queue, NULL);
	mq_command_int(&c, CHECK_MS);
	reply = mq_call(w->round.r, &c, -1);
	may = reply != NULL && reply->type == REDIS_REPLY_STATUS;
	freeReplyObject(reply);
	return may;
}

/* proves: finds out which locks nobody holds, and releases these, unless some unacked list
 * could be missed; then *unsure says that there are any. */
static int
repair_locks(struct repair *p, bool proves, bool *unsure)
{
	struct mq_cleaned *out = p->w->out;
	bool dry_run = p->w->how->dry_run;
	struct rmq_census c = {.w = p->w,
	    .scope = proves ? RMQ_UNENDED : RMQ_WAITING,
	    .mends = !dry_run,
	    .late = p->late && !dry_run,
	    .wanted = &p->holders,
	    .whole = true};
	size_t i;
	int rv = release_all(p, NULL);

	if (rv == 0 && c.late)
		rv = mark_search(p, "begin");
	if (rv == 0)
		rv = rmq_census(&c, p->queue);
	mq_names_sort(&c.seen);
	mq_names_sort(&c.idle);
	if (rv == 0 && c.late && c.whole)
		rv = mark_search(p, "end");
	out->unproven += rv == 0 && proves && !c.whole;
	p->released = 0;
	proves &= rv == 0 && c.whole;
	if (proves && p->w->adopted_all)
		rv = release_all(p, &c);
	else if (proves)
		for (i = 0; i <= p->n && !*unsure; i++)
			*unsure =
			    i < p->n ? is_free(&p->locks[i], &c) : c.idle.n > 0;
	/* In a dry run, groups without a holder are still so, and most have messages in line,
	 * too. */
	if (dry_run)
		p->released -= MIN(c.missing, MIN((long)c.idle.n, p->released));
	out->locks += p->released + c.missing;
	out->expired += c.expired;
	if (!dry_run)
		rmq_cleaner_count(p->w, p->queue, 0, 0, c.expired);
	mq_names_free(&c.seen);
	mq_names_free(&c.idle);
	return rv;
}

/* *unsure: as of repair_locks(). */
static int
repair_once(struct rmq_cleaner *w, const char *queue, const long long *has,
    long long now, bool *unsure)
{
	struct repair p = {.w = w,
	    .queue = queue,
	    .now = now,
	    .tick = has[TICK],
	    .release = mq_redis_command(w->round.r)};
	bool proves = w->adopted_all;
	size_t i;
	int rv = rmq_cleaner_fields(w, queue, "locks", take_fields, &p);

	mq_names_sort(&p.holders);
	if (p.n > 0)
		qsort(p.locks, p.n, sizeof(*p.locks), by_id);
	if (rv == 0 && !proves && !w->blind && p.holders.n > 0) {
		proves = may_check(w, queue);
		rv = mq_redis_lost(w->round.r) ? -1 : 0;
	}
	proves &= p.n > 0 || has[IN_LINE] > 0;
	*unsure = false;
	if (rv == 0 && (p.late || proves))
		rv = repair_locks(&p, proves, unsure);
	for (i = 0; i < p.n; i++) {
		freeReplyObject(p.locks[i].field);
		freeReplyObject(p.locks[i].value);
	}
	free(p.locks);
	mq_names_free(&p.holders);
	return rv;
}

/*
 * A consumer does not look through all keys each time.  So it does that when nobody seems to
 * hold some lock, and releases the lock only if another census does not see its holder
 * either.
 */
static int
repair_queue(
    struct rmq_cleaner *w, const char *queue, long long *has, int64_t now)
{
	bool all = w->how->all, unsure = true;
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
	while (rv == 0 && unsure) {
		rv = repair_once(w, queue, has, now, &unsure);
		if (rv == 0 && unsure)
			rv = rmq_adopt_all(w);
	}
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
