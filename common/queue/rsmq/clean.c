/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rsmq layout: one round of cleaning up.
 *
 * Messages of a dead consumer can be received again without a cleaner, and claims reject those
 * that must not run again.  A cleaner rejects such messages that are not claimed, and removes
 * leftovers of crashes, and of programs that do not know the keys of these tools.
 */
#include "rsmq.h"

/* Connections removed in one step. */
#define FORGET 1000
/* Steps of walks sent at a time; each may take the server 1 or 2 ms. */
#define MANY 16

/* A round.  An error reply about one key is noted, and the round goes on; all functions
 * return -1 only when the connection is lost. */
struct cleaner {
	struct mq_round round;
	const struct mq_clean *how;
	struct mq_cleaned *out;
	const char *anywhere; /* see rsmq_name() */
	const char *prefix;   /* begins the namespace's keys */
	/* Queues of live consumers, or with own_queues, of how->self; sorted.  The names lack the
	 * namespace. */
	struct mq_names consumed;
	struct mq_names found;	  /* names of queues; sorted */
	redisReply **connections; /* all connections */
	redisReply **gone;	  /* connections without a lease */
	size_t gone_count;
	struct walk *walks[MANY]; /* walks with a step under way */
};

/* --- connections -------------------------------------------------------------- */

static void
ask_lease(void *arg, size_t i, struct mq_command *c)
{
	const struct cleaner *w = arg;

	rsmq_ask(c, "HGET lease queues", w->connections[i]->str, w->anywhere);
}

static int
parse_lease(void *arg, size_t i, redisReply *reply)
{
	struct cleaner *w = arg;
	bool skipped = w->how->own_queues &&
	    strcmp(w->connections[i]->str, w->how->self) != 0;
	json_t *list = NULL, *name;
	size_t k;

	if (reply->type == REDIS_REPLY_STRING)
		list = json_loads(reply->str, 0, NULL);
	else if (mq_round_good(&w->round, reply, REDIS_REPLY_NIL))
		w->gone[w->gone_count++] = w->connections[i];
	json_array_foreach(list, k, name)
		if (json_is_string(name) && !skipped)
			mq_names_add(
			    &w->consumed, json_string_value(name), NULL);
	json_decref(list);
	return 0;
}

static int
clean_connections(struct cleaner *w)
{
	redisReply *all = rsmq_connections(w->round.r, w->anywhere);
	struct mq_command c = {0};
	size_t i = 0, end;
	int rv;

	if (all == NULL)
		return -1;
	w->connections = all->element;
	w->gone = mq_xcalloc(all->elements + 1, sizeof(*w->gone));
	rv = mq_ask_each(w->round.r, all->elements, ask_lease, parse_lease, w);
	mq_names_sort(&w->consumed);
	if (rv == 0 && w->how->dry_run)
		w->out->connections += (long)w->gone_count;
	/* Names are never used again, so a dead connection stays dead. */
	while (rv == 0 && !w->how->dry_run && i < w->gone_count) {
		rsmq_ask(&c, "ZREM connections", NULL, w->anywhere);
		for (end = i + FORGET; i < end && i < w->gone_count; i++)
			mq_command_arg(&c, w->gone[i]->str, w->gone[i]->len);
		rv = mq_round_add(&w->round, &c, &w->out->connections);
	}
	free(w->gone);
	freeReplyObject(all);
	return rv;
}

/* Removes the dead from the holders of queues. */
static int
clean_holders(struct cleaner *w, const struct mq_names *queues)
{
	struct mq_command c = {0};
	long done = 0;
	size_t i;
	char *queue;
	int rv = 0;

	for (i = 0; i < queues->n && rv == 0 && !w->how->dry_run; i++) {
		queue = rsmq_name(w->round.r, rsmq_bare(queues->list[i].name));
		rsmq_start(&c, &rsmq_script_forget_dead, NULL, queue);
		free(queue);
		rv = mq_round_add(&w->round, &c, &done);
	}
	return rv;
}

/* --- queues that are not listed, and names without a queue ------------------------ */

/* Adds the queues of keys, which are cut off behind the queues' names.  A queue is judged here
 * by the names of its keys only; lua/enlist.lua looks at the keys. */
static void
note_queues(struct cleaner *w, const redisReply *keys)
{
	static const char *const what[] = {
	    "Q", "X", "Xagain", "Xpaused", "Xcounters", "Xrate", "Xlater"};
	size_t i, k, n = strlen(w->prefix);
	char *key, *colon, *queue;

	for (i = 0; i < keys->elements; i++) {
		key = keys->element[i]->str + n;
		colon = keys->element[i]->len < n ? NULL : strchr(key, ':');
		if (colon == NULL)
			continue;
		*colon = '\0';
		for (k = 0; k < sizeof(what) / sizeof(what[0]); k++) {
			if (strcmp(colon + 1, what[k]) != 0 ||
			    rsmq_queue_error(key) != NULL)
				continue;
			queue = rsmq_name(w->round.r, key);
			mq_names_add(&w->found, queue, NULL);
			free(queue);
		}
	}
}

static void
ask_enlist(void *arg, size_t i, struct mq_command *c)
{
	const struct cleaner *w = arg;
	const char *queue = w->found.list[i].name;

	rsmq_start(c, &rsmq_script_enlist, NULL, queue);
	MQ_COMMAND_ARGV(c, rsmq_enlist_argv, .name = mq_str(rsmq_bare(queue)),
	    .dry = mq_int(w->how->dry_run));
}

static int
count_enlisted(void *arg, size_t i, redisReply *reply)
{
	struct cleaner *w = arg;

	(void)i;
	if (!mq_round_good(&w->round, reply, REDIS_REPLY_ARRAY) ||
	    !mq_reply_is(reply, "##"))
		return 0;
	w->out->adopted += (long)reply->element[0]->integer;
	w->out->orphans += (long)reply->element[1]->integer;
	return 0;
}

static int
list_unlisted(struct cleaner *w)
{
	struct mq_redis *r = w->round.r;
	char cursor[MQ_CURSOR_SIZE] = "0";
	struct mq_buf pattern = {0};
	struct mq_command c = {0};
	redisReply *reply, *keys;
	const char *p;
	int rv = rsmq_add_listed(r, &w->found);

	w->prefix = *w->anywhere != '\0' ? w->anywhere : RSMQ_NAMESPACE ":";
	for (p = w->prefix; *p != '\0'; p++) {
		if (strchr("*?[]\\^", *p) != NULL)
			mq_buf_add(&pattern, "\\", 1);
		mq_buf_add(&pattern, p, 1);
	}
	mq_buf_add(&pattern, "*", 1);
	/* On a cluster, one node has all keys of the namespace. */
	while (rv == 0 && *cursor != '\0') {
		mq_keys_ask(&c, cursor, mq_buf_str(&pattern));
		reply = mq_call(r, &c, -1);
		keys = reply != NULL ? mq_cursor_take(cursor, reply) : NULL;
		if (reply == NULL)
			rv = -1;
		else if (keys != NULL)
			note_queues(w, keys);
		freeReplyObject(reply);
	}
	mq_buf_free(&pattern);
	mq_names_sort(&w->found);
	if (rv == 0)
		rv = mq_ask_each(r, w->found.n, ask_enlist, count_enlisted, w);
	mq_names_free(&w->found);
	return rv;
}

/* --- walks through the keys of all queues ----------------------------------------- */

/* A walk through the messages of a queue, or through one of its hashes. */
struct walk {
	const char
	    *kind; /* the hash, as lua/orphans.lua has it; NULL: messages */
	const char *queue;
	struct mq_buf at, id;	  /* score and id, or a cursor and "" */
	struct mq_counts counted; /* messages that were rejected */
	bool over;
};

static void
ask_step(void *arg, size_t i, struct mq_command *c)
{
	const struct cleaner *w = arg;
	struct walk *k = w->walks[i];
	char *rejected;

	if (k->kind != NULL) {
		rsmq_start(c, &rsmq_script_orphans, NULL, k->queue);
		MQ_COMMAND_ARGV(c, rsmq_orphans_argv, .which = mq_str(k->kind),
		    .cursor = mq_str(k->at.len > 0 ? mq_buf_str(&k->at) : "0"),
		    .dry = mq_int(w->how->dry_run));
		return;
	}
	rejected = mq_xasprintf("%s" RSMQ_REJECTED, k->queue);
	rsmq_start(c, &rsmq_script_sweep, NULL, k->queue);
	rsmq_keys(c, NULL, rejected, mq_command_keys(c));
	MQ_COMMAND_ARGV(c, rsmq_sweep_argv,
	    .score = mq_bytes(k->at.data, k->at.len),
	    .id = mq_bytes(k->id.data, k->id.len),
	    .looks = mq_int(RSMQ_LOOKS / 2), .attempts = mq_int(w->how->limit),
	    .consumed =
		mq_int(mq_names_have(&w->consumed, rsmq_bare(k->queue))),
	    .dry = mq_int(w->how->dry_run),
	    .to_name = mq_str(rsmq_bare(rejected)));
	free(rejected);
}

/* A malformed reply ends its walk. */
static int
end_step(void *arg, size_t i, redisReply *reply)
{
	struct cleaner *w = arg;
	struct walk *k = w->walks[i];
	redisReply **e = reply->element;

	k->over = true;
	if (!mq_round_good(&w->round, reply, REDIS_REPLY_ARRAY) ||
	    !mq_reply_is(reply, k->kind == NULL ? "$$####" : "$##"))
		return 0;
	mq_buf_set(&k->at, e[0]->str, e[0]->len);
	if (k->kind != NULL) {
		k->over = strcmp(e[0]->str, "0") == 0;
		w->out->orphans += (long)e[1]->integer;
		w->out->adopted += (long)e[2]->integer;
		return 0;
	}
	mq_buf_set(&k->id, e[1]->str, e[1]->len);
	k->over = e[2]->integer == 0;
	w->out->orphans += (long)e[3]->integer;
	k->counted.expired += (long)e[4]->integer;
	k->counted.crashed += (long)e[5]->integer;
	return 0;
}

/* Errors are ignored unless the connection is lost. */
static int
count_rejected(struct cleaner *w, struct walk *k)
{
	struct mq_counts *n = &k->counted;
	struct mq_command c = {0};

	w->out->expired += n->expired;
	w->out->rejected += n->crashed;
	n->failed = n->expired + n->crashed;
	n->runs = n->crashed;
	if (n->failed == 0 || w->how->dry_run)
		return 0;
	mq_extra_count(&rsmq_extra_keys, &c, k->queue, n);
	(void)mq_call_done(w->round.r, &c);
	return mq_redis_lost(w->round.r) ? -1 : 0;
}

/* Walks through one kind of key of up to MANY queues side by side. */
static int
walk_queues(
    struct cleaner *w, const struct mq_name *names, size_t n, const char *kind)
{
	struct walk walks[MANY] = {0}, *k;
	size_t i, left;
	int rv;

	for (i = 0; i < n; i++) {
		walks[i].kind = kind;
		walks[i].queue = names[i].name;
	}
	do {
		left = 0;
		for (k = walks; k < walks + n; k++)
			if (!k->over)
				w->walks[left++] = k;
		rv = mq_ask_each(w->round.r, left, ask_step, end_step, w);
	} while (rv == 0 && left > 0);
	for (k = walks; k < walks + n; k++) {
		if (rv == 0)
			rv = count_rejected(w, k);
		mq_buf_free(&k->at);
		mq_buf_free(&k->id);
	}
	return rv;
}

/* --- a round ---------------------------------------------------------------------- */

int
rsmq_clean(
    struct mq_redis *r, const struct mq_clean *how, struct mq_cleaned *out)
{
	/* The hash h before x and d: a body that becomes a message keeps its fields there. */
	static const char *const kinds[] = {"h", "x", "d", NULL};
	char *anywhere = rsmq_name(r, "");
	struct mq_names names = {0};
	struct cleaner w = {
	    .round.r = r, .how = how, .out = out, .anywhere = anywhere};
	size_t i, k, n;
	int rv;

	*out = (struct mq_cleaned){.next_ms = -1};
	rv = clean_connections(&w);
	if (rv == 0 && how->all)
		rv = list_unlisted(&w) == 0 ? rsmq_add_listed(r, &names) : -1;
	mq_names_sort(&names);
	/* Consumers have no right to read the names of all queues. */
	if (rv == 0 && (how->all || w.gone_count > 0))
		rv = clean_holders(&w, how->all ? &names : &w.consumed);
	for (i = 0; i < names.n; i += n) {
		n = names.n - i < MANY ? names.n - i : MANY;
		for (k = 0; k < 4 && rv == 0; k++)
			rv = walk_queues(&w, names.list + i, n, kinds[k]);
	}
	mq_names_free(&names);
	if (rv == 0)
		rv = mq_round_end(&w.round);
	out->refused = w.round.refused;
	mq_names_free(&w.consumed);
	free(anywhere);
	return rv;
}
