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

/* How many connections are forgotten in one step. */
#define FORGET 1000

/* --- connections -------------------------------------------------------------- */

static void
add_consumed(struct rsmq_cleaner *w, const char *text)
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
	struct rsmq_cleaner *w;
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
clean_connections(struct rsmq_cleaner *w)
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

/* --- queues ---------------------------------------------------------------------- */

static int
clean_listed(struct rsmq_cleaner *w)
{
	struct mq_names names = {0};
	int rv = rsmq_add_listed(w->round.r, &names);

	mq_names_sort(&names);
	if (rv == 0)
		rv = rsmq_sweep(w, names.list, names.n);
	mq_names_free(&names);
	return rv;
}

int
rsmq_clean(
    struct mq_redis *r, const struct mq_clean *how, struct mq_cleaned *out)
{
	char *anywhere = rsmq_anywhere(r);
	struct rsmq_cleaner w = {
	    .round.r = r, .how = how, .out = out, .anywhere = anywhere};
	int rv;

	*out = (struct mq_cleaned){.next_ms = -1};
	rv = mq_server_time(r, &w.now_ms);
	if (rv == 0)
		rv = clean_connections(&w);
	if (rv == 0 && how->all)
		rv = rsmq_enlist(&w);
	if (rv == 0 && how->all)
		rv = clean_listed(&w);
	if (rv == 0)
		rv = mq_round_end(&w.round);
	out->refused = w.round.refused;
	mq_names_free(&w.consumed);
	free(anywhere);
	return rv;
}
