/*
 * The rmq layout: heartbeats that ended although nobody died.
 *
 * When the server's clock is set forward, or the server was stopped, all
 * heartbeats end at once.  A consumer that finds its own gone takes a new name,
 * and tells there when its last heartbeat was; see lua/lapsed.lua.  Dead
 * connections whose last heartbeat was at that time lapsed together with it, and
 * their messages do not count as crashed.  The last heartbeat of a connection that
 * really died was at another time.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "rmq.h"

/* A heartbeat comes every 15 seconds, or a bit later on a busy machine. */
#define TOGETHER_MS 19000

/* A dead connection, and when its info ends, unix ms. */
struct ended {
	const char *connection;
	long long at_ms;
};

struct search {
	struct rmq_cleaner *w;
	int64_t now;
	struct ended *ended;
	size_t n;
};

static void
ask_end(void *arg, size_t i, struct mq_command *c)
{
	const struct search *s = arg;

	mq_command_plain(c, "PTTL");
	rmq_key_connection(c, s->w->dead.list[i].name, "info");
}

static int
take_end(void *arg, size_t i, redisReply *reply)
{
	struct search *s = arg;

	if (mq_round_good(&s->w->round, reply, REDIS_REPLY_INTEGER) &&
	    reply->integer > 0)
		s->ended[s->n++] = (struct ended){
		    s->w->dead.list[i].name, s->now + reply->integer};
	return 0;
}

static void
ask_report(void *arg, size_t i, struct mq_command *c)
{
	const struct search *s = arg;

	mq_command_plain(c, "HGET");
	rmq_key_connection(c, s->w->live.list[i].name, "info");
	mq_command_str(c, "lapsed");
}

static int
take_report(void *arg, size_t i, redisReply *reply)
{
	struct search *s = arg;
	long long at_ms;

	(void)i;
	if (reply->type != REDIS_REPLY_STRING)
		return 0;
	at_ms = strtoll(reply->str, NULL, 10);
	for (i = 0; i < s->n; i++)
		if (llabs(s->ended[i].at_ms - at_ms) <= TOGETHER_MS)
			mq_names_add(
			    &s->w->lapsed, s->ended[i].connection, NULL);
	return 0;
}

int
rmq_lapsed(struct rmq_cleaner *w)
{
	struct search s = {.w = w};
	int rv;

	/* One that lives has to say so. */
	if (w->dead.n == 0 || w->live.n == 0)
		return 0;
	s.ended = mq_xcalloc(w->dead.n, sizeof(*s.ended));
	rv = rmq_cleaner_now(w, NULL, &s.now);
	if (rv == 0)
		rv = mq_ask_each(w->round.r, w->dead.n, ask_end, take_end, &s);
	if (rv == 0 && s.n > 0)
		rv = mq_ask_each(
		    w->round.r, w->live.n, ask_report, take_report, &s);
	mq_names_sort(&w->lapsed);
	free(s.ended);
	return rv;
}
