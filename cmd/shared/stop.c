#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/say.h"
#include "base/xalloc.h"
#include "queue/calls.h"
#include "queue/stats.h"
#include "selection.h"

/* A consumer tells of a run after a second, or with the tick behind that. */
#define TOLD_S 2.5
/* Between two looks, in milliseconds. */
#define LOOK_MS 100

static void
check(const struct selection *s, int rv)
{
	if (rv == -1)
		mq_die(s->redis->status, "%s", s->redis->error);
}

static const struct mq_run *
find_run(const struct selection *s, const char *queue, struct mq_runs *runs)
{
	int i;

	mq_runs_free(runs);
	check(s, s->layout->running(s->redis, runs));
	for (i = 0; i < runs->count; i++)
		if (strcmp(runs->runs[i].queue, queue) == 0 &&
		    strcmp(runs->runs[i].id, s->filter->id) == 0)
			return &runs->runs[i];
	return NULL;
}

/* The connection that holds the message, or "" if nobody knows; NULL: it is not
 * unacked.  free() it. */
static char *
find_holder(const struct selection *s, const char *queue)
{
	struct mq_scan scan = {.place = {.queue = queue, .state = MQ_UNACKED},
	    .needle = s->filter->id};
	const char *connection;
	char *holder = NULL;
	int i;

	while (holder == NULL && !scan.end) {
		check(s, s->layout->scan(s->redis, &scan));
		for (i = 0; i < scan.count && holder == NULL; i++) {
			connection = scan.items[i].connection;
			if (mq_filter_match(s->filter, scan.items[i].element,
				scan.items[i].len))
				holder = mq_xstrdup(
				    connection != NULL ? connection : "");
		}
	}
	mq_scan_free(&scan);
	return holder;
}

/* A run that is young is not told yet. */
static const struct mq_run *
await_run(const struct selection *s, const char *queue, struct mq_runs *runs)
{
	double until = mq_clock_steady_s() + TOLD_S;
	const char *id = s->filter->id;
	const struct mq_run *run;
	char *holder = NULL;
	bool known;

	while ((run = find_run(s, queue, runs)) == NULL) {
		free(holder);
		holder = find_holder(s, queue);
		if (holder == NULL || mq_clock_steady_s() > until)
			break;
		(void)poll(NULL, 0, LOOK_MS);
	}
	if (run == NULL) {
		check(s, mq_queue_known(s->redis, s->layout, queue, &known));
		if (!known)
			mq_option_unknown(s->redis, s->layout, queue);
		else if (holder == NULL)
			mq_say("%s: %s: not running; it may have ended already",
			    queue, id);
		else
			mq_say("%s: %s: cannot be stopped; %s%s has it, and "
			       "runs no script of mq-consume with it",
			    queue, id, *holder != '\0' ? "" : "a client",
			    holder);
		exit(MQ_EXIT_NO);
	}
	free(holder);
	if (run->grace_ms < 0)
		mq_die(MQ_EXIT_NO,
		    "%s: %s: cannot be stopped; the mq-consume of %s is too "
		    "old: stop process %ld on %s",
		    queue, id, run->connection, run->pid,
		    run->host != NULL ? run->host : "its host");
	return run;
}

void
selection_stop(struct selection *s, const char *queue, enum mq_stop what)
{
	struct mq_runs runs = {0};
	const struct mq_run *run = await_run(s, queue, &runs);
	enum mq_stop answer = MQ_STOP_NONE;

	/* A request that was made lapses only with its time. */
	if (!s->dry_run &&
	    mq_stop_run(s->redis, s->layout, run, what, &answer) == -1)
		mq_die(s->redis->status, "%s%s", s->redis->error,
		    mq_redis_lost(s->redis) ? "; the run may still be stopped" :
					      "");
	if (answer == MQ_STOP_OVER)
		mq_die(MQ_EXIT_NO, "%s: %s: it had ended already", queue,
		    s->filter->id);
	if (answer == MQ_STOP_NONE && !s->dry_run)
		mq_die(MQ_EXIT_AGAIN,
		    "%s: %s: no answer from %s; the request is withdrawn",
		    queue, s->filter->id, run->connection);
	if (answer == MQ_STOP_REJECTED)
		mq_say("%s: %s: rejected, as that was its last attempt", queue,
		    s->filter->id);
	s->done = answer != MQ_STOP_REJECTED;
	mq_runs_free(&runs);
}

void
selection_check_running(
    const struct selection *s, int queues, const char *other)
{
	const char *filter = mq_filter_option_given(s->filter);

	if (filter != NULL)
		other = filter;
	if (other != NULL)
		mq_die(MQ_EXIT_USAGE,
		    "--running and %s cannot be used together", other);
	if (s->filter->id == NULL)
		mq_die(MQ_EXIT_USAGE, "--running: needs --id");
	if (queues != 1)
		mq_die(MQ_EXIT_USAGE, "--running: needs exactly one queue");
}
