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

/* A message that a set says is one of its own. */
struct reference {
	char *name;    /* "SET ID" */
	bool young;    /* some reference of the set is */
	bool expiring; /* the set is */
	bool seen;     /* the message is somewhere */
};

struct sweep {
	struct rmq_cleaner *w;
	struct mq_redis *redis;
	int64_t now_ms;
	struct reference *list; /* sorted by name, once all are there */
	size_t n;
	bool whole; /* the walks have seen everything */
};

static int
by_name(const void *a, const void *b)
{
	const struct reference *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* --- the walks ---------------------------------------------------------------- */

static void
note_message(struct sweep *s, const struct mq_item *item)
{
	struct reference key = {0}, *found;
	struct mq_envelope e;
	const char *bad, *set, *id;

	if (mq_envelope_parse(item->element, item->len, &e, &bad) == -1)
		return;
	set = mq_envelope_get(&e, MQ_HEADER_ATTACH);
	id = mq_message_id(&e);
	if (set != NULL && id != NULL && mq_id_valid(set, strlen(set))) {
		key.name = mq_xasprintf("%s %.*s", set, MQ_ID_LEN, id);
		found = bsearch(&key, s->list, s->n, sizeof(key), by_name);
		if (found != NULL)
			found->seen = true;
		free(key.name);
	}
	mq_envelope_free(&e);
}

/* Returns 1 where something is on its way from queue to queue of a cluster. */
static int
walk_queue(struct sweep *s, const char *queue)
{
	static const enum mq_state states[] = {
	    MQ_DELAYED, MQ_READY, MQ_UNACKED, MQ_REJECTED};
	struct mq_command c = mq_redis_command(s->redis);
	struct mq_scan scan;
	long long underway = 0;
	size_t k;
	int i, rv = 0;

	for (k = 0; k < MQ_STATES && rv == 0; k++) {
		scan = (struct mq_scan){
		    .place = {.queue = queue, .state = states[k]},
		    .needle = "\"" MQ_HEADER_ATTACH "\""};
		while (rv == 0 && !scan.end) {
			rv = rmq_scan(s->redis, &scan);
			for (i = 0; rv == 0 && i < scan.count; i++)
				note_message(s, &scan.items[i]);
		}
		mq_scan_free(&scan);
	}
	if (rv == -1 || !c.cluster)
		return rv;
	mq_command_plain(&c, "HLEN");
	rmq_key_queue(&c, queue, "outgoing");
	rv = mq_call_number(s->redis, &c, &underway);
	return rv == 0 && underway > 0 ? 1 : rv;
}

/* Sees nothing for sure where it is refused, or something is on its way. */
static int
walk_all(struct sweep *s)
{
	const struct mq_command c = mq_redis_command(s->redis);
	struct mq_names names = {0};
	size_t i;

	s->whole = rmq_call_names(s->redis, RMQ_QUEUES, &names) == 0;
	for (i = 0; i < names.n && s->whole; i++)
		s->whole = rmq_is_scattered(&c, names.list[i].name) ||
		    walk_queue(s, names.list[i].name) == 0;
	mq_names_free(&names);
	return mq_redis_lost(s->redis) ? -1 : 0;
}

/* --- references ----------------------------------------------------------------- */

/* What is left of a set without references is removed. */
static int
load_set(struct sweep *s, const char *set)
{
	struct mq_command c = mq_redis_command(s->redis);
	redisReply *refs;
	long long ttl;
	bool young = false;
	size_t i, first = s->n;

	mq_command_plain(&c, "HGETALL");
	rmq_attach_key(&c, set, "refs");
	refs = mq_call(s->redis, &c, MQ_STRINGS);
	if (refs == NULL ||
	    rmq_attach_one(s->redis, set, "PTTL", "refs", &ttl) == -1) {
		freeReplyObject(refs);
		return -1;
	}
	s->list = mq_xreallocarray(
	    s->list, first + refs->elements / 2 + 1, sizeof(*s->list));
	for (i = 0; i + 1 < refs->elements; i += 2) {
		young |=
		    s->now_ms - strtoll(refs->element[i + 1]->str, NULL, 10) <
		    YOUNG_MS;
		s->list[s->n++] = (struct reference){
		    .name = mq_xasprintf("%s %s", set, refs->element[i]->str),
		    .expiring = ttl >= 0};
	}
	freeReplyObject(refs);
	for (i = first; i < s->n; i++)
		s->list[i].young = young;
	return s->n > first || s->w->how->dry_run ?
	    0 :
	    rmq_attach_remove(s->redis, set);
}

static int
load_sets(struct sweep *s)
{
	redisReply *sets = mq_call_members(s->redis, RMQ_ATTACH_SETS);
	const char *set;
	size_t i;
	int rv = sets != NULL ? 0 : -1;

	for (i = 0; rv == 0 && i < sets->elements; i++) {
		set = sets->element[i]->str;
		if (mq_id_valid(set, sets->element[i]->len))
			rv = load_set(s, set);
	}
	freeReplyObject(sets);
	if (s->n > 0)
		qsort(s->list, s->n, sizeof(*s->list), by_name);
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
	    rmq_attach_each(r, set, verb, chunks) == -1)
		return -1;
	return rmq_attach_one(r, set, verb, "files", &done);
}

static int
judge_all(struct sweep *s)
{
	bool seen, dry_run = s->w->how->dry_run;
	const struct reference *ref, *all_end = s->list + s->n, *end;
	char set[MQ_ID_LEN + 1];
	long long ttl = 0;
	int rv = 0;

	for (ref = s->list; ref < all_end && rv == 0; ref = end) {
		strlcpy(set, ref->name, sizeof(set));
		seen = false;
		for (end = ref;
		     end < all_end && strncmp(end->name, set, MQ_ID_LEN) == 0;
		     end++)
			seen |= end->seen;
		if (seen && ref->expiring && !dry_run)
			rv = set_all(s->redis, set, "PERSIST");
		if (seen || ref->expiring || ref->young)
			continue;
		s->w->out->orphans++;
		if (dry_run)
			continue;
		rv = set_all(s->redis, set, "EXPIRE");
		if (rv == 0)
			rv =
			    rmq_attach_one(s->redis, set, "PTTL", "refs", &ttl);
		/* A run that has begun meanwhile made them stay, or some. */
		if (rv == 0 && ttl == -1)
			rv = set_all(s->redis, set, "PERSIST");
	}
	return rv;
}

/* Whether a walk could change anything. */
static bool
has_doubt(const struct sweep *s)
{
	const struct reference *ref = s->list;

	for (; ref < s->list + s->n; ref++)
		if (!ref->seen && (!ref->young || ref->expiring))
			return true;
	return false;
}

int
rmq_attach_sweep(struct rmq_cleaner *w)
{
	struct mq_redis *r = w->round.r;
	struct sweep s = {.w = w, .redis = r, .whole = true};
	int pass, rv = mq_server_time(r, &s.now_ms);
	size_t i;

	if (rv == 0)
		rv = load_sets(&s);
	for (pass = 0; pass < 2 && rv == 0 && s.whole && has_doubt(&s); pass++)
		rv = walk_all(&s);
	/* A lost node may have messages with attachments. */
	if (rv == 0 && s.whole && mq_partial_lost(r, 0) == NULL)
		rv = judge_all(&s);
	for (i = 0; i < s.n; i++)
		free(s.list[i].name);
	free(s.list);
	/* A user without the right to look at attachments has none to clean. */
	return rv == -1 && mq_redis_lost(r) ? -1 : 0;
}
