/*
 * The runs of a consumer: a JSON list of objects that it keeps in the server
 * while scripts run for longer than about a second:
 *
 *	[{"queue": "jobs", "id": "...", "attempt": 1, "pid": 4711,
 *	  "script": "./job --fast", "started_ms": 1795207725000,
 *	  "text": "what it last said with a verb"}, ...]
 *
 * Readers ignore members that they do not know.
 */
#ifndef MQ_RUNNING_H
#define MQ_RUNNING_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "redis/ask.h"

struct mq_run {
	char *connection, *host; /* host may be NULL; not in the text */
	char *queue, *id, *script, *text;
	long attempt, pid;
	int64_t started_ms; /* unix ms, by the clock of its host */
};

struct mq_runs {
	struct mq_run *runs;
	int count;
};

/* Appends the text for n runs.  Bytes that are not UTF-8 become '?'. */
void mq_runs_write(const struct mq_run *, int n, struct mq_buf *out);

/* Appends the runs of a text to *runs, each with copies of connection and
 * host (may be NULL).  What is not in the form above is left out. */
void mq_runs_read(struct mq_runs *, const char *text, size_t n,
    const char *connection, const char *host);

/* By queue, then by when they started. */
void mq_runs_sort(struct mq_runs *);

void mq_runs_free(struct mq_runs *);

/* The facts that a layout asks about each connection, in this order.  Nothing runs at
 * a connection whose lease is over; where the lease is not asked, such a
 * connection has no host. */
enum mq_run_fact { MQ_RUN_LEASE, MQ_RUN_HOST, MQ_RUN_TEXT, MQ_RUN_FACTS };
struct mq_run_source {
	/* anywhere: the namespace. */
	void (*ask)(struct mq_command *, enum mq_run_fact,
	    const char *connection, const char *anywhere);
	enum mq_run_fact order[MQ_RUN_FACTS];
	size_t n;
};
/* All that runs at these connections, which are freed (NULL: it is an error), sorted.
 * Returns 0, or -1 with the error in struct mq_redis. */
int mq_runs_ask(struct mq_redis *, redisReply *connections,
    const struct mq_run_source *, const char *anywhere, struct mq_runs *);

#endif
