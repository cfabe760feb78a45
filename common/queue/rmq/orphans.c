/*
 * The rmq layout: what nobody lists, which queues are not idle, and whether some are
 * drained.
 *
 * A Go program that was stopped, cleaned away, and goes on works under a name
 * that is in no set.  Only a look through all keys finds what it holds.  That
 * costs the server some 0.6 s for a million keys, in steps of 0.6 ms.
 *
 * A key is judged here only by its name, and again, by what the server knows at that
 * moment, in the scripts.  On a cluster, where the sets are on other nodes than the
 * messages, no key is removed, and each name is added by a step of its own, which may be
 * repeated.  What was listed in vain, as it has gone meanwhile, is a dead connection
 * without a queue for the next round, or an empty queue.
 */
#include "rmq.h"

/* Steps of one round that does not look through all keys: some 5 ms. */
#define SCAN_STEPS 10
/* Of a cluster. */
#define ALL_QUEUES "rmq::queue::{*}::*"

/* --- keys ----------------------------------------------------------------------- */

/* Cuts the name between these out of a key, in place; *what: the rest.  NULL: the key is of
 * another form. */
static char *
cut_name(redisReply *text, const char *before, const char *behind, char **what)
{
	size_t start = strlen(before);
	char *key = text->str, *end;

	if (strlen(key) != text->len || strncmp(key, before, start) != 0)
		return NULL;
	end = strstr(key + start, behind);
	if (end == NULL)
		return NULL;
	*end = '\0';
	*what = end + strlen(behind);
	return key + start;
}

/* Cuts the names out of a key, in place; false: it is none of an unacked list, or not for
 * sure: Go programs take any names, so a key that can be read in two ways is left alone. */
static bool
unacked_names(redisReply *text, char **connection, char **queue)
{
	size_t tail = strlen("]::unacked");
	const char *mark;
	char *end;

	if (text->len < tail)
		return false;
	end = text->str + text->len - tail;
	if (strcmp(end, "]::unacked") != 0 && strcmp(end, "}::unacked") != 0)
		return false;
	mark = *end == '}' ? "::queue::{" : "::queue::[";
	*connection = cut_name(text, "rmq::connection::", mark, queue);
	if (*connection == NULL || **connection == '\0' || *queue >= end ||
	    strstr(*queue, mark) != NULL)
		return false;
	*end = '\0';
	return true;
}

/* That of a queue that these tools can use; *what: which key of it. */
static char *
queue_of(redisReply *text, bool cluster, char **what)
{
	char *queue =
	    cut_name(text, cluster ? "rmq::queue::{" : "rmq::queue::[",
		cluster ? "}::" : "]::", what);

	return queue != NULL && rmq_queue_error(queue) == NULL ? queue : NULL;
}

/* The names in keys of unacked lists, or of queues of a cluster. */
static int
note_names(void *names, const redisReply *keys)
{
	char *connection, *queue, *what;
	size_t i;

	for (i = 0; i < keys->elements; i++)
		if (unacked_names(keys->element[i], &connection, &queue))
			mq_names_add(names, connection, queue);
		else if ((queue = queue_of(keys->element[i], true, &what)) !=
		    NULL)
			mq_names_add(names, queue, NULL);
	return 0;
}

int
rmq_find_names(
    struct mq_redis *r, bool unacked, long long most, struct mq_names *names)
{
	struct mq_round round = {.r = r};
	bool cluster = mq_redis_command(r).cluster;
	struct mq_sweep sweep = {.round = &round,
	    .pattern = !unacked ? ALL_QUEUES :
		cluster		? "rmq::connection::*}::unacked" :
				  "rmq::connection::*]::unacked",
	    .type = unacked ? "list" : NULL,
	    .most = most,
	    .take = note_names,
	    .arg = names};
	int rv = mq_sweep_keys(&sweep);

	/* A walk may come by a key twice. */
	mq_names_sort(names);
	return rv;
}

bool
rmq_missed(const struct mq_redis *r, const char *question, const char *name,
    char **node)
{
	struct mq_command c = mq_redis_command(r);
	const struct mq_place_of_node *place;
	bool missed;

	rmq_ask(&c, question, name, NULL);
	missed = mq_partial_missed(r, &c) != NULL;
	place = mq_node_of(r, &c);
	if (node != NULL)
		*node = place == NULL ?
		    NULL :
		    mq_xasprintf("%s:%d", place->host, place->port);
	mq_command_free(&c);
	return missed;
}

/* --- what was found ------------------------------------------------------------- */

/* The keys that were found, whose owners are not known; first those of queues. */
enum {
	MESSAGES,   /* queue, and which key of it has them */
	HELD,	    /* queue, and connection that has them */
	OF_QUEUE,   /* queue, and which key of it */
	CONNECTION, /* connection, and which key of it */
	UNACKED,    /* connection and queue */
	KINDS
};

struct found {
	struct mq_names list[KINDS];
	struct mq_names some[CONNECTION]; /* of this step; some may be known */
};

struct place {
	const char *what;
	const char *type; /* of one that has messages; else NULL */
	int kind;
	bool busy; /* cleaning has something to do in its queue */
};

/* NULL: it is of no interest.  Outgoing messages are of clusters only. */
static const struct place *
place_of(const char *what)
{
	static const struct place places[] = {
	    {"ready", "list", MESSAGES, false},
	    {"rejected", "list", MESSAGES, false},
	    {"delayed", "zset", MESSAGES, true},
	    {"priority", "zset", MESSAGES, false},
	    {"outgoing", "hash", KINDS, false},
	    {"counters", NULL, OF_QUEUE, false},
	    {"paused", NULL, OF_QUEUE, false}, {"locks", NULL, OF_QUEUE, true},
	    {"clock", NULL, OF_QUEUE, false}, {"rate", NULL, OF_QUEUE, false}};
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strcmp(what, places[i].what) == 0)
			return &places[i];
	return NULL;
}

/* A command about each of some names, which depends on their kind. */
struct selection {
	struct rmq_cleaner *w;
	const struct mq_name *list;
	int kind;
	struct mq_names *yes;
};

static int
take_answer(void *arg, size_t i, redisReply *reply)
{
	struct selection *s = arg;

	if (mq_round_good(&s->w->round, reply, REDIS_REPLY_INTEGER) &&
	    reply->integer > 0)
		mq_names_add(s->yes, s->list[i].name, s->list[i].queue);
	return 0;
}

static int
select_by(struct rmq_cleaner *w, const struct mq_names *names, mq_ask_fn *ask,
    int kind, struct mq_names *yes)
{
	struct selection s = {w, names->list, kind, yes};

	return mq_ask_each(w->round.r, names->n, ask, take_answer, &s);
}

static int
select_names(struct rmq_cleaner *w, const struct mq_names *names,
    const char *question, struct mq_names *yes)
{
	long long *n;
	size_t i;
	int rv = rmq_cleaner_ask(w, names, question, &n);

	for (i = 0; i < names->n; i++)
		if (n[i] > 0)
			mq_names_add(
			    yes, names->list[i].name, names->list[i].queue);
	free(n);
	return rv;
}

/* --- adopting ------------------------------------------------------------------- */

#define IS_KNOWN "SISMEMBER A:" RMQ_QUEUES " %n"

/* ADOPT does all at once; on a cluster, where each set is on a node of its own, the steps
 * behind it do, one after the other. */
#define ADOPT		"$adopt B:unacked B:listed B:queues %n %q "
#define LIST_QUEUE	"!SADD C:queues %q"
#define LIST_CONNECTION "!SADD A:" RMQ_CONNECTIONS " %n"

/* Elsewhere each step looks for the heartbeat; on a cluster that of a Go program is not
 * beside its queue. */
static int
reclaim_adopted(struct rmq_cleaner *w, const struct mq_names *adopted)
{
	struct mq_names dead = {0};
	long long *live = NULL;
	size_t i;
	int rv = 0;

	if (mq_redis_command(w->round.r).cluster)
		rv = rmq_cleaner_ask(w, adopted, "EXISTS C:heartbeat", &live);
	for (i = 0; i < adopted->n; i++)
		if (live == NULL || live[i] <= 0)
			mq_names_add(&dead, adopted->list[i].name,
			    adopted->list[i].queue);
	if (rv == 0)
		rv = rmq_reclaim(w, dead.list, dead.n);
	mq_names_free(&dead);
	free(live);
	return rv;
}

/* Of these unacked lists (connection and queue), adopts and reclaims those without
 * a listed connection, and adds them to *adopted. */
static int
adopt_some(struct rmq_cleaner *w, const struct mq_names *lists,
    struct mq_names *adopted)
{
	bool cluster = mq_redis_command(w->round.r).cluster, listed;
	bool dry_run = w->how->dry_run;
	const struct mq_name *name;
	struct mq_names others = {0};
	long long *known;
	size_t i;
	int rv = rmq_cleaner_ask(w, lists, "?SISMEMBER C:queues %q", &known);

	/* Lists of live connections that have the queue are left out, which are most;
	 * on a cluster, where no script looks for that, those of all that are listed. */
	for (i = 0; i < lists->n; i++) {
		name = &lists->list[i];
		listed = mq_names_have(&w->live, name->name) ||
		    (cluster && mq_names_have(&w->dead, name->name));
		if (!listed || known[i] == 0)
			mq_names_add(&others, name->name, name->queue);
	}
	if (rv == 0)
		rv = select_names(w, &others,
		    !cluster	? (dry_run ? ADOPT "1" : ADOPT "0") :
			dry_run ? "EXISTS B:unacked" :
				  LIST_QUEUE,
		    adopted);
	if (rv == 0 && cluster && !dry_run)
		rv = select_names(w, &others, LIST_CONNECTION, adopted);
	mq_names_sort(adopted);
	w->out->adopted += (long)adopted->n;
	if (rv == 0)
		rv = reclaim_adopted(w, adopted);
	mq_names_free(&others);
	free(known);
	return rv;
}

int
rmq_adopt_all(struct rmq_cleaner *w, struct mq_names *lists)
{
	struct mq_names adopted = {0};
	int rv = rmq_find_names(w->round.r, true, 0, lists);

	if (rv == 0)
		rv = adopt_some(w, lists, &adopted);
	mq_names_free(&adopted);
	return rv;
}

/* --- on a cluster --------------------------------------------------------------- */

struct places {
	struct rmq_cleaner *w;
	struct mq_names found;	 /* queue, and which key of it has messages */
	struct mq_names unknown; /* queues */
};

static void
note_unknown(struct places *p, const char *queue)
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
	    strcmp(reply->str, place_of(at->queue)->type) == 0)
		note_unknown(p, at->name);
	return 0;
}

static int
note_places(void *arg, const redisReply *keys)
{
	struct places *p = arg;
	const struct place *place;
	char *queue, *what;
	size_t i;

	for (i = 0; i < keys->elements; i++) {
		queue = queue_of(keys->element[i], true, &what);
		if (queue == NULL)
			continue;
		place = place_of(what);
		if (place != NULL && place->type != NULL &&
		    !mq_names_have(&p->w->known, queue))
			mq_names_add(&p->found, queue, what);
		if (place != NULL && place->busy)
			mq_names_add(&p->w->busy, queue, NULL);
	}
	return 0;
}

/* Adopts all that there is, and makes known what has messages. */
static int
adopt_nodes(struct rmq_cleaner *w)
{
	struct places p = {.w = w};
	struct mq_names lists = {0}, added = {0};
	struct mq_sweep sweep = {.round = &w->round,
	    .pattern = ALL_QUEUES,
	    .take = note_places,
	    .arg = &p};
	size_t i;
	int rv = rmq_adopt_all(w, &lists);

	for (i = 0; i < lists.n; i++)
		note_unknown(&p, lists.list[i].queue);
	if (rv == 0)
		rv = mq_sweep_keys(&sweep);
	if (rv == 0)
		rv =
		    mq_ask_each(w->round.r, p.found.n, ask_type, take_type, &p);
	mq_names_sort(&p.unknown);
	if (rv == 0)
		rv = select_names(w, &p.unknown,
		    w->how->dry_run ? IS_KNOWN : "!SADD A:" RMQ_QUEUES " %n",
		    &added);
	for (i = 0; rv == 0 && i < p.unknown.n; i++)
		mq_names_add(&w->known, p.unknown.list[i].name, NULL);
	mq_names_sort(&w->known);
	w->blind = sweep.incomplete;
	mq_names_free(&added);
	mq_names_free(&p.found);
	mq_names_free(&p.unknown);
	mq_names_free(&lists);
	return rv;
}

/* --- on one server -------------------------------------------------------------- */

static void
note_key(struct rmq_cleaner *w, struct found *f, redisReply *key)
{
	const struct place *place;
	char *connection, *queue, *what;

	if (unacked_names(key, &connection, &queue)) {
		if (rmq_queue_error(queue) == NULL)
			mq_names_add(&f->some[HELD], queue, connection);
		mq_names_add(&f->list[UNACKED], connection, queue);
		return;
	}
	queue = queue_of(key, false, &what);
	place = queue != NULL ? place_of(what) : NULL;
	/* The names of our connections we make ourselves. */
	connection = queue != NULL ?
	    NULL :
	    cut_name(key, "rmq::connection::", "::", &what);
	if (connection != NULL && *connection != '\0' &&
	    (strcmp(what, "info") == 0 || strcmp(what, "running") == 0) &&
	    !mq_names_have(&w->live, connection) &&
	    !mq_names_have(&w->dead, connection)) {
		mq_names_add(&f->list[CONNECTION], connection, what);
	} else if (place != NULL && place->kind != KINDS) {
		mq_names_add(&f->some[place->kind], queue, what);
		if (w->how->all && place->busy)
			mq_names_add(&w->busy, queue, NULL);
	}
}

/* There may be a million known queues, so only those whose keys were found are asked
 * for. */
static int
keep_unknown(struct rmq_cleaner *w, struct found *f)
{
	struct mq_command c = mq_redis_command(w->round.r);
	const struct mq_name *name;
	redisReply *known;
	size_t kind, i, n = 0, at = 0;
	int rv;

	rmq_ask(&c, "SMISMEMBER A:" RMQ_QUEUES, NULL, NULL);
	for (kind = 0; kind < CONNECTION; kind++)
		for (i = 0; i < f->some[kind].n; i++, n++)
			mq_command_str(&c, f->some[kind].list[i].name);
	if (n == 0) {
		mq_command_free(&c);
		return 0;
	}
	rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &known);
	if (known == NULL || known->elements != n)
		n = 0;
	for (kind = 0; kind < CONNECTION; kind++)
		for (i = 0; at < n && i < f->some[kind].n; i++, at++) {
			name = &f->some[kind].list[i];
			if (known->element[at]->type == REDIS_REPLY_INTEGER &&
			    known->element[at]->integer == 0)
				mq_names_add(
				    &f->list[kind], name->name, name->queue);
		}
	freeReplyObject(known);
	return rv;
}

static int
scan_keys(struct rmq_cleaner *w, struct found *f, char cursor[MQ_CURSOR_SIZE])
{
	struct mq_command c = mq_redis_command(w->round.r);
	redisReply *reply, *keys;
	size_t i;
	int rv;

	mq_keys_ask(&c, cursor, "rmq::*");
	rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &reply);
	w->blind = reply == NULL;
	*cursor = '\0';
	if (reply == NULL)
		return rv;
	keys = mq_cursor_take(cursor, reply);
	for (i = 0; keys != NULL && i < keys->elements; i++)
		note_key(w, f, keys->element[i]);
	rv = keep_unknown(w, f);
	for (i = 0; i < CONNECTION; i++)
		mq_names_free(&f->some[i]);
	freeReplyObject(reply);
	return rv;
}

static void
ask_orphan(void *arg, size_t i, struct mq_command *c)
{
	const struct selection *s = arg;
	const char *owner = s->list[i].name, *key = s->list[i].queue;
	const char *as = s->kind == CONNECTION ? "connection" :
	    s->kind != OF_QUEUE		       ? "messages" :
	    strcmp(key, "locks") == 0 || strcmp(key, "clock") == 0 ? "held" :
								     "queue";

	mq_command_script(c, &rmq_script_orphan);
	if (s->kind == CONNECTION) {
		rmq_keys(c, owner, NULL,
		    strcmp(key, "info") == 0 ? "C:info listed lease" :
					       "C:running listed lease");
	} else {
		rmq_keys(c, key, owner, s->kind == HELD ? "unacked" : key);
		rmq_keys(c, NULL, owner, "known ready");
	}
	mq_command_add(c, "%s %s %d", owner, as, s->w->how->dry_run);
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

int
rmq_orphans(struct rmq_cleaner *w)
{
	struct mq_names adopted = {0}, recovered = {0}, removed = {0};
	struct found f = {0};
	char cursor[MQ_CURSOR_SIZE];
	bool all = w->how->all;
	int kind, steps, rv = 0;
	size_t i;

	if (mq_redis_command(w->round.r).cluster) {
		w->blind = !all || mq_partial_lost(w->round.r, 0) != NULL;
		return w->blind ? 0 : adopt_nodes(w);
	}
	snprintf(cursor, sizeof(cursor), "%llu", all ? 0 : w->how->scan_from);
	for (steps = 0;
	     rv == 0 && *cursor != '\0' && (all || steps < SCAN_STEPS); steps++)
		rv = scan_keys(w, &f, cursor);
	w->out->scan_at = strtoull(cursor, NULL, 10);
	/* A walk may come by a key twice. */
	for (kind = 0; kind < KINDS; kind++)
		mq_names_sort(&f.list[kind]);
	if (rv == 0)
		rv = adopt_some(w, &f.list[UNACKED], &adopted);
	leave_out(&f.list[CONNECTION], &adopted);
	/* Behind those adopted, whose queues are known now, or would be. */
	for (kind = MESSAGES; rv == 0 && kind <= HELD; kind++)
		rv = select_by(w, &f.list[kind], ask_orphan, kind, &recovered);
	for (i = 0; i < recovered.n && w->how->dry_run; i++)
		mq_names_add(&w->known, recovered.list[i].name, NULL);
	mq_names_sort(&w->known);
	leave_out(&f.list[OF_QUEUE], &w->known);
	for (kind = OF_QUEUE; rv == 0 && all && kind <= CONNECTION; kind++)
		rv = select_by(w, &f.list[kind], ask_orphan, kind, &removed);
	w->out->orphans += (long)removed.n;
	mq_names_free(&adopted);
	mq_names_free(&recovered);
	mq_names_free(&removed);
	for (kind = 0; kind < KINDS; kind++)
		mq_names_free(&f.list[kind]);
	return rv;
}

/* --- queues that are not idle ---------------------------------------------------- */

/* A Go program may have made a queue with any name. */
static void
ask_busy(void *arg, size_t i, struct mq_command *c)
{
	const char *queue = ((const struct selection *)arg)->list[i].name;

	mq_command_plain(c, "EXISTS");
	rmq_key_queue(
	    c, queue, rmq_is_scattered(c, queue) ? "locks" : "locks delayed");
}

/* A million queues may be known, and nearly all of them have no keys.  mq-clean has come
 * by the others; consumers ask the known ones, some at a time. */
int
rmq_busy_queues(struct rmq_cleaner *w, struct mq_names *queues)
{
	char cursor[MQ_CURSOR_SIZE] = "0";
	struct mq_names names;
	redisReply *some;
	int rv = 0;

	if (w->how->all && !w->blind) {
		mq_names_sort(&w->busy);
		return select_names(w, &w->busy, IS_KNOWN, queues);
	}
	while (rv == 0 && *cursor != '\0') {
		names = (struct mq_names){0};
		rv =
		    mq_round_some_members(&w->round, RMQ_QUEUES, cursor, &some);
		if (some != NULL)
			mq_rows_list(&names, some, NULL);
		if (rv == 0)
			rv = select_by(w, &names, ask_busy, 0, queues);
		mq_names_free(&names);
		freeReplyObject(some);
	}
	/* The node of the names may be lost, and not have said them. */
	if (rv == 0 && w->how->all &&
	    rmq_missed(w->round.r, "GET A:" RMQ_QUEUES, NULL, NULL))
		rv = rmq_find_names(w->round.r, false, 0, queues);
	mq_names_sort(queues);
	return rv;
}

/* --- whether there is anything left to do ---------------------------------------- */

/* Adds what could be claimed of the queues, and what connections hold of them. */
static int
count_waiting(
    struct mq_redis *r, const char *const *queues, int count, long long *sum)
{
	redisReply *all = mq_call_members(r, RMQ_CONNECTIONS);
	struct mq_command c = mq_redis_command(r);
	long long n = 0;
	size_t k;
	int i, rv = 0;

	if (all == NULL)
		return -1;
	for (i = 0; i < count && rv == 0; i++) {
		mq_command_script(&c, &rmq_script_count_claimable);
		rmq_key_queue(&c, queues[i], RMQ_PLACES);
		for (k = 0; k < all->elements; k++)
			rmq_keys(
			    &c, all->element[k]->str, queues[i], "unacked");
		rv = mq_call_number(r, &c, &n);
		*sum += n;
	}
	freeReplyObject(all);
	return rv;
}

static int
list_again(struct mq_redis *r, const struct mq_name *name, bool *found)
{
	long long of_connection = 0, of_all = 0;

	if (!mq_redis_command(r).cluster) {
		(void)rmq_call_number(
		    r, ADOPT "0", name->name, name->queue, &of_all);
	} else if (rmq_call_number(r, "SADD C:queues %q", name->name,
		       name->queue, &of_connection) == 0) {
		/* Each set is on a node of its own. */
		(void)rmq_call_number(r, "SADD A:" RMQ_CONNECTIONS " %n",
		    name->name, NULL, &of_all);
	}
	*found |= of_connection + of_all > 0;
	return mq_redis_lost(r) ? -1 : 0;
}

/*
 * All of a queue is counted in one step: when one message ends, the next one of
 * its group, which nobody could claim until then, takes its place.  Who joins
 * and claims between the two commands of a look is seen by the second look.
 */
int
rmq_drained(
    struct mq_redis *r, const char *const *queues, int count, bool *drained)
{
	struct mq_names lists = {0};
	long long left = 0;
	bool found = false;
	size_t i;
	int look, k, rv = 0;

	/* What others hold of a queue is on its own node, which has to answer. */
	mq_partial_begin(r);
	for (look = 0; look < 2 && left == 0; look++)
		if (count_waiting(r, queues, count, &left) == -1)
			return -1;
	/* Only when it seems that nothing is left: it looks through all keys. */
	if (left == 0)
		rv = rmq_find_names(r, true, 0, &lists);
	for (i = 0; i < lists.n && rv == 0; i++) {
		for (k = 0; k < count; k++)
			if (strcmp(queues[k], lists.list[i].queue) == 0)
				break;
		if (k < count)
			rv = list_again(r, &lists.list[i], &found);
	}
	mq_names_free(&lists);
	*drained = left == 0 && !found;
	return rv;
}
