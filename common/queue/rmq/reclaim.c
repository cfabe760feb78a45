/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rmq layout: returning the messages of dead connections, and removing the connections.
 *
 * After a crash, or an error, anywhere in here, a connection is listed while it has a queue,
 * and has the queue while it has a message there.
 *
 * On a cluster the sets of names are in other slots than the queues.  There the steps are:
 * return the messages of a queue, list the queue, take it from the connection, and when the
 * connection has no queue, remove its keys and its name.  Each step can be repeated, and the
 * next cleaner goes on after a crash.
 */
#include "base/text.h"
#include "rmq.h"

/* Connections taken together; each takes a few hundred bytes of memory. */
#define MANY 500
/* Most steps under way.  Other clients wait for all of them, so together they move at most
 * 1000 messages, which takes the server up to 5 ms. */
#define TOGETHER 16
#define MESSAGES 1000

/* Fields of a connection's info. */
enum { SLOTS, HOST, ATTEMPTS, NOTIFY, FIELDS };

struct dead {
	const char *connection;
	redisReply *info, *queues;
	bool failed; /* the connection stays listed */
	bool closed; /* the connection is not listed any more */
};

/* One queue of a dead connection; see lua/reclaim_dead.lua. */
struct dead_queue {
	struct dead *owner;
	const char *queue;
	char *notify; /* queue for notices of rejected messages; empty: none;
		       * NULL: not known */
	long at;      /* number of the oldest messages looked at */
	bool over;    /* no step is needed any more */
};

struct reclaim {
	struct rmq_cleaner *w;
	struct dead *dead;
	struct dead_queue *queues; /* sorted */
	size_t dead_n, queue_n;
	struct dead_queue *batch[TOGETHER]; /* queues of steps under way */
	size_t batch_n;
	bool full; /* a step has moved its share */
};

/* --- queues of dead connections ------------------------------------------- */

static void
ask_about(void *arg, size_t i, struct mq_command *c)
{
	const struct reclaim *all = arg;

	rmq_ask(c,
	    i % 2 == 0 ? "HMGET C:info slots host attempts notify" :
			 "SMEMBERS C:queues",
	    all->dead[i / 2].connection, NULL);
}

static int
store_about(void *arg, size_t i, redisReply *reply)
{
	struct reclaim *all = arg;
	struct dead *d = &all->dead[i / 2];

	*(i % 2 == 1 ? &d->queues : &d->info) = reply;
	d->failed |= !mq_round_good(&all->w->round, reply, REDIS_REPLY_ARRAY) ||
	    (i % 2 == 0 && reply->elements != FIELDS &&
		!mq_round_nonsense(&all->w->round));
	return MQ_KEEP;
}

/* Leaves a connection listed, so that Go programs find its messages in a queue that these tools
 * cannot use: with keys in the other form, a NUL in its name, or keys in several slots. */
static void
leave_alone(struct rmq_cleaner *w, struct dead *d)
{
	mq_names_add_odd(w->how->cluster, d->connection, strlen(d->connection));
	d->failed = true;
}

static void
add_queue(struct reclaim *all, struct dead *d, const char *queue)
{
	all->queues = mq_xreallocarray(
	    all->queues, all->queue_n + 1, sizeof(*all->queues));
	all->queues[all->queue_n++] =
	    (struct dead_queue){.owner = d, .queue = queue};
	if (all->w->how->all && all->w->how->dry_run)
		mq_names_add(&all->w->known, queue, NULL);
}

static void
add_queues(struct reclaim *all, struct dead *d)
{
	const redisReply *name;
	size_t i;

	for (i = 0; i < d->queues->elements; i++) {
		name = d->queues->element[i];
		if (name->type == REDIS_REPLY_STRING &&
		    strlen(name->str) == name->len) {
			add_queue(all, d, name->str);
			continue;
		}
		mq_names_add_odd(all->w->how->scattered, name->str, name->len);
		leave_alone(all->w, d);
	}
}

static int
by_queue(const void *a, const void *b)
{
	const struct dead_queue *x = a, *y = b;
	int rv = strcmp(x->queue, y->queue);

	return rv != 0 ? rv : (x->owner > y->owner) - (x->owner < y->owner);
}

/* On a cluster, ends the leases of the queues of killed processes: their connections have no
 * heartbeat any more. */
static int
end_leases(struct reclaim *all)
{
	struct rmq_cleaner *w = all->w;
	struct mq_names names = {0};
	struct dead_queue *q = all->queues;
	long long *n;
	size_t i;
	int rv;

	for (i = 0; i < all->queue_n && !w->how->dry_run; i++)
		if (mq_names_have(&w->killed, q[i].owner->connection))
			mq_names_add(
			    &names, q[i].owner->connection, q[i].queue);
	rv = rmq_cleaner_ask(w, &names, "DEL B:lease", &n);
	mq_names_free(&names);
	free(n);
	return rv;
}

/* On a cluster, finds queues with keys in the other form, or in several slots, where no script
 * can look. */
static int
look_elsewhere(struct reclaim *all)
{
	struct rmq_cleaner *w = all->w;
	const struct mq_command c = mq_redis_command(w->round.r);
	struct mq_names names = {0};
	struct dead_queue *q = all->queues;
	long long *n, *at;
	bool scattered;
	size_t i;
	int rv;

	for (i = 0; i < all->queue_n; i++)
		mq_names_add(&names, q[i].owner->connection, q[i].queue);
	rv = rmq_cleaner_ask(w, &names,
	    "EXISTS B:unacked|EXISTS O:consumers|EXISTS O:unacked", &n);
	for (i = 0, at = n; i < all->queue_n; i++, q++, at += 3) {
		scattered = rmq_is_scattered(&c, q->queue);
		if (scattered)
			mq_names_add_odd(
			    w->how->scattered, q->queue, strlen(q->queue));
		/* The connection's messages in other queues are returned. */
		q->over = scattered || at[1] > 0 || at[2] > 0;
		if ((scattered && at[0] > 0) || at[1] > 0 || at[2] > 0)
			leave_alone(w, q->owner);
		q->owner->failed |= at[0] == RMQ_NO_ANSWER ||
		    at[1] == RMQ_NO_ANSWER || at[2] == RMQ_NO_ANSWER;
	}
	mq_names_free(&names);
	free(n);
	return rv;
}

/* --- steps ----------------------------------------------------------------- */

/* A field of an info, or ''. */
static struct mq_arg
text_of(const redisReply *field)
{
	return field->str == NULL ? mq_str("") :
				    mq_bytes(field->str, field->len);
}

static void
ask_step(void *arg, size_t i, struct mq_command *c)
{
	const struct reclaim *all = arg;
	const struct mq_clean *how = all->w->how;
	const struct dead_queue *q = all->batch[i];
	const char *connection = q->owner->connection;
	redisReply *const *info = q->owner->info->element;
	bool ours = info[SLOTS]->str != NULL || info[HOST]->str != NULL;
	struct rmq_reclaim_dead_argv argv = {.name = mq_str(q->queue),
	    .connection = mq_str(connection),
	    .dry = mq_str(!how->dry_run			       ? "" :
		    mq_names_have(&all->w->killed, connection) ? "killed" :
								 "1"),
	    .share = mq_int(MESSAGES / (int)all->batch_n)};

	rmq_start(c, &rmq_script_reclaim_dead, connection, q->queue);
	if (ours)
		rmq_keys(
		    c, connection, q->queue, "rejected settings info running");
	if (q->notify != NULL && *q->notify != '\0')
		rmq_key_notice(c, q->queue, q->notify);
	if (ours) {
		argv.attempts = mq_int(how->limit);
		argv.from = mq_int(q->at);
		/* Messages of a lapsed connection may have run, but none
		 * crashed. */
		argv.slots = mq_names_have(&all->w->lapsed, connection) ?
		    mq_str("") :
		    text_of(info[SLOTS]);
		argv.host = text_of(info[HOST]);
		argv.limit = text_of(info[ATTEMPTS]);
		argv.listener = text_of(info[NOTIFY]);
		argv.told = q->notify != NULL ? mq_str(q->notify) : MQ_NO_ARG;
	}
	mq_command_argv(c, &argv, sizeof(argv));
}

static int
parse_step(void *arg, size_t i, redisReply *reply)
{
	enum { LEFT, RETURNED, CRASHED, REJECTED, UNLISTED, AT, FULL };
	struct reclaim *all = arg;
	struct rmq_cleaner *w = all->w;
	struct dead_queue *q = all->batch[i];
	struct dead *d = q->owner;
	redisReply *const *e = reply->element;
	long left = -1;

	if (reply->type == REDIS_REPLY_STRING && q->notify == NULL) {
		q->notify = mq_xstrdup(
		    rmq_queue_error(reply->str) == NULL ? reply->str : "");
		return 0;
	}
	if (mq_round_good(&w->round, reply, REDIS_REPLY_ARRAY) &&
	    (mq_reply_is(reply, "#######") || mq_round_nonsense(&w->round)))
		left = (long)e[LEFT]->integer;
	if (left == -2)
		leave_alone(w, d);
	q->over = left <= 0;
	d->failed |= left < 0;
	if (left < 0)
		return 0;
	q->at = (long)e[AT]->integer;
	w->out->returned += (long)e[RETURNED]->integer;
	w->out->rejected += (long)e[REJECTED]->integer;
	w->out->connections += (long)e[UNLISTED]->integer;
	d->closed |= e[UNLISTED]->integer > 0;
	all->full |= e[FULL]->integer != 0;
	rmq_cleaner_count(w, q->queue, (long)e[CRASHED]->integer,
	    (long)e[REJECTED]->integer, 0);
	return 0;
}

/* Lists and messages may be long, so only after steps that had little to do, more steps go
 * together. */
static int
send_steps(struct reclaim *all)
{
	struct dead_queue *first = all->queues, *q, *end = first + all->queue_n;
	size_t most = 1;
	int rv = 0;

	while (rv == 0) {
		while (first < end && first->over)
			first++;
		for (q = first, all->batch_n = 0;
		     q < end && all->batch_n < most; q++)
			if (!q->over)
				all->batch[all->batch_n++] = q;
		if (all->batch_n == 0)
			break;
		all->full = false;
		rv = mq_ask_each(
		    all->w->round.r, all->batch_n, ask_step, parse_step, all);
		most = all->full ? 1 : MIN(2 * most, TOGETHER);
	}
	return rv;
}

/* --- forgetting ------------------------------------------------------------ */

/* Steps after the messages: UNLIST, or on a cluster all others, one after the other, as nodes
 * keep no order among them.  KNOW and TAKE are about a queue. */
enum forget { KNOW, TAKE, COUNT, INFO, RUNNING, NAME, UNLIST };
static const char *const to_forget[] = {[KNOW] = "!SADD A:" RMQ_QUEUES " %q",
    [TAKE] = "SREM C:queues %q",
    [COUNT] = "SCARD C:queues",
    [INFO] = "DEL C:info",
    [RUNNING] = "DEL C:running",
    [NAME] = "SREM A:" RMQ_CONNECTIONS " %n",
    [UNLIST] = "$unlist B:listed B:queues B:lease B:info B:running %n"};

/* One step, about all queues, or connections, that have not failed. */
static int
forget_step(struct reclaim *all, enum forget step)
{
	struct rmq_cleaner *w = all->w;
	bool queues = step <= TAKE;
	size_t i, n = queues ? all->queue_n : all->dead_n;
	struct dead **of = mq_xcalloc(n + 1, sizeof(*of)), *d;
	struct mq_names names = {0};
	long long *answer;
	int rv;

	for (i = 0; i < n; i++) {
		d = queues ? all->queues[i].owner : &all->dead[i];
		if (d->failed || d->closed)
			continue;
		of[names.n] = d;
		mq_names_add(&names, d->connection,
		    queues ? all->queues[i].queue : NULL);
	}
	rv = rmq_cleaner_ask(w, &names, to_forget[step], &answer);
	for (i = 0; i < names.n; i++)
		if (answer[i] == RMQ_NO_ANSWER)
			of[i]->failed = true;
		else if (step == COUNT)
			of[i]->failed = answer[i] > 0;
		else if (step >= NAME)
			w->out->connections += (long)answer[i];
	mq_names_free(&names);
	free(of);
	free(answer);
	return rv;
}

/* Removes connections without queues. */
static int
forget(struct reclaim *all)
{
	bool cluster = mq_redis_command(all->w->round.r).cluster;
	int step = cluster ? KNOW : UNLIST, last = cluster ? NAME : UNLIST;
	size_t i;
	int rv = 0;

	for (i = 0; all->w->how->dry_run && i < all->dead_n; i++)
		all->w->out->connections += !all->dead[i].failed;
	for (; rv == 0 && !all->w->how->dry_run && step <= last; step++)
		rv = forget_step(all, step);
	return rv;
}

/* --- reclaim ---------------------------------------------------------------- */

/* Whether the i-th name is of another connection than the one before. */
static bool
is_another(const struct mq_name *dead, size_t i)
{
	return i == 0 || strcmp(dead[i].name, dead[i - 1].name) != 0;
}

static int
reclaim_some(struct rmq_cleaner *w, const struct mq_name *dead, size_t n)
{
	struct reclaim all = {.w = w, .dead = mq_xcalloc(n, sizeof(*all.dead))};
	struct mq_redis *r = w->round.r;
	struct dead *d = all.dead;
	size_t i;
	int rv;

	for (i = 0; i < n; i++)
		if (is_another(dead, i))
			all.dead[all.dead_n++].connection = dead[i].name;
	rv = mq_ask_each(r, 2 * all.dead_n, ask_about, store_about, &all);
	for (i = 0; rv == 0 && i < n; i++) {
		d += i > 0 && is_another(dead, i);
		if (d->failed)
			continue;
		if (dead[i].queue == NULL)
			add_queues(&all, d);
		else
			add_queue(&all, d, dead[i].queue);
	}
	if (all.queue_n > 0)
		qsort(all.queues, all.queue_n, sizeof(*all.queues), by_queue);
	if (rv == 0 && mq_redis_command(r).cluster)
		rv = end_leases(&all) == 0 ? look_elsewhere(&all) : -1;
	if (rv == 0)
		rv = send_steps(&all);
	if (rv == 0)
		rv = forget(&all);
	for (i = 0; i < all.queue_n; i++)
		free(all.queues[i].notify);
	for (i = 0; i < all.dead_n; i++) {
		freeReplyObject(all.dead[i].info);
		freeReplyObject(all.dead[i].queues);
	}
	free(all.queues);
	free(all.dead);
	return rv;
}

int
rmq_reclaim(struct rmq_cleaner *w, const struct mq_name *dead, size_t total)
{
	size_t i, n;

	for (i = 0; i < total; i += n) {
		/* All queues of a connection go together. */
		n = MIN(total - i, MANY);
		while (i + n < total && !is_another(dead, i + n))
			n++;
		if (reclaim_some(w, dead + i, n) == -1)
			return -1;
	}
	return 0;
}
