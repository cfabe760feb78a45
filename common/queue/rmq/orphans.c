/*
 * The rmq layout: what nobody lists.  All keys are looked through; a key is
 * judged here only by its name, and again, by what the server knows at that
 * moment, in the scripts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rmq.h"

/* Steps of one round that does not look through all keys: some 5 ms. */
#define SCAN_STEPS 10

/* The keys that were found, whose owners are not known; first those of queues. */
enum {
	MESSAGES,   /* queue, and which key of it has them */
	HELD,	    /* queue, and connection that has them */
	OF_QUEUE,   /* queue, and which key of it */
	UNACKED,    /* connection and queue */
	CONNECTION, /* connection, and which key of it */
	MOVING,	    /* queue, and which key of it */
	KINDS
};

struct found {
	struct mq_names list[KINDS];
	struct mq_names some[UNACKED]; /* of this step; some may be known */
};

static void
free_names(struct mq_names *list, int n)
{
	int i;

	for (i = 0; i < n; i++)
		mq_names_free(&list[i]);
}

/*
 * The part of a key between a prefix and a suffix, cut out in place; NULL if
 * it has no such form.
 */
static char *
between(char *key, const char *prefix, const char *suffix)
{
	size_t n = strlen(key), p = strlen(prefix), s = strlen(suffix);

	if (n <= p + s || strncmp(key, prefix, p) != 0 ||
	    strcmp(key + n - s, suffix) != 0)
		return NULL;
	key[n - s] = '\0';
	return key + p;
}

static bool
is_queue_name(const char *name)
{
	return rmq_queue_error(name) == NULL;
}

static void
note_unacked(struct found *f, const char *connection, const char *queue)
{
	if (is_queue_name(queue))
		mq_names_add(&f->some[HELD], queue, connection);
	mq_names_add(&f->list[UNACKED], connection, queue);
}

static bool
has_messages(const char *what)
{
	static const char *const keys[] = {
	    "ready", "rejected", "delayed", "priority"};
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(what, keys[i]) == 0)
			return true;
	return false;
}

/* A key that belongs to a queue. */
static bool
note_of_queue(
    struct rmq_cleaner *w, struct found *f, char *key, const char *suffix)
{
	const char *queue = between(key, "rmq::queue::[", suffix);
	const char *what = suffix + strlen("]::");

	if (queue == NULL)
		return false;
	if (!is_queue_name(queue))
		return true;
	if (w->how->all &&
	    (strcmp(what, "delayed") == 0 || strcmp(what, "locks") == 0))
		mq_names_add(&w->busy, queue, NULL);
	mq_names_add(
	    &f->some[has_messages(what) ? MESSAGES : OF_QUEUE], queue, what);
	return true;
}

/* A key of ours that belongs to a connection, whose names we make ourselves. */
static bool
note_of_connection(
    const struct rmq_cleaner *w, struct found *f, char *key, const char *suffix)
{
	const char *connection = between(key, "rmq::connection::", suffix);
	const char *what = suffix + strlen("::");

	if (connection == NULL)
		return false;
	if (strstr(connection, "::") == NULL &&
	    !mq_names_have(&w->live, connection) &&
	    !mq_names_have(&w->dead, connection))
		mq_names_add(&f->list[CONNECTION], connection, what);
	return true;
}

/* Where an older version claimed large messages from. */
static bool
note_moving(struct found *f, char *key, const char *suffix)
{
	const char *queue = between(key, "rmq::queue::[", suffix);

	if (queue != NULL && is_queue_name(queue))
		mq_names_add(&f->list[MOVING], queue, suffix + strlen("]::"));
	return queue != NULL;
}

static void
note_key(struct rmq_cleaner *w, struct found *f, redisReply *key)
{
	static const char *const of_queue[] = {"]::ready", "]::rejected",
	    "]::delayed", "]::priority", "]::counters", "]::paused", "]::locks",
	    "]::clock", "]::rate"};
	char *connection, *queue;
	size_t i;

	if (strlen(key->str) != key->len)
		return;
	for (i = 0; i < sizeof(of_queue) / sizeof(of_queue[0]); i++)
		if (note_of_queue(w, f, key->str, of_queue[i]))
			return;
	if (note_moving(f, key->str, "]::moving") ||
	    note_moving(f, key->str, "]::moving-alone") ||
	    note_of_connection(w, f, key->str, "::info") ||
	    note_of_connection(w, f, key->str, "::running"))
		return;
	if (rmq_unacked_key(key->str, key->len, &connection, &queue))
		note_unacked(f, connection, queue);
}

/* Moves what belongs to queues that are not known. */
static void
move_unknown(const redisReply *known, size_t *at, const struct mq_names *from,
    struct mq_names *to)
{
	size_t i;

	for (i = 0; i < from->n; i++, ++*at)
		if (known->element[*at]->type == REDIS_REPLY_INTEGER &&
		    known->element[*at]->integer == 0)
			mq_names_add(
			    to, from->list[i].name, from->list[i].queue);
}

/* There may be a million known queues, so only those whose keys were found are asked
 * for. */
static int
keep_unknown(struct rmq_cleaner *w, struct found *f)
{
	struct mq_command c = mq_redis_command(w->round.r);
	redisReply *known;
	size_t kind, i, n = 0, at = 0;
	int rv;

	mq_command_plain(&c, "SMISMEMBER");
	rmq_key_all(&c, RMQ_QUEUES);
	for (kind = 0; kind < UNACKED; kind++)
		for (i = 0; i < f->some[kind].n; i++, n++)
			mq_command_str(&c, f->some[kind].list[i].name);
	if (n == 0) {
		mq_command_free(&c);
		return 0;
	}
	rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &known);
	if (known != NULL && known->elements == n)
		for (kind = 0; kind < UNACKED; kind++)
			move_unknown(
			    known, &at, &f->some[kind], &f->list[kind]);
	freeReplyObject(known);
	return rv;
}

/* Notes keys, as a step of the walk has come by them. */
static int
note_keys(struct rmq_cleaner *w, struct found *f, const redisReply *keys)
{
	size_t i;
	int rv;

	for (i = 0; i < keys->elements; i++)
		note_key(w, f, keys->element[i]);
	rv = keep_unknown(w, f);
	free_names(f->some, UNACKED);
	return rv;
}

/* One step of the walk through all keys. */
static int
scan_keys(struct rmq_cleaner *w, struct found *f, char cursor[MQ_CURSOR_SIZE])
{
	struct mq_command c = mq_redis_command(w->round.r);
	redisReply *reply, *keys;
	int rv;

	mq_keys_ask(&c, cursor, "rmq::*");
	rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &reply);
	w->blind = reply == NULL;
	*cursor = '\0';
	if (reply == NULL)
		return rv;
	keys = mq_cursor_take(cursor, reply);
	if (keys != NULL)
		rv = note_keys(w, f, keys);
	freeReplyObject(reply);
	return rv;
}

static int
find_orphans(struct rmq_cleaner *w, struct found *f)
{
	char cursor[MQ_CURSOR_SIZE];
	bool all = w->how->all;
	int i, steps, rv = 0;

	snprintf(cursor, sizeof(cursor), "%llu", all ? 0 : w->how->scan_from);
	for (steps = 0;
	     rv == 0 && *cursor != '\0' && (all || steps < SCAN_STEPS); steps++)
		rv = scan_keys(w, f, cursor);
	w->out->scan_at = strtoull(cursor, NULL, 10);
	/* A walk may come by a key twice. */
	for (i = 0; i < KINDS; i++)
		mq_names_sort(&f->list[i]);
	return rv;
}

/* --- what becomes of it -------------------------------------------------------- */

static void
add_owner(const struct rmq_cleaner *w, const char *owner, const char *kind,
    struct mq_command *c)
{
	mq_command_str(c, owner);
	mq_command_str(c, kind);
	mq_command_str(c, w->how->dry_run ? "1" : "0");
}

static void
build_of_queue(const struct rmq_cleaner *w, const struct mq_name *name,
    struct mq_command *c)
{
	bool held = strcmp(name->queue, "locks") == 0 ||
	    strcmp(name->queue, "clock") == 0;

	mq_command_script(c, &rmq_script_orphan);
	rmq_key_queue(c, name->name, name->queue);
	rmq_key_all(c, RMQ_QUEUES);
	rmq_key_queue(c, name->name, "ready");
	add_owner(w, name->name,
	    has_messages(name->queue) ? "messages" :
		held		      ? "held" :
					"queue",
	    c);
}

static void
build_connection(const struct rmq_cleaner *w, const struct mq_name *name,
    struct mq_command *c)
{
	mq_command_script(c, &rmq_script_orphan);
	rmq_key_connection(c, name->name, name->queue);
	rmq_key_all(c, RMQ_CONNECTIONS);
	rmq_key_connection(c, name->name, "heartbeat");
	add_owner(w, name->name, "connection", c);
}

static void
build_held(const struct rmq_cleaner *w, const struct mq_name *name,
    struct mq_command *c)
{
	mq_command_script(c, &rmq_script_orphan);
	rmq_key_both(c, name->queue, name->name, "unacked");
	rmq_key_all(c, RMQ_QUEUES);
	rmq_key_queue(c, name->name, "ready");
	add_owner(w, name->name, "messages", c);
}

/* --- what an older version left ---------------------------------------------------- */

static void
build_heal(const struct rmq_cleaner *w, const struct mq_name *name,
    struct mq_command *c)
{
	mq_command_script(c, &rmq_script_heal);
	rmq_key_queue(c, name->name, "ready");
	rmq_key_queue(c, name->name, "delayed");
	rmq_key_queue(c, name->name, "priority");
	rmq_key_queue(c, name->name, name->queue);
	rmq_key_queues(c, name->name);
	mq_command_str(c, w->how->dry_run ? "1" : "0");
	mq_command_str(c, name->name);
}

/* Returns to their queues what claims of an older version left in these keys. */
static int
heal(struct rmq_cleaner *w, const struct mq_names *moving)
{
	struct mq_command c = mq_redis_command(w->round.r);
	size_t i;
	long n;
	int rv = 0;

	for (i = 0; i < moving->n && rv == 0; i++) {
		do {
			n = 0;
			build_heal(w, &moving->list[i], &c);
			rv = mq_round_add(&w->round, &c, &n);
			w->out->returned += n;
		} while (rv == 0 && n > 0 && !w->how->dry_run);
	}
	return rv;
}

/* --- the order of it ------------------------------------------------------------------ */

/* Leaves out names that would be known by now. */
static void
leave_out(struct mq_names *names, const struct mq_names *known)
{
	struct mq_names kept = {0};
	size_t i;

	for (i = 0; i < names->n; i++)
		if (!mq_names_have(known, names->list[i].name))
			mq_names_add(
			    &kept, names->list[i].name, names->list[i].queue);
	mq_names_free(names);
	*names = kept;
}

/* Behind those adopted, whose queues are known now, or would be. */
static int
recover_messages(struct rmq_cleaner *w, struct found *f)
{
	struct mq_names recovered = {0};
	size_t i;
	int rv = rmq_cleaner_select(
	    w, &f->list[MESSAGES], build_of_queue, &recovered);

	if (rv == 0)
		rv = rmq_cleaner_select(
		    w, &f->list[HELD], build_held, &recovered);
	for (i = 0; i < recovered.n && w->how->dry_run; i++)
		mq_names_add(&w->known, recovered.list[i].name, NULL);
	mq_names_sort(&w->known);
	leave_out(&f->list[OF_QUEUE], &w->known);
	mq_names_free(&recovered);
	return rv;
}

static int
remove_orphans(struct rmq_cleaner *w, const struct found *f)
{
	struct mq_names removed = {0};
	int rv =
	    rmq_cleaner_select(w, &f->list[OF_QUEUE], build_of_queue, &removed);

	if (rv == 0)
		rv = rmq_cleaner_select(
		    w, &f->list[CONNECTION], build_connection, &removed);
	w->out->orphans += (long)removed.n;
	mq_names_free(&removed);
	return rv;
}

int
rmq_orphans(struct rmq_cleaner *w)
{
	struct mq_names adopted = {0};
	struct found f = {0};
	int rv = find_orphans(w, &f);

	if (rv == 0)
		rv = heal(w, &f.list[MOVING]);
	if (rv == 0)
		rv = rmq_adopt_some(w, &f.list[UNACKED], &adopted);
	leave_out(&f.list[CONNECTION], &adopted);
	mq_names_free(&adopted);
	if (rv == 0)
		rv = recover_messages(w, &f);
	if (rv == 0 && w->how->all)
		rv = remove_orphans(w, &f);
	free_names(f.list, KINDS);
	return rv;
}
