/*
 * The rsmq layout: one round of cleaning up.
 *
 * What a dead consumer had is everybody's again without a cleaner, and who claims
 * it sees when it must not run again.  What is left to do is to reject what
 * nobody claims, and to remove what crashes, and programs that do not know of our
 * keys, leave behind.
 */
#include "rsmq.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "message/headers.h"
#include "message/history.h"

/* How many connections are forgotten in one step. */
#define FORGET 1000
/* How many messages are rejected in one step. */
#define REJECT 50
/* How many steps of walks are sent at a time: the server takes them one by one, and each
 * may take it a millisecond or two. */
#define MANY 16

/* An error reply about one key must not keep a round from the others.  All functions
 * return -1 only when the connection is lost. */
struct cleaner {
	struct mq_round round;
	const struct mq_clean *how;
	struct mq_cleaned *out;
	const char *anywhere; /* see rsmq_anywhere() */
	struct mq_names
	    consumed; /* queues that consumers of ours have; sorted */
	int64_t now_ms;
};

/* --- connections -------------------------------------------------------------- */

static void
add_consumed(struct cleaner *w, const char *text)
{
	json_t *list = json_loads(text, 0, NULL);
	size_t i, n = json_array_size(list);

	for (i = 0; i < n; i++)
		if (json_is_string(json_array_get(list, i)))
			mq_names_add(&w->consumed,
			    json_string_value(json_array_get(list, i)), NULL);
	json_decref(list);
}

struct leases {
	struct cleaner *w;
	redisReply **names;
	size_t *gone, n; /* the indices of those that have none */
};

static void
ask_lease(void *arg, size_t i, struct mq_command *c)
{
	const struct leases *l = arg;

	mq_command_plain(c, "HGET");
	rsmq_key_lease(c, l->names[i]->str, l->w->anywhere);
	mq_command_str(c, "queues");
}

static int
take_lease(void *arg, size_t i, redisReply *reply)
{
	struct leases *l = arg;

	if (reply->type == REDIS_REPLY_STRING)
		add_consumed(l->w, reply->str);
	else if (mq_round_good(&l->w->round, reply, REDIS_REPLY_NIL))
		l->gone[l->n++] = i;
	return 0;
}

/* Names are never used again, so one that is dead stays so. */
static int
forget_some(struct leases *l, size_t from, size_t n)
{
	struct mq_command c = {0};
	redisReply *name;
	size_t i;

	mq_command_plain(&c, "ZREM");
	rsmq_key_common(&c, l->w->anywhere, "::connections");
	for (i = from; i < from + n; i++) {
		name = l->names[l->gone[i]];
		mq_command_arg(&c, name->str, name->len);
	}
	return mq_round_add(&l->w->round, &c, &l->w->out->connections);
}

static int
forget_dead(struct leases *l)
{
	size_t i, n;
	int rv = 0;

	if (l->w->how->dry_run)
		l->w->out->connections += (long)l->n;
	else
		for (i = 0; i < l->n && rv == 0; i += n) {
			n = l->n - i < FORGET ? l->n - i : FORGET;
			rv = forget_some(l, i, n);
		}
	return rv;
}

static int
clean_connections(struct cleaner *w)
{
	redisReply *all = rsmq_connections(w->round.r, w->anywhere);
	struct leases l = {.w = w};
	int rv;

	if (all == NULL)
		return -1;
	l.names = all->element;
	l.gone = mq_xcalloc(all->elements + 1, sizeof(*l.gone));
	rv = mq_ask_each(w->round.r, all->elements, ask_lease, take_lease, &l);
	if (rv == 0)
		rv = forget_dead(&l);
	free(l.gone);
	freeReplyObject(all);
	mq_names_sort(&w->consumed);
	return rv;
}

/* --- queues that nobody lists ---------------------------------------------------- */

/*
 * And names of queues that are not there.  All keys are looked through; a key is judged
 * here only by its name, and again, by what the server knows at that moment, in the script.
 */

/* Whether a key behind the namespace and a colon is of a queue; cuts off what
 * is behind its name. */
static bool
is_of_queue(char *key)
{
	static const char *const what[] = {
	    "Q", "X", "Xagain", "Xpaused", "Xcounters", "Xrate", "Xlater"};
	char *colon = strchr(key, ':');
	size_t i;

	if (colon == NULL)
		return false;
	*colon = '\0';
	for (i = 0; i < sizeof(what) / sizeof(what[0]); i++)
		if (strcmp(colon + 1, what[i]) == 0)
			return rsmq_queue_error(key) == NULL;
	return false;
}

/* NAMESPACE:, and any key that begins so. */
static void
add_pattern(struct mq_buf *pattern, const char *prefix)
{
	for (; *prefix != '\0'; prefix++) {
		if (strchr("*?[]\\^", *prefix) != NULL)
			mq_buf_add(pattern, "\\", 1);
		mq_buf_add(pattern, prefix, 1);
	}
	mq_buf_add(pattern, "*", 1);
}

static void
note_queues(const redisReply *keys, const char *prefix, struct mq_names *found)
{
	size_t i, n = strlen(prefix);

	for (i = 0; i < keys->elements; i++)
		if (keys->element[i]->len >= n &&
		    is_of_queue(keys->element[i]->str + n))
			mq_names_add(found, keys->element[i]->str + n, NULL);
}

/* Walks through all keys. */
static int
scan_keys(struct mq_redis *r, const char *prefix, struct mq_names *found)
{
	char cursor[MQ_CURSOR_SIZE] = "0";
	struct mq_buf pattern = {0};
	struct mq_command c = {0};
	redisReply *reply = NULL, *keys;

	add_pattern(&pattern, prefix);
	while (*cursor != '\0') {
		mq_keys_ask(&c, cursor, mq_buf_str(&pattern));
		reply = mq_redis_call(r, &c);
		if (reply == NULL)
			break;
		keys = mq_cursor_take(cursor, reply);
		if (keys != NULL)
			note_queues(keys, prefix, found);
		freeReplyObject(reply);
	}
	mq_command_free(&c);
	mq_buf_free(&pattern);
	return reply == NULL ? -1 : 0;
}

static int
find_queues(struct mq_redis *r, struct mq_names *found)
{
	const char *ns = r->server->url.ns;
	char *prefix = mq_xasprintf("%s:", ns != NULL ? ns : RSMQ_NAMESPACE);
	int rv = rsmq_add_listed(r, found);

	if (rv == 0)
		rv = scan_keys(r, prefix, found);
	mq_names_sort(found);
	free(prefix);
	return rv;
}

struct enlist {
	struct cleaner *w;
	struct mq_names found;
};

static void
ask_enlist(void *arg, size_t i, struct mq_command *c)
{
	const struct enlist *l = arg;
	const char *name = l->found.list[i].name;
	char *queue = rsmq_name(l->w->round.r, name);

	mq_command_script(c, &rsmq_script_enlist);
	rsmq_key_common(c, queue, ":QUEUES");
	rsmq_queue_keys(c, queue);
	rsmq_key(c, queue, ":Xpaused :Xcounters :Xrate :Xlater");
	mq_command_str(c, name);
	mq_command_int(c, l->w->how->dry_run);
	free(queue);
}

static int
take_enlisted(void *arg, size_t i, redisReply *reply)
{
	struct cleaner *w = ((struct enlist *)arg)->w;

	(void)i;
	if (!mq_round_good(&w->round, reply, REDIS_REPLY_ARRAY) ||
	    !rsmq_is(reply, "##"))
		return 0;
	w->out->adopted += (long)reply->element[0]->integer;
	w->out->orphans += (long)reply->element[1]->integer;
	return 0;
}

static int
list_unlisted(struct cleaner *w)
{
	struct enlist l = {.w = w};
	int rv = find_queues(w->round.r, &l.found);

	if (rv == 0)
		rv = mq_ask_each(
		    w->round.r, l.found.n, ask_enlist, take_enlisted, &l);
	mq_names_free(&l.found);
	return rv;
}

/* --- messages that no consumer has survived, or that are too late to be run ------ */

/* Why it is rejected becomes one of its headers; *late: it was too late. */
static void
reject_header(struct cleaner *w, redisReply *const *message,
    struct mq_buf *extra, bool *late)
{
	static const char start[] = "\xff\x00\xbe\xbeJ{";
	const redisReply *id = message[0], *more = message[2];
	struct mq_buf header = {0};
	struct mq_envelope e = {0};
	char reason[64];
	const char *why;

	mq_buf_add(&header, start, sizeof(start) - 1);
	mq_buf_add(&header, more->str, more->len);
	mq_buf_addstr(&header, "}\n");
	/* Bad headers are not kept: the message must stop all the same. */
	if (mq_envelope_parse(header.data, header.len, &e, &why) == -1)
		e = (struct mq_envelope){0};
	mq_envelope_set(&e, MQ_HEADER_ID, id->str);
	*late = mq_message_over(&e, w->now_ms, 0, reason, sizeof(reason));
	if (*late)
		mq_envelope_set(&e, MQ_HEADER_ERROR, reason);
	else
		mq_history_crash(&e, (long)message[1]->integer, true, NULL);
	rsmq_extra(&e, extra);
	mq_envelope_free(&e);
	mq_buf_free(&header);
}

/* Adds up the rejections; in a dry run, those that there would be. */
static void
add_counts(struct cleaner *w, bool late, struct mq_counts *n)
{
	*(late ? &w->out->expired : &w->out->rejected) += 1;
	n->failed++;
	n->expired += late;
	n->crashed += !late;
	n->runs += !late;
}

/* A count that is missing is no reason to fail. */
static int
send_counts(struct cleaner *w, const char *queue, const struct mq_counts *n)
{
	struct mq_command c = {0};

	if (n->failed == 0 || w->how->dry_run)
		return 0;
	mq_side_count(&rsmq_side, &c, queue, n);
	(void)mq_call_done(w->round.r, &c);
	return mq_redis_lost(w->round.r) ? -1 : 0;
}

static void
build_reject(struct cleaner *w, const char *queue, redisReply *const *messages,
    size_t n, bool *late, struct mq_command *c)
{
	char *rejected = mq_xasprintf("%s" RSMQ_REJECTED, queue);
	struct mq_buf extra = {0};
	size_t i;

	mq_command_script(c, &rsmq_script_reject);
	rsmq_queue_keys(c, queue);
	rsmq_queue_keys(c, rejected);
	rsmq_key_common(c, queue, ":QUEUES");
	mq_command_str(c, rsmq_bare(rejected));
	for (i = 0; i < n; i++) {
		reject_header(w, messages + 3 * i, &extra, &late[i]);
		mq_command_arg(c, messages[3 * i]->str, messages[3 * i]->len);
		mq_command_int(c, messages[3 * i + 1]->integer);
		mq_command_arg(c, extra.data, extra.len);
	}
	mq_buf_free(&extra);
	free(rejected);
}

static int
reject_some(struct cleaner *w, const char *queue, redisReply *const *messages,
    size_t n, struct mq_counts *sum)
{
	struct mq_command c = {0};
	redisReply *reply = NULL;
	bool late[REJECT];
	size_t i;
	int rv = 0;

	build_reject(w, queue, messages, n, late, &c);
	if (w->how->dry_run)
		mq_command_free(&c);
	else
		rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &reply);
	if (!w->how->dry_run && (reply == NULL || reply->elements != n))
		n = 0;
	for (i = 0; i < n; i++)
		if (reply == NULL || reply->element[i]->integer == 1)
			add_counts(w, late[i], sum);
	freeReplyObject(reply);
	return rv;
}

/* Rejects messages of a queue: of each its id, how often it was received, and its further
 * headers, as lua/sweep.lua has them. */
static int
reject_messages(struct cleaner *w, const char *queue,
    redisReply *const *messages, size_t total)
{
	struct mq_counts sum = {0};
	size_t i, n;
	int rv = 0;

	for (i = 0; i < total && rv == 0; i += n) {
		n = total - i < REJECT ? total - i : REJECT;
		rv = reject_some(w, queue, messages + 3 * i, n, &sum);
	}
	return rv == 0 ? send_counts(w, queue, &sum) : rv;
}

/* --- a way through the messages of all queues, and what belongs to them ---------- */

/* One walk: through the messages, or one of the keys that belong to them. */
struct walk {
	const char *kind; /* of lua/orphans.lua; NULL: the messages */
	char *queue;
	struct mq_buf at, id; /* score and id, or a cursor and nothing */
	bool over;
};

static void
build_step(
    struct cleaner *w, struct walk *k, const char *bare, struct mq_command *c)
{
	if (k->kind != NULL) {
		mq_command_script(c, &rsmq_script_orphans);
		rsmq_queue_keys(c, k->queue);
		mq_command_str(c, k->kind);
		mq_command_str(c, k->at.len > 0 ? mq_buf_str(&k->at) : "0");
		mq_command_int(c, w->how->dry_run);
		return;
	}
	mq_command_script(c, &rsmq_script_sweep);
	rsmq_queue_keys(c, k->queue);
	rsmq_key(c, k->queue, ":Xcounters :Xlater");
	mq_command_arg(c, k->at.data, k->at.len);
	mq_command_arg(c, k->id.data, k->id.len);
	mq_command_int(c, RSMQ_LOOKS / 2);
	mq_command_int(c, w->how->limit);
	mq_command_int(c, mq_names_have(&w->consumed, bare));
	mq_command_int(c, w->how->dry_run);
}

static int
take_messages(struct cleaner *w, struct walk *k, redisReply *reply)
{
	redisReply **e = reply->element;
	size_t i;

	/* The numbers in it are integers. */
	if (reply->elements < 4 || (reply->elements - 4) % 3 != 0)
		return 0;
	for (i = 0; i < reply->elements; i++)
		if (e[i]->type !=
		    (i == 2 || i == 3 || (i > 4 && (i - 4) % 3 == 1) ?
			    REDIS_REPLY_INTEGER :
			    REDIS_REPLY_STRING))
			return 0;
	mq_buf_set(&k->at, e[0]->str, e[0]->len);
	mq_buf_set(&k->id, e[1]->str, e[1]->len);
	k->over = e[2]->integer == 0;
	w->out->orphans += (long)e[3]->integer;
	return reject_messages(w, k->queue, e + 4, (reply->elements - 4) / 3);
}

static void
take_orphans(struct cleaner *w, struct walk *k, redisReply *reply)
{
	redisReply **e = reply->element;

	if (!rsmq_is(reply, "$##"))
		return;
	mq_buf_set(&k->at, e[0]->str, e[0]->len);
	k->over = strcmp(e[0]->str, "0") == 0;
	w->out->orphans += (long)e[1]->integer;
	w->out->adopted += (long)e[2]->integer;
}

/* A reply that makes no sense ends its walk. */
static int
take_reply(struct cleaner *w, struct walk *k, redisReply *reply)
{
	k->over = true;
	if (!mq_round_good(&w->round, reply, REDIS_REPLY_ARRAY))
		return 0;
	if (k->kind == NULL)
		return take_messages(w, k, reply);
	take_orphans(w, k, reply);
	return 0;
}

struct step {
	struct cleaner *w;
	struct walk *walks[MANY]; /* those that are not over */
	const char *names[MANY];
	redisReply *replies[MANY];
	size_t n;
};

static void
ask_step(void *arg, size_t i, struct mq_command *c)
{
	const struct step *s = arg;

	build_step(s->w, s->walks[i], s->names[i], c);
}

/* Replies wait until all are there: some ask for more commands. */
static int
keep_reply(void *arg, size_t i, redisReply *reply)
{
	((struct step *)arg)->replies[i] = reply;
	return MQ_KEEP;
}

/* One more step for those of n walks that are not over; *more: whether any was
 * not. */
static int
step_walks(struct cleaner *w, struct walk *walks, const struct mq_name *names,
    size_t n, bool *more)
{
	struct step s = {.w = w};
	size_t i;
	int rv;

	for (i = 0; i < n; i++)
		if (!walks[i].over) {
			s.walks[s.n] = &walks[i];
			s.names[s.n++] = names[i].name;
		}
	*more = s.n > 0;
	rv = mq_ask_each(w->round.r, s.n, ask_step, keep_reply, &s);
	for (i = 0; i < s.n; i++) {
		if (rv == 0)
			rv = take_reply(w, s.walks[i], s.replies[i]);
		if (s.replies[i] != NULL)
			freeReplyObject(s.replies[i]);
	}
	return rv;
}

static int
walk_queues(
    struct cleaner *w, const struct mq_name *names, size_t n, const char *kind)
{
	struct walk walks[MANY] = {0};
	bool more = true;
	size_t i;
	int rv = 0;

	for (i = 0; i < n; i++) {
		walks[i].kind = kind;
		walks[i].queue = rsmq_name(w->round.r, names[i].name);
	}
	while (rv == 0 && more)
		rv = step_walks(w, walks, names, n, &more);
	for (i = 0; i < n; i++) {
		free(walks[i].queue);
		mq_buf_free(&walks[i].at);
		mq_buf_free(&walks[i].id);
	}
	return rv;
}

/* The hash before the others: what becomes a message again keeps its own. */
static int
sweep_queues(struct cleaner *w, const struct mq_name *queues, size_t total)
{
	static const char *const kinds[] = {"h", "x", "d", NULL};
	size_t i, k, n;
	int rv = 0;

	for (i = 0; i < total && rv == 0; i += n) {
		n = total - i < MANY ? total - i : MANY;
		for (k = 0; k < 4 && rv == 0; k++)
			rv = walk_queues(w, queues + i, n, kinds[k]);
	}
	return rv;
}

/* --- a round ---------------------------------------------------------------------- */

int
rsmq_clean(
    struct mq_redis *r, const struct mq_clean *how, struct mq_cleaned *out)
{
	char *anywhere = rsmq_anywhere(r);
	struct mq_names names = {0};
	struct cleaner w = {
	    .round.r = r, .how = how, .out = out, .anywhere = anywhere};
	int rv;

	*out = (struct mq_cleaned){.next_ms = -1};
	rv = mq_server_time(r, &w.now_ms);
	if (rv == 0)
		rv = clean_connections(&w);
	if (rv == 0 && how->all)
		rv = list_unlisted(&w);
	if (rv == 0 && how->all)
		rv = rsmq_add_listed(r, &names);
	mq_names_sort(&names);
	if (rv == 0)
		rv = sweep_queues(&w, names.list, names.n);
	mq_names_free(&names);
	if (rv == 0)
		rv = mq_round_end(&w.round);
	out->refused = w.round.refused;
	mq_names_free(&w.consumed);
	free(anywhere);
	return rv;
}
