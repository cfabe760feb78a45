/*
 * The rsmq layout: what runs at our own consumers, and whether there is
 * anything left to do.
 */
#include "layout.h"

#include <stdlib.h>

#include "ask.h"
#include "keys.h"
#include "queue/running.h"

/* --- what runs ------------------------------------------------------------------ */

static void
ask_run(struct mq_command *c, enum mq_run_fact fact, const char *connection,
    const char *anywhere)
{
	if (fact == MQ_RUN_HOST) {
		mq_command_plain(c, "HGET");
		rsmq_key_lease(c, connection, anywhere);
		mq_command_str(c, "host");
	} else {
		mq_command_plain(c, "GET");
		rsmq_key_running(c, connection, anywhere);
	}
}

int
rsmq_running(struct mq_redis *r, struct mq_runs *out)
{
	static const struct mq_run_source source = {
	    ask_run, {MQ_RUN_HOST, MQ_RUN_TEXT}, 2};
	char *anywhere = rsmq_anywhere(r);
	int rv = mq_runs_ask(
	    r, rsmq_connections(r, anywhere), &source, anywhere, out);

	free(anywhere);
	return rv;
}

/* --- what is left --------------------------------------------------------------- */

/* Whether one has nothing that is ready, or in anybody's hands. */
static int
is_empty(struct mq_redis *r, const char *queue, bool *empty)
{
	struct rsmq_hidden h = {0};
	int rv = rsmq_count_hidden(r, queue, &h);

	*empty = rv == 0 && h.ready == 0 && h.held == 0;
	rsmq_hidden_free(&h);
	return rv;
}

/* A message may go to where the first look has been already. */
int
rsmq_drained(
    struct mq_redis *r, const char *const *queues, int count, bool *drained)
{
	int look, i;

	*drained = true;
	for (look = 0; look < 2 && *drained; look++)
		for (i = 0; i < count && *drained; i++)
			if (is_empty(r, queues[i], drained) == -1)
				return -1;
	return 0;
}
