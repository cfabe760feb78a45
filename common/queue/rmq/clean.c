/*
 * The rmq layout: one round of cleaning up.
 */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include "clean.h"
#include "keys.h"

/* A live heartbeat is renewed every second; less than this is on its way out. */
#define RENEWED_MS 55000
/* A consumer whose own heartbeat has ended finds that out within this time, and
 * reports it; only then can a cleaner tell the dead from the lapsed. */
#define LAPSED_MS 1000

bool
rmq_round_good(struct rmq_round *w, const redisReply *reply, int type)
{
	return mq_reply_good(w->r, &w->trouble, reply, type);
}

int
rmq_round_ask(struct rmq_round *w, int type, redisReply **reply)
{
	int rv = mq_pipe_run(w->r, &w->pipe);

	*reply = NULL;
	if (rv == 0 && rmq_round_good(w, w->pipe.replies[0], type)) {
		*reply = w->pipe.replies[0];
		w->pipe.replies[0] = NULL;
	}
	mq_pipe_clear(&w->pipe);
	return rv;
}

bool
rmq_round_nonsense(struct rmq_round *w)
{
	static const redisReply nonsense = {.type = REDIS_REPLY_NIL};

	return rmq_round_good(w, &nonsense, REDIS_REPLY_ARRAY);
}

int
rmq_round_ask_strings(struct rmq_round *w, redisReply **reply)
{
	int rv = rmq_round_ask(w, REDIS_REPLY_ARRAY, reply);

	if (*reply != NULL && !mq_reply_strings(*reply)) {
		freeReplyObject(*reply);
		*reply = NULL;
		(void)rmq_round_nonsense(w);
	}
	return rv;
}

/* A name with a NUL in it is none that a key could be made of. */
static bool
is_name(const redisReply *reply)
{
	return reply->len > 0 && strlen(reply->str) == reply->len;
}

static void
sort_out(struct rmq_round *w, const char *connection, long long ttl)
{
	struct mq_cleaned *out = w->out;

	mq_names_add(ttl > 0 ? &w->live : &w->dead, connection, NULL);
	if (ttl > 0 && ttl < RENEWED_MS &&
	    (out->next_ms == -1 || ttl < out->next_ms))
		out->next_ms = ttl;
}

/* Asks for the heartbeats of up to MQ_PIPE_MAX connections. */
static int
look_at(struct rmq_round *w, redisReply *const names[], size_t n)
{
	struct mq_command *c;
	size_t i;
	int rv;

	for (i = 0; i < n; i++) {
		c = mq_pipe_next(&w->pipe);
		mq_command_plain(c, "PTTL");
		rmq_key_connection(c, names[i]->str, "heartbeat");
	}
	rv = mq_pipe_run(w->r, &w->pipe);
	for (i = 0; i < n && rv == 0; i++)
		if (is_name(names[i]) &&
		    rmq_round_good(w, w->pipe.replies[i], REDIS_REPLY_INTEGER))
			sort_out(w, names[i]->str, w->pipe.replies[i]->integer);
	mq_pipe_clear(&w->pipe);
	return rv;
}

static int
find_dead(struct rmq_round *w)
{
	struct mq_command c = {0};
	redisReply *all;
	size_t i, n;
	int rv = 0;

	mq_command_plain(&c, "SMEMBERS");
	mq_command_str(&c, RMQ_CONNECTIONS);
	all = mq_redis_call(w->r, &c);
	mq_command_free(&c);
	if (all == NULL)
		return -1;
	if (!mq_reply_strings(all)) {
		freeReplyObject(all);
		return mq_nonsense(w->r);
	}
	for (i = 0; i < all->elements && rv == 0; i += n) {
		n = all->elements - i;
		if (n > MQ_PIPE_MAX)
			n = MQ_PIPE_MAX;
		rv = look_at(w, all->element + i, n);
	}
	freeReplyObject(all);
	mq_names_sort(&w->live);
	mq_names_sort(&w->dead);
	return rv;
}

static void
free_round(struct rmq_round *w)
{
	size_t i;

	mq_pipe_free(&w->pipe);
	mq_names_free(&w->live);
	mq_names_free(&w->dead);
	mq_names_free(&w->lapsed);
	mq_names_free(&w->known);
	for (i = 0; i < w->tally_count; i++)
		free(w->tallies[i].queue);
	free(w->tallies);
}

/*
 * The dead first: that leaves fewer keys to look through, and what they had
 * is known again then.
 */
int
rmq_clean(
    struct mq_redis *r, const struct mq_clean *how, struct mq_cleaned *out)
{
	struct rmq_round w = {.r = r, .how = how, .out = out};
	int rv;

	*out = (struct mq_cleaned){.next_ms = -1};
	rv = find_dead(&w);
	if (rv == 0 && how->self != NULL && mq_names_have(&w.dead, how->self)) {
		out->next_ms = LAPSED_MS;
		free_round(&w);
		return 0;
	}
	if (rv == 0)
		rv = rmq_lapsed(&w);
	if (rv == 0)
		rv = rmq_bury(&w, w.dead.list, w.dead.n);
	if (rv == 0)
		rv = rmq_orphans(&w);
	if (rv == 0 && how->all)
		rv = rmq_due(&w);
	if (rv == 0)
		rv = rmq_repair(&w);
	if (rv == 0 && !how->dry_run)
		rv = rmq_tally_send(&w);
	if (rv == 0)
		rv = mq_trouble_tell(r, &w.trouble);
	out->barred = w.trouble.barred;
	free_round(&w);
	return rv;
}
