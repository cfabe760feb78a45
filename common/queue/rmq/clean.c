/*
 * The rmq layout: one round of cleaning up, step by step.
 */
#include <stdlib.h>

#include "redis/connection.h"
#include "rmq.h"

/* A live heartbeat is renewed every 15 seconds at the latest; less than this is on its
 * way out. */
#define RENEWED_MS 43000
/* A consumer whose own heartbeat has ended finds that out within this time, and
 * reports it; only then can a cleaner tell the dead from the lapsed. */
#define LAPSED_MS 1000
/* Of a step, which copies about 1 MiB, and the log of that. */
#define STEP_BYTES ((size_t)2 << 20)

static void
note_heartbeat(struct rmq_cleaner *w, const char *connection, long long ttl)
{
	if (*connection == '\0' || ttl == RMQ_NO_ANSWER)
		return;
	mq_names_add(ttl > 0 ? &w->live : &w->dead, connection, NULL);
	if (ttl > 0 && ttl < RENEWED_MS &&
	    (w->out->next_ms == -1 || ttl < w->out->next_ms))
		w->out->next_ms = ttl;
}

static int
find_dead(struct rmq_cleaner *w)
{
	redisReply *all = mq_call_members(w->round.r, RMQ_CONNECTIONS);
	struct mq_names names = {0};
	long long *ttl;
	size_t i;
	int rv;

	if (all == NULL)
		return -1;
	rmq_add_names(&names, all);
	freeReplyObject(all);
	rv = rmq_cleaner_ask(w, &names, &rmq_heartbeat, 1, &ttl);
	for (i = 0; i < names.n; i++)
		note_heartbeat(w, names.list[i].name, ttl[i]);
	mq_names_sort(&w->live);
	mq_names_sort(&w->dead);
	mq_names_free(&names);
	free(ttl);
	return rv;
}

/* What a lost node has may be what a lock or a mark is for. */
static bool
is_partial(const struct mq_redis *r)
{
	return mq_partial_lost(r, 0) != NULL;
}

/* What goes back is copied, and a full disk ends a private server. */
static int
check_room(const struct rmq_cleaner *w)
{
	return w->how->dry_run || (w->dead.n == 0 && !w->how->all) ?
	    0 :
	    mq_redis_room(w->round.r, STEP_BYTES);
}

/* A user without the right to look at attachments has none to clean. */
static int
clean_attachments(struct rmq_cleaner *w)
{
	struct mq_redis *r = w->round.r;
	long n;
	int rv = rmq_attach_sweep(r, w->how->dry_run, &n);

	w->out->orphans += n;
	return rv == -1 && mq_redis_lost(r) ? -1 : 0;
}

/*
 * The dead first: that leaves fewer keys to look through, and what they had
 * is known again then.
 */
static int
take_steps(struct rmq_cleaner *w)
{
	struct mq_redis *r = w->round.r;
	int rv = rmq_lapsed(w);

	if (rv == 0)
		rv = rmq_reclaim(w, w->dead.list, w->dead.n);
	/* On a cluster only mq-clean looks through all keys, and removes none. */
	if (!mq_redis_command(r).cluster)
		rv = rv == 0 ? rmq_orphans(w) : rv;
	else if (!w->how->all || is_partial(r))
		w->blind = true;
	else if (rv == 0)
		rv = rmq_adopt_nodes(w);
	if (rv == 0 && mq_redis_command(r).cluster && !is_partial(r))
		rv = rmq_underway(w);
	if (rv == 0 && w->how->all)
		rv = rmq_due(w);
	if (rv == 0 && !is_partial(r))
		rv = rmq_repair(w);
	if (rv == 0 && w->how->all && !is_partial(r))
		rv = clean_attachments(w);
	if (rv == 0 && !w->how->dry_run)
		rv = rmq_cleaner_send_counts(w);
	return rv == 0 ? mq_round_end(&w->round) : rv;
}

int
rmq_clean(
    struct mq_redis *r, const struct mq_clean *how, struct mq_cleaned *out)
{
	struct rmq_cleaner w = {.round.r = r, .how = how, .out = out};
	int rv;

	*out = (struct mq_cleaned){.next_ms = -1};
	mq_partial_begin(r);
	rv = find_dead(&w);
	if (rv == 0 && how->self != NULL && mq_names_have(&w.dead, how->self))
		out->next_ms = LAPSED_MS;
	else if (rv == 0 && (rv = check_room(&w)) == 0)
		rv = take_steps(&w);
	if (how->cluster != NULL)
		mq_names_sort(how->cluster);
	out->refused = w.round.refused;
	rmq_cleaner_free(&w);
	return rv;
}
