/* Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC */
/*
 * The rmq layout: queues and connections that are not listed, queues that are not idle, and
 * drained queues.
 *
 * If a Go program is stopped, and goes on after a cleaner came, its connection is not listed.
 * Only a look through all keys finds its messages, which takes the server some 0.6 s for a
 * million keys, in steps of 0.6 ms.
 *
 * A key's name says only that it may be an orphan; scripts look again.  On a cluster, where
 * the sets are on other nodes than the messages, no key is removed, and each name is added by
 * a step of its own, which may be repeated.  If an owner is gone when it is listed, the next
 * round finds a dead connection without a queue, or an empty queue.
 */
#include "rmq.h"

/* Steps of a round that does not look through all keys: some 5 ms. */
#define SCAN_STEPS 10
/* Keys of queues of a cluster. */
#define ALL_QUEUES "rmq::queue::{*}::*"

/* --- keys ----------------------------------------------------------------------- */

/* Cuts the name between two texts out of a key, in place; *what: the rest.  NULL: the key has
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

/* Cuts the names out of the key of an unacked list, in place; false: another key, or one that
 * can be read in two ways, as Go programs take any names. */
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

/* The queue in a key, if these tools can use that name, else NULL; *what: the key's end. */
static char *
queue_of(redisReply *text, bool cluster, char **what)
{
	char *queue =
	    cut_name(text, cluster ? "rmq::queue::{" : "rmq::queue::[",
		cluster ? "}::" : "]::", what);

	return queue != NULL && rmq_queue_error(queue) == NULL ? queue : NULL;
}

/* Adds the names in keys of unacked lists, or of queues of a cluster. */
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

	/* SCAN may return a key twice. */
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

/* --- owners --------------------------------------------------------------------- */

struct found {
	struct rmq_cleaner *w;
	struct mq_names some; /* queues with keys in this step */
	/* Unlisted queues, and unlisted connections with keys of these tools. */
	struct mq_names queues, connections;
	struct mq_names lists; /* unacked: connection and queue */
};

/* Selects names with this answer; SOME: with any above 0. */
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

/* Lists the connections of unacked lists (connection and queue) that are not listed, and adds
 * their lists to *adopted.  Each step may be repeated. */
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

	/* Most connections are listed, and their queues, too. */
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

/* Reclaims lists of dead connections.  On a cluster, where the heartbeat of a Go program is in
 * another slot, the script does not see it. */
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

/* Whether the end of a key is one of the words. */
static bool
is_any(const char *what, const char *words)
{
	const char *word = strstr(words, what);
	size_t n = strlen(what);

	return word != NULL && (word == words || word[-1] == ' ') &&
	    (word[n] == ' ' || word[n] == '\0');
}

static void
note_key(struct found *f, redisReply *key)
{
	struct rmq_cleaner *w = f->w;
	bool cluster = mq_redis_command(w->round.r).cluster;
	char *connection, *queue, *what;

	if (unacked_names(key, &connection, &queue)) {
		mq_names_add(&f->lists, connection, queue);
		if (rmq_queue_error(queue) == NULL)
			mq_names_add(&f->some, queue, NULL);
		return;
	}
	queue = queue_of(key, cluster, &what);
	if (queue != NULL && w->how->all && is_any(what, "delayed locks"))
		mq_names_add(&w->busy, queue, NULL);
	if (queue != NULL && w->how->all && strcmp(what, "settings") == 0)
		mq_names_add(&w->ruled, queue, NULL);
	if (queue != NULL &&
	    is_any(what,
		"ready rejected delayed priority outgoing counters paused "
		"locks clock rate"))
		mq_names_add(&f->some, queue, NULL);
	if (queue != NULL || cluster)
		return;
	/* No connection of these tools has :: in its name. */
	connection = cut_name(key, "rmq::connection::", "::", &what);
	if (connection != NULL && *connection != '\0' &&
	    is_any(what, "info running") &&
	    !mq_names_have(&w->live, connection) &&
	    !mq_names_have(&w->dead, connection))
		mq_names_add(&f->connections, connection, NULL);
}

/* Adds owners of keys that are not listed.  As a million queues may be listed, only queues with
 * keys are asked for. */
static int
note_keys(void *arg, const redisReply *keys)
{
	struct found *f = arg;
	size_t i;
	int rv;

	for (i = 0; i < keys->elements; i++)
		note_key(f, keys->element[i]);
	mq_names_sort(&f->some);
	rv = select_names(
	    f->w, &f->some, "SISMEMBER A:" RMQ_QUEUES " %n", 0, &f->queues);
	mq_names_free(&f->some);
	return rv;
}

/* Looks through all keys; a consumer, through some. */
static int
find_keys(struct rmq_cleaner *w, struct found *f)
{
	struct mq_sweep sweep = {.round = &w->round,
	    .pattern = "rmq::*",
	    .steps = w->how->all ? 0 : SCAN_STEPS,
	    .at = w->how->scan_from,
	    .take = note_keys,
	    .arg = f};
	int rv = mq_sweep_keys(&sweep);

	w->scan_incomplete = sweep.incomplete;
	w->out->scan_at = sweep.at;
	return rv;
}

/* Adds the queues of unacked lists, unless they are known. */
static int
find_held(struct rmq_cleaner *w, const struct found *f, struct mq_names *queues)
{
	const struct mq_name *list = f->lists.list, *end = list + f->lists.n;
	struct mq_names unknown = {0}, held = {0};
	size_t i;
	int rv;

	for (; list < end; list++)
		if (mq_names_have(&f->queues, list->queue))
			mq_names_add(&unknown, list->name, list->queue);
	rv = select_names(w, &unknown, "TYPE B:unacked", 'l', &held);
	for (i = 0; i < held.n; i++)
		mq_names_add(queues, held.list[i].queue, NULL);
	mq_names_free(&unknown);
	mq_names_free(&held);
	return rv;
}

/* Lists queues that have messages; in a dry run, notes that they would be listed. */
static int
make_known(struct rmq_cleaner *w, const struct found *f)
{
	static const char types[] = "llzzh"; /* first letters of TYPE */
	const size_t each = sizeof(types) - 1;
	struct mq_names queues = {0}, added = {0};
	long long *type = NULL;
	size_t i;
	int rv = find_held(w, f, &queues);

	if (rv == 0)
		rv = rmq_cleaner_ask(w, &f->queues,
		    "TYPE Q:ready|TYPE Q:rejected|TYPE Q:delayed|"
		    "TYPE Q:priority|TYPE Q:outgoing",
		    &type);
	for (i = 0; rv == 0 && i < each * f->queues.n; i++)
		if (type[i] == types[i % each])
			mq_names_add(
			    &queues, f->queues.list[i / each].name, NULL);
	mq_names_sort(&queues);
	for (i = 0; w->how->dry_run && i < queues.n; i++)
		mq_names_add(&w->known, queues.list[i].name, NULL);
	mq_names_sort(&w->known);
	if (rv == 0 && !w->how->dry_run)
		rv = select_names(
		    w, &queues, "!SADD A:" RMQ_QUEUES " %n", SOME, &added);
	mq_names_free(&queues);
	mq_names_free(&added);
	free(type);
	return rv;
}

/* Removes keys, and counts them unless the owner is in `listed`, of a dry run: those would be
 * listed by now. */
static int
remove_keys(struct rmq_cleaner *w, const struct mq_names *owners,
    const char *question, const struct mq_names *listed)
{
	long long *removed;
	int rv = rmq_cleaner_ask(w, owners, question, &removed);

	for (size_t i = 0; i < owners->n; i++)
		if (!mq_names_have(listed, owners->list[i].name))
			w->out->orphans += MAX((long)removed[i], 0);
	free(removed);
	return rv;
}

#define OF_QUEUE                                                               \
	"$orphan A:" RMQ_QUEUES                                                \
	" Q:ready Q:counters Q:paused Q:locks Q:clock "                        \
	"Q:rate %n"
#define OF_CONNECTION                                                          \
	"$orphan A:" RMQ_CONNECTIONS " C:heartbeat C:info C:running %n"

int
rmq_orphans(struct rmq_cleaner *w)
{
	bool cluster = mq_redis_command(w->round.r).cluster;
	bool all = w->how->all, dry_run = w->how->dry_run;
	struct mq_names adopted = {0};
	struct found f = {.w = w};
	int rv;

	w->scan_incomplete =
	    cluster && (!all || mq_partial_lost(w->round.r, 0) != NULL);
	if (w->scan_incomplete)
		return 0;
	rv = find_keys(w, &f);
	/* SCAN may return a key twice. */
	mq_names_sort(&f.lists);
	mq_names_sort(&f.queues);
	mq_names_sort(&f.connections);
	if (rv == 0)
		rv = adopt_some(w, &f.lists, &adopted);
	w->adopted_all = all && !w->scan_incomplete;
	if (rv == 0)
		rv = make_known(w, &f);
	if (rv == 0 && all && !cluster)
		rv = remove_keys(w, &f.queues,
		    dry_run ? OF_QUEUE " 1" : OF_QUEUE, &w->known);
	if (rv == 0 && all && !cluster)
		rv = remove_keys(w, &f.connections,
		    dry_run ? OF_CONNECTION " 1" : OF_CONNECTION, &adopted);
	mq_names_free(&adopted);
	mq_names_free(&f.lists);
	mq_names_free(&f.queues);
	mq_names_free(&f.connections);
	return rv;
}

/* --- queues that are not idle ---------------------------------------------------- */

/* A million queues may be listed, nearly all without keys.  mq-clean has found the keys of the
 * others; consumers ask about all queues, some at a time. */
int
rmq_busy_queues(struct rmq_cleaner *w, struct mq_names *queues)
{
	char cursor[MQ_CURSOR_SIZE] = "0";
	struct mq_names names;
	redisReply *some;
	int rv = 0;

	if (w->how->all && !w->scan_incomplete) {
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
	/* If the node with the names is lost, keys tell names of queues. */
	if (rv == 0 && w->how->all &&
	    rmq_missed(w->round.r, "GET A:" RMQ_QUEUES, NULL, NULL))
		rv = rmq_find_names(w->round.r, false, 0, queues);
	mq_names_sort(queues);
	return rv;
}

/* --- drained queues -------------------------------------------------------------- */

/* Adds the numbers of claimable and unacked messages of the queues. */
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
 * A queue is counted in one step: when a message ends, the next one of its group becomes
 * claimable.  If a consumer joins and claims between the two commands of a look, the second
 * look sees its messages.
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

	/* Other nodes than those of the queues may be lost. */
	mq_partial_begin(r);
	for (look = 0; look < 2 && left == 0; look++)
		if (count_waiting(r, queues, count, &left) == -1)
			return -1;
	/* Unlisted connections, which only a look through all keys finds. */
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
