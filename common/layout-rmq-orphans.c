/*
 * The rmq layout: what nobody lists.  All keys are looked through; a key is
 * judged here only by its name, and again, by what the server knows at that
 * moment, in the scripts.
 */
#include <stdlib.h>
#include <string.h>

#include "rmq-clean.h"
#include "rmq-keys.h"

#define SCAN_COUNT 1000

/* What was found: keys of whom nobody knew when the search began. */
struct found {
	struct mq_names queues;	    /* those that are known; sorted */
	struct mq_names unacked;    /* connection and queue */
	struct mq_names messages;   /* queue, and the set that has them */
	struct mq_names of_queue;   /* queue, and which key of it */
	struct mq_names connection; /* connection, and which key of it */
};

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
	return mq_layout_rmq.queue_error(name) == NULL;
}

/*
 * An unacked list has two names in it, of Go programs, which take any.  It is
 * left alone when it can be read in two ways.
 */
static void
note_unacked(const struct rmq_round *w, struct found *f, char *connection)
{
	static const char mark[] = "::queue::[";
	char *at = strstr(connection, mark);

	if (at == NULL || at == connection || strstr(at + 1, mark) != NULL ||
	    at[strlen(mark)] == '\0')
		return;
	*at = '\0';
	if (!mq_names_have(&w->live, connection))
		mq_names_add(&f->unacked, connection, at + strlen(mark));
}

/* A key of ours that belongs to a queue. */
static bool
note_of_queue(struct found *f, char *key, const char *suffix)
{
	const char *queue = between(key, "rmq::queue::[", suffix);
	const char *what = suffix + strlen("]::");

	if (queue == NULL)
		return false;
	if (!is_queue_name(queue) || mq_names_have(&f->queues, queue))
		return true;
	if (strcmp(what, "delayed") == 0 || strcmp(what, "priority") == 0)
		mq_names_add(&f->messages, queue, what);
	else
		mq_names_add(&f->of_queue, queue, what);
	return true;
}

/* A key of ours that belongs to a connection, whose names we make ourselves. */
static bool
note_of_connection(
    const struct rmq_round *w, struct found *f, char *key, const char *suffix)
{
	const char *connection = between(key, "rmq::connection::", suffix);
	const char *what = suffix + strlen("::");

	if (connection == NULL)
		return false;
	if (strstr(connection, "::") == NULL &&
	    !mq_names_have(&w->live, connection) &&
	    !mq_names_have(&w->dead, connection))
		mq_names_add(&f->connection, connection, what);
	return true;
}

static void
note(const struct rmq_round *w, struct found *f, redisReply *key)
{
	static const char *const of_queue[] = {"]::delayed", "]::priority",
	    "]::counters", "]::paused", "]::locks", "]::clock", "]::rate"};
	char *connection;
	size_t i;

	if (key->type != REDIS_REPLY_STRING || strlen(key->str) != key->len)
		return;
	for (i = 0; i < sizeof(of_queue) / sizeof(of_queue[0]); i++)
		if (note_of_queue(f, key->str, of_queue[i]))
			return;
	if (note_of_connection(w, f, key->str, "::info") ||
	    note_of_connection(w, f, key->str, "::running"))
		return;
	connection = between(key->str, "rmq::connection::", "]::unacked");
	if (connection != NULL)
		note_unacked(w, f, connection);
}

/* One step of the walk through all keys; an empty cursor is its end. */
static int
scan(struct rmq_round *w, struct found *f, char *cursor, size_t size)
{
	struct mq_command *c = mq_pipe_next(&w->pipe);
	redisReply *reply;
	size_t i;
	int rv;

	mq_command_plain(c, "SCAN");
	mq_command_str(c, cursor);
	mq_command_str(c, "MATCH");
	mq_command_str(c, "rmq::*");
	mq_command_str(c, "COUNT");
	mq_command_int(c, SCAN_COUNT);
	rv = rmq_round_ask(w, REDIS_REPLY_ARRAY, &reply);
	*cursor = '\0';
	if (reply == NULL)
		return rv;
	if (reply->elements == 2 &&
	    reply->element[0]->type == REDIS_REPLY_STRING &&
	    reply->element[1]->type == REDIS_REPLY_ARRAY) {
		for (i = 0; i < reply->element[1]->elements; i++)
			note(w, f, reply->element[1]->element[i]);
		if (strcmp(reply->element[0]->str, "0") != 0)
			strlcpy(cursor, reply->element[0]->str, size);
	}
	freeReplyObject(reply);
	return rv;
}

static int
find(struct rmq_round *w, struct found *f)
{
	char cursor[32] = "0";
	int rv = rmq_known_queues(w, &f->queues);

	mq_names_sort(&f->queues);
	while (rv == 0 && *cursor != '\0')
		rv = scan(w, f, cursor, sizeof(cursor));
	/* A walk may come by a key twice. */
	mq_names_sort(&f->unacked);
	mq_names_sort(&f->messages);
	mq_names_sort(&f->of_queue);
	mq_names_sort(&f->connection);
	return rv;
}

static const char *
dry(const struct rmq_round *w)
{
	return w->how->dry_run ? "1" : "0";
}

static void
build_adopt(
    const struct rmq_round *w, const struct mq_name *name, struct mq_command *c)
{
	mq_command_script(c, &mq_script_adopt, 4);
	rmq_key_both(c, name->name, name->queue, "unacked");
	rmq_key_connection(c, name->name, "heartbeat");
	mq_command_str(c, RMQ_CONNECTIONS);
	rmq_key_connection(c, name->name, "queues");
	mq_command_str(c, name->name);
	mq_command_str(c, name->queue);
	mq_command_str(c, dry(w));
}

static void
build_orphan(
    const struct rmq_round *w, const struct mq_name *name, struct mq_command *c)
{
	bool held = strcmp(name->queue, "locks") == 0 ||
	    strcmp(name->queue, "clock") == 0;

	mq_command_script(c, &mq_script_orphan, 3);
	rmq_key_queue(c, name->name, name->queue);
	mq_command_str(c, RMQ_QUEUES);
	rmq_key_queue(c, name->name, "ready");
	mq_command_str(c, name->name);
	mq_command_str(c, held ? "held" : "queue");
	mq_command_str(c, dry(w));
}

static void
build_messages(
    const struct rmq_round *w, const struct mq_name *name, struct mq_command *c)
{
	mq_command_script(c, &mq_script_orphan, 3);
	rmq_key_queue(c, name->name, name->queue);
	mq_command_str(c, RMQ_QUEUES);
	rmq_key_queue(c, name->name, "ready");
	mq_command_str(c, name->name);
	mq_command_str(c, "messages");
	mq_command_str(c, dry(w));
}

static void
build_connection(
    const struct rmq_round *w, const struct mq_name *name, struct mq_command *c)
{
	mq_command_script(c, &mq_script_orphan, 3);
	rmq_key_connection(c, name->name, name->queue);
	mq_command_str(c, RMQ_CONNECTIONS);
	rmq_key_connection(c, name->name, "heartbeat");
	mq_command_str(c, name->name);
	mq_command_str(c, "connection");
	mq_command_str(c, dry(w));
}

/* Calls a script for each name, and adds those that it was true of to *yes. */
static int
ask_each(struct rmq_round *w, const struct mq_names *names,
    void (*build)(
	const struct rmq_round *, const struct mq_name *, struct mq_command *),
    struct mq_names *yes)
{
	const struct mq_name *name = names->list;
	size_t i, left, n;
	int rv = 0;

	for (left = names->n; left > 0 && rv == 0; left -= n, name += n) {
		n = left < MQ_PIPE_MAX ? left : MQ_PIPE_MAX;
		for (i = 0; i < n; i++)
			build(w, &name[i], mq_pipe_next(&w->pipe));
		rv = mq_pipe_run(w->r, &w->pipe);
		for (i = 0; i < n && rv == 0; i++)
			if (rmq_round_good(
				w, w->pipe.replies[i], REDIS_REPLY_INTEGER) &&
			    w->pipe.replies[i]->integer > 0)
				mq_names_add(yes, name[i].name, name[i].queue);
		mq_pipe_clear(&w->pipe);
	}
	mq_names_sort(yes);
	return rv;
}

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

static int
adopt(struct rmq_round *w, struct found *f)
{
	struct mq_names adopted = {0};
	int rv = ask_each(w, &f->unacked, build_adopt, &adopted);

	w->out->adopted += (long)adopted.n;
	if (rv == 0)
		rv = rmq_bury(w, adopted.list, adopted.n);
	leave_out(&f->connection, &adopted);
	mq_names_free(&adopted);
	return rv;
}

/* Behind adopt(), whose queues are known now, or would be. */
static int
recover_messages(struct rmq_round *w, struct found *f)
{
	struct mq_names recovered = {0};
	int rv = ask_each(w, &f->messages, build_messages, &recovered);
	size_t i;

	for (i = 0; i < recovered.n && w->how->dry_run; i++)
		mq_names_add(&w->known, recovered.list[i].name, NULL);
	mq_names_sort(&w->known);
	leave_out(&f->of_queue, &w->known);
	mq_names_free(&recovered);
	return rv;
}

static int
remove_orphans(struct rmq_round *w, const struct found *f)
{
	struct mq_names removed = {0};
	int rv = ask_each(w, &f->of_queue, build_orphan, &removed);

	if (rv == 0)
		rv = ask_each(w, &f->connection, build_connection, &removed);
	w->out->orphans += (long)removed.n;
	mq_names_free(&removed);
	return rv;
}

int
rmq_orphans(struct rmq_round *w)
{
	struct found f = {0};
	int rv = find(w, &f);

	if (rv == 0)
		rv = adopt(w, &f);
	if (rv == 0)
		rv = recover_messages(w, &f);
	if (rv == 0)
		rv = remove_orphans(w, &f);
	mq_names_free(&f.queues);
	mq_names_free(&f.unacked);
	mq_names_free(&f.messages);
	mq_names_free(&f.of_queue);
	mq_names_free(&f.connection);
	return rv;
}
