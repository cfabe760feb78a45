/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rmq layout: removing a queue and all of its keys.
 *
 * On a cluster the sets of names are in other slots.  There the steps are: end transfers
 * from the queue; remove its keys, unless it has a consumer; take it from dead connections;
 * remove its name; and if the queue has messages or a consumer by then, list its name again.
 * Each step can be repeated.
 */
#include "rmq.h"

#include "base/exit.h"

/* Tries to delete a queue while connections come and go. */
#define DELETE_TRIES 100

static void
add_delete(struct mq_command *c, const char *queue, bool dry_run,
    const struct mq_names *connections)
{
	size_t i, n = connections->n;
	const char *of_each;

	rmq_start(c, &rmq_script_delete, NULL, queue);
	of_each = mq_command_keys(c);
	for (i = 0; i < n; i++)
		rmq_keys(c, connections->list[i].name, queue, of_each);
	MQ_COMMAND_ARGV(c, rmq_delete_argv, .queue = mq_str(queue),
	    .look = mq_int(dry_run));
	for (i = 0; i < n; i++)
		mq_command_str(c, connections->list[i].name);
}

/* *done is false if other connections are listed by now. */
static int
call_delete(struct mq_redis *r, const char *queue,
    const struct mq_names *connections, struct mq_deletion *out, bool *done)
{
	struct mq_command c = mq_redis_command(r);
	redisReply *reply, **e;

	add_delete(&c, queue, out->dry_run, connections);
	reply = mq_call(r, &c, -1);
	if (reply == NULL)
		return -1;
	*done = reply->type != REDIS_REPLY_NIL;
	if (*done && !mq_reply_is(reply, "########")) {
		freeReplyObject(reply);
		return mq_nonsense(r);
	}
	e = reply->element;
	if (*done) {
		out->consumers = (long)e[0]->integer;
		out->unacked = (long)e[1]->integer;
		out->known = e[2]->integer != 0;
		out->ready = (long)e[3]->integer;
		out->rejected = (long)e[4]->integer;
		out->delayed = (long)e[5]->integer;
		out->awaited = e[6]->integer != 0;
		out->cluster = e[7]->integer != 0;
	}
	freeReplyObject(reply);
	return 0;
}

/* --- on a cluster --------------------------------------------------------------- */

/* The connections that have the queue. */
struct users {
	struct mq_names all, dead;
	long consumers; /* number of consumers of live connections */
	bool other;	/* keys in the other form exist */
};

static int
find_users(struct mq_redis *r, const char *queue, struct users *u)
{
	enum { HAS, ALIVE, CONSUMERS, OTHERS, OTHER_UNACKED, QUESTIONS };
	static const char asked[] =
	    "SISMEMBER C:queues %q|PTTL C:heartbeat|SCARD B:consumers|"
	    "EXISTS O:consumers|EXISTS O:unacked";
	struct rmq_cleaner w = {.round.r = r};
	long long *answers, *n, other[2] = {0};
	size_t i;
	int rv = rmq_call_names(r, RMQ_CONNECTIONS, &u->all, NULL);

	if (rv == -1)
		return -1;
	for (i = 0; i < u->all.n; i++)
		u->all.list[i].queue = mq_xstrdup(queue);
	rv = rmq_cleaner_ask(&w, &u->all, asked, &answers);
	if (rv == 0 && (w.round.refused > 0 || mq_round_end(&w.round) == -1))
		rv = -1;
	for (i = 0, n = answers; rv == 0 && i < u->all.n; i++, n += QUESTIONS) {
		u->other |= n[OTHERS] > 0 || n[OTHER_UNACKED] > 0;
		if (n[HAS] != 0 && n[ALIVE] <= 0)
			mq_names_add(&u->dead, u->all.list[i].name, NULL);
		else if (n[HAS] != 0)
			u->consumers += MAX((long)n[CONSUMERS], 1);
	}
	free(answers);
	if (rv == -1 ||
	    rmq_call_number(r, "EXISTS O:ready", NULL, queue, &other[0]) ==
		-1 ||
	    rmq_call_number(r, "EXISTS O:rejected", NULL, queue, &other[1]) ==
		-1)
		return -1;
	u->other |= other[0] + other[1] > 0;
	return 0;
}

/* Removes the name, unless the queue is in use again. */
static int
forget_queue(struct mq_redis *r, const char *queue, const struct users *before)
{
	struct users now = {0};
	long long done, used = 0;
	size_t i;
	int rv = 0;

	for (i = 0; i < before->dead.n && rv == 0; i++)
		rv = rmq_call_number(r, "SREM C:queues %q",
		    before->dead.list[i].name, queue, &done);
	if (rv == -1 ||
	    rmq_call_number(
		r, "SREM A:" RMQ_QUEUES " %n", queue, NULL, &done) == -1 ||
	    rmq_call_number(r,
		"EXISTS Q:ready Q:priority Q:delayed Q:rejected Q:outgoing",
		queue, NULL, &used) == -1 ||
	    find_users(r, queue, &now) == -1)
		rv = -1;
	else if (used > 0 || now.consumers > 0)
		rv = rmq_call_number(
		    r, "SADD A:" RMQ_QUEUES " %n", queue, NULL, &done);
	mq_names_free(&now.all);
	mq_names_free(&now.dead);
	return rv;
}

static int
delete_by_steps(struct mq_redis *r, const char *queue, struct mq_deletion *out)
{
	struct mq_round round = {.r = r};
	struct users u = {0};
	long long known = 0;
	long ended;
	bool done;
	int rv = 0;

	if (!out->dry_run)
		rv = rmq_transfer_finish(&round, queue, NULL, &ended);
	if (rv == 0)
		rv = find_users(r, queue, &u);
	if (rv == 0)
		rv = rmq_call_number(
		    r, "SISMEMBER A:" RMQ_QUEUES " %n", queue, NULL, &known);
	/* Go's connections have no lease of the queue, so the script does not see them. */
	out->consumers = u.consumers;
	if (rv == 0 && u.consumers == 0 && (!u.other || out->dry_run))
		rv = call_delete(r, queue, &u.all, out, &done);
	out->known = known != 0;
	out->cluster = u.other;
	if (rv == 0 && !out->dry_run && out->consumers == 0 &&
	    out->unacked == 0 && !out->cluster)
		rv = forget_queue(r, queue, &u);
	mq_names_free(&u.all);
	mq_names_free(&u.dead);
	return rv;
}

int
rmq_delete_queue(struct mq_redis *r, const char *queue, struct mq_deletion *out)
{
	struct mq_names connections;
	bool done = false;
	int tries, rv = 0;

	if (mq_redis_command(r).cluster)
		return delete_by_steps(r, queue, out);
	for (tries = 0; tries < DELETE_TRIES && rv == 0 && !done; tries++) {
		connections = (struct mq_names){0};
		rv = rmq_call_names(r, RMQ_CONNECTIONS, &connections, NULL);
		if (rv == 0)
			rv = call_delete(r, queue, &connections, out, &done);
		mq_names_free(&connections);
	}
	return rv == 0 && !done ?
	    mq_layout_fail(r, MQ_EXIT_AGAIN, queue, MQ_KEEPS_CHANGING) :
	    rv;
}
