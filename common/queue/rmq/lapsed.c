/*
 * The rmq layout: heartbeats that ended although nobody died.
 *
 * When the server's clock is set forward, or the server was stopped, all
 * heartbeats end at once.  A consumer that finds its own gone takes a new name,
 * and tells there when its last heartbeat was; see lua/lapsed.lua.  Dead
 * connections whose last heartbeat was at that time lapsed together with it, and
 * nothing is charged to their messages.  The last heartbeat of a connection that
 * really died was at another time.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "clean.h"
#include "keys.h"

/* A heartbeat comes each second, or a bit later on a busy machine. */
#define TOGETHER_MS 5000

/* Asks something about n of the connections. */
static int
ask(struct rmq_round *w, const struct mq_name *names, size_t n,
    const char *verb, const char *field)
{
	struct mq_command *c;
	size_t i;

	for (i = 0; i < n; i++) {
		c = mq_pipe_next(&w->pipe);
		mq_command_plain(c, verb);
		rmq_key_connection(c, names[i].name, "info");
		if (field != NULL)
			mq_command_str(c, field);
	}
	return mq_pipe_run(w->r, &w->pipe);
}

static size_t
at_most(size_t n)
{
	return n < MQ_PIPE_MAX ? n : MQ_PIPE_MAX;
}

/* A dead connection, and when its info ends, unix ms. */
struct ended {
	const char *connection;
	long long at_ms;
};

static int
find_ended(struct rmq_round *w, long long now, struct ended *ended, size_t *out)
{
	const redisReply *reply;
	size_t i, k, n;
	int rv = 0;

	for (i = 0; i < w->dead.n && rv == 0; i += n) {
		n = at_most(w->dead.n - i);
		rv = ask(w, w->dead.list + i, n, "PTTL", NULL);
		for (k = 0; k < n && rv == 0; k++) {
			reply = w->pipe.replies[k];
			if (rmq_round_good(w, reply, REDIS_REPLY_INTEGER) &&
			    reply->integer > 0)
				ended[(*out)++] =
				    (struct ended){w->dead.list[i + k].name,
					now + reply->integer};
		}
		mq_pipe_clear(&w->pipe);
	}
	return rv;
}

static void
add_lapsed(
    struct rmq_round *w, const struct ended *ended, size_t n, long long at_ms)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (llabs(ended[i].at_ms - at_ms) <= TOGETHER_MS)
			mq_names_add(&w->lapsed, ended[i].connection, NULL);
}

static int
find_lapsed(struct rmq_round *w, const struct ended *ended, size_t count)
{
	const redisReply *reply;
	size_t i, k, n;
	int rv = 0;

	for (i = 0; i < w->live.n && rv == 0; i += n) {
		n = at_most(w->live.n - i);
		rv = ask(w, w->live.list + i, n, "HGET", "lapsed");
		for (k = 0; k < n && rv == 0; k++) {
			reply = w->pipe.replies[k];
			if (reply->type == REDIS_REPLY_STRING)
				add_lapsed(w, ended, count,
				    strtoll(reply->str, NULL, 10));
		}
		mq_pipe_clear(&w->pipe);
	}
	mq_names_sort(&w->lapsed);
	return rv;
}

int
rmq_lapsed(struct rmq_round *w)
{
	struct ended *ended;
	size_t n = 0;
	long long now;
	int rv = w->dead.n > 0 ? rmq_round_ms(w, &now) : 0;

	if (rv == -1 || w->dead.n == 0)
		return rv;
	ended = mq_xcalloc(w->dead.n, sizeof(*ended));
	rv = find_ended(w, now, ended, &n);
	if (rv == 0 && n > 0)
		rv = find_lapsed(w, ended, n);
	free(ended);
	return rv;
}
