/*
 * The rsmq layout: one round of cleaning up.
 *
 * What a dead consumer had is everybody's again without a cleaner, and who claims
 * it sees when it must not run again.  What is left to do is to reject what
 * nobody claims, and to remove what crashes, and programs that do not know of our
 * keys, leave behind.
 */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "ask.h"
#include "clean.h"
#include "keys.h"

/* --- connections -------------------------------------------------------------- */

static void
add_consumed(struct rsmq_round *w, const char *text)
{
	json_t *list = json_loads(text, 0, NULL);
	size_t i, n = json_array_size(list);

	for (i = 0; i < n; i++)
		if (json_is_string(json_array_get(list, i)))
			mq_names_add(&w->consumed,
			    json_string_value(json_array_get(list, i)), NULL);
	json_decref(list);
}

/* Names are never used again, so one that is dead stays so. */
static int
forget(struct rsmq_round *w, redisReply *const *dead, size_t n)
{
	struct mq_command *c = mq_pipe_next(&w->pipe);
	size_t i;
	int rv;

	mq_command_plain(c, "ZREM");
	rsmq_key_common(c, w->anywhere, "::connections");
	for (i = 0; i < n; i++)
		mq_command_arg(c, dead[i]->str, dead[i]->len);
	rv = mq_pipe_run(w->r, &w->pipe);
	if (rv == 0 &&
	    mq_reply_good(
		w->r, &w->trouble, w->pipe.replies[0], REDIS_REPLY_INTEGER))
		w->out->connections += (long)w->pipe.replies[0]->integer;
	mq_pipe_clear(&w->pipe);
	return rv;
}

/* Asks for the leases of up to MQ_PIPE_MAX connections; those that have none
 * come to the front of the array. */
static int
look_at(struct rsmq_round *w, redisReply **names, size_t n, size_t *dead)
{
	struct mq_command *c;
	redisReply *name, *reply;
	size_t i;
	int rv;

	for (i = 0; i < n; i++) {
		c = mq_pipe_next(&w->pipe);
		mq_command_plain(c, "HGET");
		rsmq_key_lease(c, names[i]->str, w->anywhere);
		mq_command_str(c, "queues");
	}
	rv = mq_pipe_run(w->r, &w->pipe);
	*dead = 0;
	for (i = 0; i < n && rv == 0; i++) {
		reply = w->pipe.replies[i];
		if (reply->type == REDIS_REPLY_STRING) {
			add_consumed(w, reply->str);
		} else if (mq_reply_good(
			       w->r, &w->trouble, reply, REDIS_REPLY_NIL)) {
			name = names[*dead];
			names[(*dead)++] = names[i];
			names[i] = name;
		}
	}
	mq_pipe_clear(&w->pipe);
	return rv;
}

static int
clean_connections(struct rsmq_round *w)
{
	redisReply *all = rsmq_connections(w->r, w->anywhere);
	size_t i, n, dead;
	int rv = 0;

	if (all == NULL)
		return -1;
	for (i = 0; i < all->elements && rv == 0; i += n) {
		n = all->elements - i;
		if (n > MQ_PIPE_MAX)
			n = MQ_PIPE_MAX;
		rv = look_at(w, all->element + i, n, &dead);
		if (w->how->dry_run)
			w->out->connections += (long)dead;
		else if (rv == 0 && dead > 0)
			rv = forget(w, all->element + i, dead);
	}
	freeReplyObject(all);
	mq_names_sort(&w->consumed);
	return rv;
}

/* --- queues ---------------------------------------------------------------------- */

static int
clean_listed(struct rsmq_round *w)
{
	redisReply *all = rsmq_listed(w->r);
	struct mq_names names = {0};
	size_t i;
	int rv;

	if (all == NULL)
		return -1;
	for (i = 0; i < all->elements; i++)
		if (rsmq_is_name(all->element[i]))
			mq_names_add(&names, all->element[i]->str, NULL);
	freeReplyObject(all);
	mq_names_sort(&names);
	rv = rsmq_sweep(w, names.list, names.n);
	mq_names_free(&names);
	return rv;
}

int
rsmq_clean(
    struct mq_redis *r, const struct mq_clean *how, struct mq_cleaned *out)
{
	char *anywhere = rsmq_anywhere(r);
	struct rsmq_round w = {
	    .r = r, .how = how, .out = out, .anywhere = anywhere};
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
		rv = mq_trouble_tell(r, &w.trouble);
	out->barred = w.trouble.barred;
	mq_pipe_free(&w.pipe);
	mq_names_free(&w.consumed);
	free(anywhere);
	return rv;
}
