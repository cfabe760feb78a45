/*
 * The server and its queues as outputs show them.  collect.h fills a model, outputs
 * only read it.
 */
#ifndef MQ_STATS_MODEL_H
#define MQ_STATS_MODEL_H

#include "grouping.h"
#include "order.h"
#include "queue/queue.h"
#include "queue/running.h"
#include "redis/info.h"

struct model {
	const char *server;   /* its name */
	struct order order;   /* of the queues in tables */
	char error[512];      /* why nothing is known; empty: it is */
	struct mq_names lost; /* the nodes of a cluster that are, and why */
	struct mq_stats stats;
	struct mq_info info; /* the policy */
	struct mq_runs runs;
	/* Of each queue that does not exist, what may have been meant; of each that
	 * does, NULL. */
	char **elsewhere;
	int elsewhere_count;
	struct rejections *rejected; /* of each queue */
};

/* How long ago that was, in seconds, not below 0. */
double model_age_s(const struct model *, int64_t since_ms);

/* Adds to a sum, which is -1 (not known) as soon as one number is. */
void model_add(long long *sum, long long n);

/* All queues together, each once; oldest_ms and rates where any is known. */
struct mq_queue_stats model_total(const struct model *);

/* The n queues at these places together. */
struct mq_queue_stats model_sum(const struct model *, const int *rows, int n);

/* Reports the nodes that are lost. */
void model_report_lost(const struct model *);

void model_free_elsewhere(struct model *);
void model_free(struct model *);

#endif
