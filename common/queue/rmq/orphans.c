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

/* --- what is found -------------------------------------------------------------- */

#define OF_QUEUE(key, how)                                                     \
	"$orphan Q:" key " A:" RMQ_QUEUES " Q:ready %n " how " %q"
#define OF_CONNECTION(key)                                                     \
	"$orphan C:" key " A:" RMQ_CONNECTIONS " C:heartbeat %n connection %q"

/* Keys of queues and connections (C) that may be found although nobody lists these. */
static const struct place {
	const char *what, *question;
	char of;
	/* Of a key that holds messages, what its type begins with; else the question
	 * removes the key. */
	char type;
	bool busy; /* cleaning has something to do in its queue */
} places[] = {{"ready", "TYPE Q:ready", 'Q', 'l', false},
    {"rejected", "TYPE Q:rejected", 'Q', 'l', false},
    {"delayed", "TYPE Q:delayed", 'Q', 'z', true},
    {"priority", "TYPE Q:priority", 'Q', 'z', false},
    {"outgoing", "TYPE Q:outgoing", 'Q', 'h', false},
    {"counters", OF_QUEUE("counters", "queue"), 'Q', '\0', false},
    {"paused", OF_QUEUE("paused", "queue"), 'Q', '\0', false},
    {"locks", OF_QUEUE("locks", "held"), 'Q', '\0', true},
    {"clock", OF_QUEUE("clock", "held"), 'Q', '\0', false},
    {"rate", OF_QUEUE("rate", "queue"), 'Q', '\0', false},
    {"info", OF_CONNECTION("info"), 'C', '\0', false},
    {"running", OF_CONNECTION("running"), 'C', '\0', false}};
#define PLACES (sizeof(places) / sizeof(places[0]))

/* In lists of owners, each has "1" in a dry run, else "0". */
struct found {
	struct rmq_cleaner *w;
	struct mq_names
	    owners[PLACES];	      /* of the keys, unless they are listed */
	struct mq_names some[PLACES]; /* of this step; some may be listed */
	struct mq_names lists;	      /* unacked: connection and queue */
};

static void
add_owner(
    const struct rmq_cleaner *w, struct mq_names *owners, const char *name)
{
	mq_names_add(owners, name, w->how->dry_run ? "1" : "0");
}

/* Selects those with this answer, or with one above 0. */
#define SOME (-1)
static int
select_names(struct rmq_cleaner *w, const struct mq_names *names,
    const char *question, long long answer, struct mq_names *yes)
{
	long long *n;
	size_t i;
	int rv = rmq_cleaner_ask(w, names, question, &n);

	for (i = 0; i < names->n; i++)
		if (answer == SOME ? n[i] > 0 : n[i] == answer)
			mq_names_add(
			    yes, names->list[i].name, names->list[i].queue);
	free(n);
	return rv;
}

/* --- adopting ------------------------------------------------------------------- */

/* Of these unacked lists (connection and queue), lists the connections that are not listed,
 * and adds these lists to *adopted.  Each step may be repeated. */
static int
adopt_lists(struct rmq_cleaner *w, const struct mq_names *lists,
    struct mq_names *adopted)
{
	bool dry_run = w->how->dry_run;
	const struct mq_name *name;
	struct mq_names others = {0}, full = {0};
	long long *has;
	size_t i;
	int rv = rmq_cleaner_ask(w, lists, "?SISMEMBER C:queues %q", &has);

	/* Most are those of connections that are listed, and their queues, too. */
	for (i = 0; i < lists->n; i++) {
		name = &lists->list[i];
		if (has[i] == 0 ||
		    !(mq_names_have(&w->live, name->name) ||
			mq_names_have(&w->dead, name->name)))
			mq_names_add(&others, name->name, name->queue);
	}
	if (rv == 0)
		rv = select_names(w, &others, "TYPE B:unacked", 'l',
		    dry_run ? adopted : &full);
	if (rv == 0)
		rv = select_names(w, &full, "!SADD C:queues %q", SOME, adopted);
	if (rv == 0)
		rv = select_names(
		    w, &full, "!SADD A:" RMQ_CONNECTIONS " %n", SOME, adopted);
	mq_names_sort(adopted);
	mq_names_free(&others);
	mq_names_free(&full);
	free(has);
	return rv;
}

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

static int
adopt_some(struct rmq_cleaner *w, const struct mq_names *lists,
    struct mq_names *adopted)
{
	int rv = adopt_lists(w, lists, adopted);

	w->out->adopted += (long)adopted->n;
	return rv == 0 ? reclaim_adopted(w, adopted) : rv;
}

int
rmq_adopt_all(struct rmq_cleaner *w)
{
	struct mq_names lists = {0}, adopted = {0};
	int rv = rmq_find_names(w->round.r, true, 0, &lists);

	if (rv == 0)
		rv = adopt_some(w, &lists, &adopted);
	w->adopted_all = true;
	mq_names_free(&lists);
	mq_names_free(&adopted);
	return rv;
}

/* --- all keys -------------------------------------------------------------------- */

static void
note_key(struct found *f, redisReply *key)
{
	struct rmq_cleaner *w = f->w;
	bool cluster = mq_redis_command(w->round.r).cluster;
	char *connection, *queue, *what = NULL;
	const struct place *place = places;

	if (unacked_names(key, &connection, &queue)) {
		mq_names_add(&f->lists, connection, queue);
		return;
	}
	queue = queue_of(key, cluster, &what);
	/* The names of our connections we make ourselves. */
	connection = queue != NULL ?
	    NULL :
	    cut_name(key, "rmq::connection::", "::", &what);
	while (place < places + PLACES &&
	    (what == NULL || strcmp(place->what, what) != 0 ||
		place->of != (queue != NULL ? 'Q' : 'C')))
		place++;
	if (place == places + PLACES)
		return;
	if (queue != NULL && w->how->all && place->busy)
		mq_names_add(&w->busy, queue, NULL);
	/* On a cluster, no key is removed. */
	if (place->type == '\0' && cluster)
		return;
	if (queue != NULL)
		add_owner(w, &f->some[place - places], queue);
	else if (connection != NULL && *connection != '\0' &&
	    !mq_names_have(&w->live, connection) &&
	    !mq_names_have(&w->dead, connection))
		add_owner(w, &f->owners[place - places], connection);
}

/* There may be a million known queues, so only those whose keys were found are asked
 * for. */
static int
keep_unknown(struct rmq_cleaner *w, struct found *f)
{
	size_t p;
	int rv = 0;

	for (p = 0; rv == 0 && p < PLACES; p++)
		rv = select_names(w, &f->some[p],
		    "SISMEMBER A:" RMQ_QUEUES " %n", 0, &f->owners[p]);
	return rv;
}

static int
note_keys(void *arg, const redisReply *keys)
{
	struct found *f = arg;
	size_t i;
	int rv;

	for (i = 0; i < keys->elements; i++)
		note_key(f, keys->element[i]);
	rv = keep_unknown(f->w, f);
	for (i = 0; i < PLACES; i++)
		mq_names_free(&f->some[i]);
	return rv;
}

/* Consumers look through some keys of a server only. */
static int
find_keys(struct rmq_cleaner *w, struct found *f)
{
	struct mq_sweep sweep = {.round = &w->round,
	    .pattern = "rmq::*",
	    .take = note_keys,
	    .arg = f};
	struct mq_command c = mq_redis_command(w->round.r);
	char cursor[MQ_CURSOR_SIZE];
	redisReply *reply, *keys;
	int steps, rv = 0;

	if (w->how->all) {
		rv = mq_sweep_keys(&sweep);
		w->blind = sweep.incomplete;
		return rv;
	}
	snprintf(cursor, sizeof(cursor), "%llu", w->how->scan_from);
	for (steps = 0; rv == 0 && *cursor != '\0' && steps < SCAN_STEPS;
	     steps++) {
		mq_keys_ask(&c, cursor, sweep.pattern);
		rv = mq_round_call(&w->round, &c, REDIS_REPLY_ARRAY, &reply);
		w->blind = reply == NULL;
		*cursor = '\0';
		keys = reply != NULL ? mq_cursor_take(cursor, reply) : NULL;
		if (keys != NULL)
			rv = note_keys(f, keys);
		freeReplyObject(reply);
	}
	w->out->scan_at = strtoull(cursor, NULL, 10);
	return rv;
}

/* Adds the queues of unacked lists, if they are not known. */
static int
find_held(struct rmq_cleaner *w, const struct mq_names *lists,
    struct mq_names *queues)
{
	struct mq_names unknown = {0}, held = {0};
	size_t i;
	int rv = select_names(
	    w, lists, "SISMEMBER A:" RMQ_QUEUES " %q", 0, &unknown);

	if (rv == 0)
		rv = select_names(w, &unknown, "TYPE B:unacked", 'l', &held);
	for (i = 0; i < held.n; i++)
		if (rmq_queue_error(held.list[i].queue) == NULL)
			add_owner(w, queues, held.list[i].queue);
	mq_names_free(&unknown);
	mq_names_free(&held);
	return rv;
}

/* Makes queues known that have messages; in a dry run, they would be. */
static int
make_known(struct rmq_cleaner *w, const struct found *f)
{
	struct mq_names queues = {0}, added = {0};
	size_t p, i;
	int rv = find_held(w, &f->lists, &queues);

	for (p = 0; rv == 0 && places[p].type != '\0'; p++)
		rv = select_names(w, &f->owners[p], places[p].question,
		    places[p].type, &queues);
	mq_names_sort(&queues);
	for (i = 0; w->how->dry_run && i < queues.n; i++)
		mq_names_add(&w->known, queues.list[i].name, NULL);
	mq_names_sort(&w->known);
	if (rv == 0 && !w->how->dry_run)
		rv = select_names(
		    w, &queues, "!SADD A:" RMQ_QUEUES " %n", SOME, &added);
	mq_names_free(&queues);
	mq_names_free(&added);
	return rv;
}

int
rmq_orphans(struct rmq_cleaner *w)
{
	struct mq_names adopted = {0}, removed = {0};
	const struct mq_names *would; /* be listed by now, in a dry run */
	struct found f = {.w = w};
	bool all = w->how->all;
	size_t p, i;
	int rv;

	w->blind = mq_redis_command(w->round.r).cluster &&
	    (!all || mq_partial_lost(w->round.r, 0) != NULL);
	if (w->blind)
		return 0;
	rv = find_keys(w, &f);
	/* A walk may come by a key twice. */
	mq_names_sort(&f.lists);
	for (p = 0; p < PLACES; p++)
		mq_names_sort(&f.owners[p]);
	if (rv == 0)
		rv = adopt_some(w, &f.lists, &adopted);
	w->adopted_all = all && !w->blind;
	if (rv == 0)
		rv = make_known(w, &f);
	for (p = 0; rv == 0 && all && p < PLACES; p++) {
		if (places[p].type != '\0')
			continue;
		rv = select_names(
		    w, &f.owners[p], places[p].question, SOME, &removed);
		would = places[p].of == 'C' ? &adopted : &w->known;
		for (i = 0; i < removed.n; i++)
			w->out->orphans +=
			    !mq_names_have(would, removed.list[i].name);
		mq_names_free(&removed);
	}
	mq_names_free(&adopted);
	mq_names_free(&f.lists);
	for (p = 0; p < PLACES; p++)
		mq_names_free(&f.owners[p]);
	return rv;
}

/* --- queues that are not idle ---------------------------------------------------- */

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
		return select_names(
		    w, &w->busy, "SISMEMBER A:" RMQ_QUEUES " %n", SOME, queues);
	}
	while (rv == 0 && *cursor != '\0') {
		names = (struct mq_names){0};
		rv =
		    mq_round_some_members(&w->round, RMQ_QUEUES, cursor, &some);
		if (some != NULL)
			mq_rows_list(&names, some, NULL);
		if (rv == 0)
			rv = select_names(w, &names, "EXISTS Q:locks Q:delayed",
			    SOME, queues);
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

/*
 * All of a queue is counted in one step: when one message ends, the next one of
 * its group, which nobody could claim until then, takes its place.  Who joins
 * and claims between the two commands of a look is seen by the second look.
 */
int
rmq_drained(
    struct mq_redis *r, const char *const *queues, int count, bool *drained)
{
	const struct mq_clean how = {0};
	struct rmq_cleaner w = {.round.r = r, .how = &how};
	struct mq_names lists = {0}, ours = {0}, adopted = {0};
	long long left = 0;
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
	for (i = 0; i < lists.n; i++)
		for (k = 0; k < count; k++)
			if (strcmp(queues[k], lists.list[i].queue) == 0)
				mq_names_add(&ours, lists.list[i].name,
				    lists.list[i].queue);
	if (rv == 0)
		rv = adopt_lists(&w, &ours, &adopted);
	*drained = left == 0 && adopted.n == 0;
	mq_names_free(&lists);
	mq_names_free(&ours);
	mq_names_free(&adopted);
	return rv;
}
