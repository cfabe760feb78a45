/* The parts of the rmq layout, for its own files only; see layout.h. */
#ifndef MQ_LAYOUT_RMQ_H
#define MQ_LAYOUT_RMQ_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/queue.h"
#include "queue/rights.h"

extern const struct mq_right rmq_rights[];

/* How long a heartbeat lives, in seconds. */
#define RMQ_LEASE_S 60

void rmq_publish(
    struct mq_command *, const char *queue, const struct mq_publishing *);
void rmq_publish_add(struct mq_command *, const struct mq_publishing *,
    const char unique[MQ_ID_LEN + 1], const struct mq_buf *header,
    const char *payload, size_t len);
bool rmq_publish_counts(const struct mq_publishing *);
void rmq_publish_mark(
    struct mq_command *, const char *queue, const struct mq_mark *, int n);
void rmq_tick(struct mq_command *, const char *queue, int64_t tick);

void rmq_probe(struct mq_command *, const struct mq_session *,
    const char *queue, bool special);
bool rmq_join(const struct mq_session *, int step, struct mq_command *);
bool rmq_leave(const struct mq_session *, int step, struct mq_command *);
bool rmq_renew(const struct mq_session *, int step, struct mq_command *);
int64_t rmq_lease(const redisReply *);

void rmq_claim(const struct mq_session *, int queue, int max, size_t bytes,
    struct mq_command *);
bool rmq_key_of(const char *key, size_t len, const char **queue, size_t *n);
void rmq_settle(const struct mq_session *, int queue,
    const struct mq_settlement *, struct mq_command *);
void rmq_ack_oldest(const struct mq_session *, int queue,
    const struct mq_acks *, struct mq_command *);
void rmq_held(const struct mq_session *, int queue, struct mq_command *);
void rmq_held_count(const struct mq_session *, int queue, struct mq_command *);

void rmq_receipts(const struct mq_session *, const struct mq_part *elements,
    int n, struct mq_command *);
void rmq_receipt(struct mq_command *, const char *connection, const char *queue,
    const char *number);
void rmq_vacate(const struct mq_session *, struct mq_command *);

int rmq_clean(struct mq_redis *, const struct mq_clean *, struct mq_cleaned *);
int rmq_drained(
    struct mq_redis *, const char *const *queues, int count, bool *drained);
int rmq_stats(struct mq_redis *, const char *const *queues, int count,
    int wanted, struct mq_stats *);
int rmq_running(struct mq_redis *, struct mq_runs *);

/* The list of a place, as one argument; connection is for UNACKED. */
void rmq_key_place(
    struct mq_command *, const struct mq_place *, const char *connection);
/* In front of each element in a sorted set; see lua/lib/place.lua. */
#define RMQ_UNIQUE_LEN 32

/* For the walks: whether the key at work is a sorted set, and no list; */
bool rmq_walk_in_set(const struct mq_scan *);
/* begins a call; for "take" with its queue's home, and the target's, which is
 * the same when to is NULL; */
void rmq_walk_start(struct mq_command *, const struct mq_scan *,
    const char *verb, const char *to);
/* whether a reply has count integers, and then strings only (the anchor of a
 * list, which follows, may be an integer); */
bool rmq_walk_reply(const redisReply *, size_t count, bool in_set);
/* a score of ours, which all are integers. */
int64_t rmq_to_score(const redisReply *);

int rmq_scan(struct mq_redis *, struct mq_scan *);
int rmq_take(struct mq_redis *, struct mq_scan *, const bool *chosen,
    const char *to, long *taken);
int rmq_scan_end(struct mq_redis *, struct mq_scan *);
int rmq_move(struct mq_redis *, const struct mq_place *, long max,
    const char *to, long *moved);
int rmq_purge(struct mq_redis *, const struct mq_place *, long *removed);
int rmq_delete_queue(
    struct mq_redis *, const char *queue, struct mq_deletion *);

/* When messages are due, and since when they have been claimable, in the rows
 * whose numbers of messages are known.  sorted: of each row, whether some of
 * the ready ones are in the priority set. */
int rmq_stats_ages(struct mq_redis *, struct mq_stats *, const bool *sorted);

/*
 * Adds what all connections have to the rows.  named: only what is in a row is
 * of interest.
 */
int rmq_stats_connections(
    struct mq_redis *, int wanted, bool named, struct mq_stats *);

#endif
