/*
 * The rows of struct mq_stats, one for each queue.  For layouts.
 */
#ifndef MQ_ROWS_H
#define MQ_ROWS_H

#include <stdbool.h>

#include "queue.h"

/* Makes rows with these names, sorted by them, of which nothing is known but
 * whether they are known queues. */
void mq_rows_make(
    struct mq_stats *, const char *const *names, size_t n, bool known);
/* The same for an array of strings; a name with a NUL in it is nothing that
 * could be asked for, and is left out. */
void mq_rows_list(struct mq_stats *, const redisReply *names);

/* The row of a queue; NULL: there is none.  Rows are sorted by name. */
struct mq_queue_stats *mq_rows_find(const struct mq_stats *, const char *name);

/* Brings the rows into the order, and as often, as their names were given. */
void mq_rows_order(struct mq_stats *, const char *const *names, int count);

/* Makes the connections, of which nothing is known, from an array of strings
 * and (unless NULL) other names, sorted by name; one with a NUL in it is left
 * out. */
void mq_rows_connections(
    struct mq_stats *, const redisReply *names, const struct mq_names *others);
/* Forgets all connections, or those that have nothing of any row. */
void mq_rows_forget(struct mq_stats *, bool only_others);

/*
 * The queues that connections consume: a link for each connection and queue.
 */
struct mq_link {
	struct mq_connection_stats *connection;
	struct mq_consumed *consumed;
	struct mq_queue_stats *row; /* of the queue; NULL: it has none */
};

/* Starts zeroed but for the first three. */
struct mq_links {
	struct mq_stats *out;
	bool wanted; /* the connections are to be listed */
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
/* Frees the list, and forgets the connections that are not to be listed. */
void mq_links_end(struct mq_links *);

#endif
