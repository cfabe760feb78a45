/*
 * Counters of settlements and runs, by queue, sent to the server once a second.  If
 * the connection is lost before the answer, counts may be lost: none is counted
 * twice.
 */
#ifndef MQ_CONSUME_COUNTERS_H
#define MQ_CONSUME_COUNTERS_H

#include "mq-consume/message.h"
#include "mq-consume/options.h"
#include "queue/consumer.h"
#include "queue/stats.h"

struct counters {
	const struct options *opt;
	struct mq_consumer *server;
	const char *server_name;
	struct queue_counters *queues;
	struct mq_counts sent; /* of all queues */
	long returned;
	long pushed; /* not sent yet */
	bool refused;
};

void counters_init(struct counters *, const struct options *,
    struct mq_consumer *, const char *server_name);
void counters_free(struct counters *);

void counters_ran(struct counters *, int queue, double seconds);
/* A run whose consumer died was found when its message was to start again. */
void counters_crashed(struct counters *, int queue);
/* The server has confirmed the outcome; or the lease was lost before. */
void counters_settled(struct counters *, const struct message *);
void counters_lost(struct counters *, const struct message *);
/* Sends the counts since the last call. */
void counters_send(struct counters *);
/* Since the start: done, failed, retried and lease_lost; the others are 0. */
struct mq_counts counters_totals(const struct counters *);
/* Says the totals, with --verbose or if leases were lost. */
void counters_say(const struct counters *);

#endif
