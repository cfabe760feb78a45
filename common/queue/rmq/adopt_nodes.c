/*
 * The rmq layout on a cluster: what has messages and is in no set is listed again.  The
 * sets are on other nodes than the messages, so each name is added by a step of its own,
 * which may be repeated.  What was listed in vain, as it has gone meanwhile, is a dead
 * connection without a queue for the next round, or an empty queue.
 */
#include <string.h>

#include "queue/scripts.h"
#include "redis/ask.h"
#include "rmq.h"

/* The type of the keys of this kind that have messages; empty: none of them has. */
static const char *
type_of(const char *what)
{
	static const char *const places[][2] = {{"ready", "list"},
	    {"rejected", "list"}, {"delayed", "zset"}, {"priority", "zset"},
	    {"outgoing", "hash"}};
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strcmp(what, places[i][0]) == 0)
			return places[i][1];
	return "";
}

struct places {
	struct rmq_cleaner *w;
	struct mq_names found;	 /* queue, and which key of it has messages */
	struct mq_names unknown; /* queues */
};

static void
note_queue(struct places *p, const char *queue)
{
	if (rmq_queue_error(queue) == NULL &&
	    !mq_names_have(&p->w->known, queue))
		mq_names_add(&p->unknown, queue, NULL);
}

static void
ask_type(void *arg, size_t i, struct mq_command *c)
{
	const struct places *p = arg;

	mq_command_plain(c, "TYPE");
	rmq_key_queue(c, p->found.list[i].name, p->found.list[i].queue);
}

/* What only has such a name is none of ours. */
static int
take_type(void *arg, size_t i, redisReply *reply)
{
	struct places *p = arg;
	const struct mq_name *at = &p->found.list[i];

	if (reply->type == REDIS_REPLY_STATUS &&
	    strcmp(reply->str, type_of(at->queue)) == 0)
		note_queue(p, at->name);
	return 0;
}

/* what: the kind of the key. */
static void
note_key(struct places *p, const char *queue, const char *what)
{
	if (*type_of(what) != '\0' && !mq_names_have(&p->w->known, queue))
		mq_names_add(&p->found, queue, what);
	if (strcmp(what, "locks") == 0 || strcmp(what, "delayed") == 0)
		mq_names_add(&p->w->busy, queue, NULL);
}

static int
note_keys(void *arg, const redisReply *keys)
{
	static const char before[] = "rmq::queue::{";
	char *key, *end;
	size_t i;

	for (i = 0; i < keys->elements; i++) {
		key = keys->element[i]->str;
		end = strstr(key, "}::");
		if (strlen(key) != keys->element[i]->len || end == NULL)
			continue;
		*end = '\0';
		if (rmq_queue_error(key + sizeof(before) - 1) == NULL)
			note_key(arg, key + sizeof(before) - 1, end + 3);
	}
	return 0;
}

static void
build_known(const struct rmq_cleaner *w, const struct mq_name *name,
    struct mq_command *c)
{
	if (w->how->dry_run)
		mq_command_plain(c, "SISMEMBER");
	else
		mq_command_script(c, &mq_script_write_when_full);
	rmq_key_all(c, RMQ_QUEUES);
	if (!w->how->dry_run)
		mq_command_str(c, "SADD");
	mq_command_str(c, name->name);
}

/* All that there are, whoever has them. */
static int
make_known(struct rmq_cleaner *w, struct places *p)
{
	struct mq_names added = {0};
	size_t i;
	int rv;

	mq_names_sort(&p->unknown);
	rv = rmq_cleaner_select(w, &p->unknown, build_known, &added);
	for (i = 0; i < p->unknown.n; i++)
		mq_names_add(&w->known, p->unknown.list[i].name, NULL);
	mq_names_sort(&w->known);
	mq_names_free(&added);
	return rv;
}

int
rmq_adopt_nodes(struct rmq_cleaner *w)
{
	struct places p = {.w = w};
	struct mq_names lists = {0}, adopted = {0};
	struct mq_sweep sweep = {.round = &w->round,
	    .pattern = "rmq::queue::{*}::*",
	    .take = note_keys,
	    .arg = &p};
	size_t i;
	int rv = rmq_unacked_lists(w->round.r, 0, &lists);

	if (rv == 0)
		rv = rmq_adopt_some(w, &lists, &adopted);
	for (i = 0; i < lists.n; i++)
		note_queue(&p, lists.list[i].queue);
	if (rv == 0)
		rv = mq_sweep_keys(&sweep);
	if (rv == 0)
		rv =
		    mq_ask_each(w->round.r, p.found.n, ask_type, take_type, &p);
	if (rv == 0)
		rv = make_known(w, &p);
	w->blind = sweep.part;
	mq_names_free(&p.found);
	mq_names_free(&p.unknown);
	mq_names_free(&lists);
	mq_names_free(&adopted);
	return rv;
}
