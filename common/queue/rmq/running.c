/*
 * The rmq layout: what runs at the consumers.
 */
#include "queue/running.h"

#include "keys.h"
#include "layout.h"
#include "listed.h"

static void
ask_run(struct mq_command *c, enum mq_run_fact fact, const char *connection,
    const char *anywhere)
{
	static const char *const asked[MQ_RUN_FACTS][2] = {
	    [MQ_RUN_LEASE] = {"PTTL", "heartbeat"},
	    [MQ_RUN_TEXT] = {"GET", "running"},
	    [MQ_RUN_HOST] = {"HGET", "info"}};

	(void)anywhere;
	mq_command_plain(c, asked[fact][0]);
	rmq_key_connection(c, connection, asked[fact][1]);
	if (fact == MQ_RUN_HOST)
		mq_command_str(c, "host");
}

int
rmq_running(struct mq_redis *r, struct mq_runs *out)
{
	static const struct mq_run_source source = {
	    ask_run, {MQ_RUN_LEASE, MQ_RUN_TEXT, MQ_RUN_HOST}, 3};

	return mq_runs_ask(
	    r, rmq_listed(r, RMQ_CONNECTIONS), &source, NULL, out);
}
