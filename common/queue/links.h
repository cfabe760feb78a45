/*
 * What connections consume, for the statistics of all layouts: a link for each
 * connection and queue.
 */
#ifndef MQ_LINKS_H
#define MQ_LINKS_H

#include "rows.h"

struct mq_link {
	struct mq_connection_stats *connection;
	struct mq_consumed *consumed;
	struct mq_queue_stats *row; /* of the queue; NULL: it has none */
};

/* Starts zeroed but for the first three. */
struct mq_links {
	struct mq_stats *out;
	bool wanted; /* the connections are to be told */
	bool named;  /* only queues with a row are of interest */
	struct mq_link *list;
	size_t n;
};

/* Adds a queue that a connection consumes, if it is of interest, where
 * connection->consumed has room for it. */
void mq_links_add(struct mq_links *, struct mq_connection_stats *,
    const char *queue, long long consumers);
/* Keeps replies about its host and its pid, strings or not. */
void mq_links_about(struct mq_connection_stats *, const redisReply *host,
    const redisReply *pid);
/* Makes the list from all that were added, sorted by connection and queue. */
void mq_links_list(struct mq_links *);
/* Frees the list, and forgets the connections that are not to be told. */
void mq_links_end(struct mq_links *);

#endif
