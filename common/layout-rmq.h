/* The parts of the rmq layout, for its own files only; see layout.h. */
#ifndef MQ_LAYOUT_RMQ_H
#define MQ_LAYOUT_RMQ_H

#include "layout.h"

/*
 * A command on one key that goes through even when memory is full; the caller
 * adds the arguments behind the key.
 */
void rmq_force(struct mq_command *, const char *verb, const char *key);

int rmq_clean(struct mq_redis *, const struct mq_clean *, struct mq_cleaned *);
int rmq_drained(
    struct mq_redis *, const char *const *queues, int count, bool *drained);
int rmq_stats(struct mq_redis *, const char *const *queues, int count,
    bool connections, struct mq_stats *);
int rmq_running(struct mq_redis *, struct mq_runs *);

/* The list, or for DELAYED the sorted set, of a place, as one argument;
 * connection is for UNACKED. */
void rmq_key_place(
    struct mq_command *, const struct mq_place *, const char *connection);
int rmq_scan(struct mq_redis *, struct mq_scan *);
int rmq_take(struct mq_redis *, struct mq_scan *, const bool *chosen,
    const char *to, long *taken);
int rmq_move(struct mq_redis *, const struct mq_place *, long max,
    const char *to, long *moved);
int rmq_purge(struct mq_redis *, const struct mq_place *, long *removed);
int rmq_delete_queue(
    struct mq_redis *, const char *queue, long *consumers, long *unacked);

#endif
