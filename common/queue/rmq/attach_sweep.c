/*
 * The rmq layout: attachments whose messages are gone.
 *
 * A Go program that acks or purges a message knows of no attachments, and a crash may
 * come between the end of a message and that of its files.  So all messages are walked
 * through, and a set whose messages were seen nowhere expires in an hour.  It must not
 * be that of a message that was only missed, and this is why it is not:
 *
 * - There are two walks, from where messages wait to where they end.  What moves on,
 *   or back once, is seen by one of them.
 * - A reference that is younger than an hour does not count as missing: its message
 *   may be about to be published.  Each run begins that hour anew.
 * - A run, or the next walk that sees a message, makes its files stay again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/xalloc.h"
#include "message/headers.h"
#include "queue/attach.h"
#include "redis/connection.h"
#include "rmq.h"

/* Younger references are left alone. */
#define YOUNG_MS 3600000

struct sweep {
	struct mq_redis *redis;
	int64_t now_ms;
	struct mq_names wanted;	  /* references, "SET ID", by their sets */
	struct mq_names seen;	  /* of these */
	struct mq_names young;	  /* sets with a reference that is young */
	struct mq_names expiring; /* sets that expire */
	bool whole;		  /* the walks have seen everything */
};

/* --- the walks ---------------------------------------------------------------- */

/* Adds the reference of a message, if it is one of these. */
static void
note_message(const struct mq_item *item, const struct mq_names *wanted,
    struct mq_names *names)
{
	struct mq_envelope e;
	const char *bad, *set, *id;
	char *name;

	if (mq_envelope_parse(item->element, item->len, &e, &bad) == -1)
		return;
	set = mq_envelope_get(&e, MQ_HEADER_ATTACH);
	id = mq_message_id(&e);
	if (set != NULL && id != NULL && mq_id_valid(set, strlen(set))) {
		name = mq_xasprintf("%s %.*s", set, MQ_ID_LEN, id);
		if (mq_names_have(wanted, name))
			mq_names_add(names, name, NULL);
		free(name);
	}
	mq_envelope_free(&e);
}

static int
walk_place(struct mq_redis *r, const char *queue, enum mq_state state,
    const struct mq_names *wanted, struct mq_names *names)
{
	struct mq_scan s = {.place = {.queue = queue, .state = state},
	    .needle = "\"" MQ_HEADER_ATTACH "\""};
	int i, rv = 0;

	while (rv == 0 && !s.end) {
		rv = rmq_scan(r, &s);
		for (i = 0; rv == 0 && i < s.count; i++)
			note_message(&s.items[i], wanted, names);
	}
	mq_scan_free(&s);
	return rv;
}

static int
walk_queue(struct mq_redis *r, const char *queue, const struct mq_names *wanted,
    struct mq_names *names)
{
	static const enum mq_state states[] = {
	    MQ_DELAYED, MQ_READY, MQ_UNACKED, MQ_REJECTED};
	struct mq_command c = mq_redis_command(r);
	long long underway = 0;
	size_t i;
	int rv = 0;

	for (i = 0; i < MQ_STATES && rv == 0; i++)
		rv = walk_place(r, queue, states[i], wanted, names);
	if (rv == -1 || !c.cluster)
		return rv;
	mq_command_plain(&c, "HLEN");
	rmq_key_queue(&c, queue, "outgoing");
	rv = mq_call_number(r, &c, &underway);
	return rv == 0 && underway > 0 ? 1 : rv;
}

/* Sees nothing for sure where it is refused, or something is on its way from queue to
 * queue of a cluster. */
static int
walk_all(struct sweep *s)
{
	const struct mq_command c = mq_redis_command(s->redis);
	redisReply *queues = mq_call_members(s->redis, RMQ_QUEUES);
	struct mq_names names = {0};
	size_t i;

	s->whole &= queues != NULL;
	if (queues != NULL)
		rmq_add_names(&names, queues);
	freeReplyObject(queues);
	for (i = 0; i < names.n && s->whole; i++)
		s->whole = rmq_is_scattered(&c, names.list[i].name) ||
		    walk_queue(s->redis, names.list[i].name, &s->wanted,
			&s->seen) == 0;
	mq_names_free(&names);
	mq_names_sort(&s->seen);
	return mq_redis_lost(s->redis) ? -1 : 0;
}

/* --- references ----------------------------------------------------------------- */

static void
note_reference(struct sweep *s, const char *set, const redisReply *id,
    const redisReply *at)
{
	char *name = mq_xasprintf("%s %s", set, id->str);
	long long noted = strtoll(at->str, NULL, 10);

	mq_names_add(&s->wanted, name, NULL);
	if (s->now_ms - noted < YOUNG_MS)
		mq_names_add(&s->young, set, NULL);
	free(name);
}

/* What is left of a set without references is removed. */
static int
load_set(struct sweep *s, const char *set, bool dry_run)
{
	struct mq_command c = mq_redis_command(s->redis);
	redisReply *refs;
	long long ttl;
	size_t i;

	mq_command_plain(&c, "HGETALL");
	rmq_attach_key(&c, set, "refs");
	refs = mq_call_strings(s->redis, &c);
	if (refs == NULL ||
	    rmq_attach_one(s->redis, set, "PTTL", "refs", &ttl) == -1) {
		freeReplyObject(refs);
		return -1;
	}
	for (i = 0; i + 1 < refs->elements; i += 2)
		note_reference(s, set, refs->element[i], refs->element[i + 1]);
	i = refs->elements;
	freeReplyObject(refs);
	if (ttl >= 0)
		mq_names_add(&s->expiring, set, NULL);
	return i > 0 || dry_run ? 0 : rmq_attach_remove(s->redis, set);
}

static int
load_sets(struct sweep *s, bool dry_run)
{
	redisReply *sets = mq_call_members(s->redis, RMQ_ATTACH_SETS);
	const char *set;
	size_t i;
	int rv = sets != NULL ? 0 : -1;

	for (i = 0; rv == 0 && i < sets->elements; i++) {
		set = sets->element[i]->str;
		if (mq_id_valid(set, sets->element[i]->len))
			rv = load_set(s, set, dry_run);
	}
	freeReplyObject(sets);
	mq_names_sort(&s->wanted);
	mq_names_sort(&s->young);
	mq_names_sort(&s->expiring);
	return rv;
}

/* --- judging -------------------------------------------------------------------- */

static int
set_all(struct mq_redis *r, const char *set, const char *verb)
{
	long long chunks, done;
	redisReply *files = rmq_attach_files(r, set, &chunks);

	if (files == NULL)
		return -1;
	freeReplyObject(files);
	if (rmq_attach_one(r, set, verb, "refs", &done) == -1 ||
	    rmq_attach_each(r, set, verb, chunks, NULL) == -1)
		return -1;
	return rmq_attach_one(r, set, verb, "files", &done);
}

/* A run that has begun meanwhile has made them stay, or some of them. */
static int
expire_set(struct mq_redis *r, const char *set)
{
	long long ttl;

	if (set_all(r, set, "EXPIRE") == -1 ||
	    rmq_attach_one(r, set, "PTTL", "refs", &ttl) == -1)
		return -1;
	return ttl == -1 ? set_all(r, set, "PERSIST") : 0;
}

static int
judge_set(struct sweep *s, const char *set, bool seen, bool dry_run, long *n)
{
	bool expiring = mq_names_have(&s->expiring, set);

	if (seen)
		return expiring && !dry_run ?
		    set_all(s->redis, set, "PERSIST") :
		    0;
	if (expiring || mq_names_have(&s->young, set))
		return 0;
	++*n;
	return dry_run ? 0 : expire_set(s->redis, set);
}

static int
judge_all(struct sweep *s, bool dry_run, long *n)
{
	const struct mq_name *list = s->wanted.list;
	char set[MQ_ID_LEN + 1];
	size_t i, end;
	bool seen;
	int rv = 0;

	for (i = 0; i < s->wanted.n && rv == 0; i = end) {
		strlcpy(set, list[i].name, sizeof(set));
		seen = false;
		for (end = i; end < s->wanted.n &&
		     strncmp(list[end].name, set, MQ_ID_LEN) == 0;
		     end++)
			seen |= mq_names_have(&s->seen, list[end].name);
		rv = judge_set(s, set, seen, dry_run, n);
	}
	return rv;
}

/* Whether a walk could change anything. */
static bool
has_doubt(const struct sweep *s)
{
	size_t i;
	char set[MQ_ID_LEN + 1];

	for (i = 0; i < s->wanted.n; i++) {
		strlcpy(set, s->wanted.list[i].name, sizeof(set));
		if (!mq_names_have(&s->seen, s->wanted.list[i].name) &&
		    (!mq_names_have(&s->young, set) ||
			mq_names_have(&s->expiring, set)))
			return true;
	}
	return false;
}

int
rmq_attach_sweep(struct mq_redis *r, bool dry_run, long *n)
{
	struct sweep s = {.redis = r, .whole = true};
	int pass, rv = mq_server_time(r, &s.now_ms);

	*n = 0;
	if (rv == 0)
		rv = load_sets(&s, dry_run);
	for (pass = 0; pass < 2 && rv == 0 && s.whole && has_doubt(&s); pass++)
		rv = walk_all(&s);
	/* A lost node may have messages with attachments. */
	if (rv == 0 && s.whole && mq_partial_lost(r, 0) == NULL)
		rv = judge_all(&s, dry_run, n);
	mq_names_free(&s.wanted);
	mq_names_free(&s.seen);
	mq_names_free(&s.young);
	mq_names_free(&s.expiring);
	return rv;
}
