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

#include "rmq.h"

/* A heartbeat comes every 15 seconds, or a bit later on a busy machine. */
#define TOGETHER_MS 19000

/* Adds the dead whose info ends (ends[], unix ms, from now on) when this heartbeat did. */
static void
add_lapsed(struct rmq_cleaner *w, const long long *ends, long long at_ms)
{
	size_t i;

	for (i = 0; i < w->dead.n; i++)
		if (ends[i] > 0 && llabs(ends[i] - at_ms) <= TOGETHER_MS)
			mq_names_add(&w->lapsed, w->dead.list[i].name, NULL);
}

int
rmq_lapsed(struct rmq_cleaner *w)
{
	static const struct rmq_question end = {
	    "PTTL", "info", .of = RMQ_OF_CONNECTION};
	static const struct rmq_question report = {"HGET", "info",
	    .of = RMQ_OF_CONNECTION, .rest = "lapsed", .optional = true};
	long long *ends = NULL, *reports = NULL;
	int64_t now;
	bool any = false;
	size_t i;
	int rv;

	/* One that lives has to say so. */
	if (w->dead.n == 0 || w->live.n == 0)
		return 0;
	rv = rmq_cleaner_now(w, NULL, &now);
	if (rv == 0)
		rv = rmq_cleaner_ask(w, &w->dead, &end, 1, &ends);
	for (i = 0; rv == 0 && i < w->dead.n; i++) {
		ends[i] = ends[i] > 0 ? ends[i] + now : 0;
		any |= ends[i] > 0;
	}
	if (rv == 0 && any)
		rv = rmq_cleaner_ask(w, &w->live, &report, 1, &reports);
	for (i = 0; reports != NULL && i < w->live.n; i++)
		if (reports[i] != RMQ_NO_ANSWER)
			add_lapsed(w, ends, reports[i]);
	mq_names_sort(&w->lapsed);
	free(ends);
	free(reports);
	return rv;
}
