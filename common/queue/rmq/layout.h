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

/* The parts of the table, each of the type of its member. */
#define PART(member) __typeof__(*((struct mq_layout *)0)->member) rmq_##member
PART(publish);
PART(publish_add);
PART(publish_counts);
PART(publish_mark);
PART(publish_known);
PART(tick);

PART(probe);
PART(join);
PART(leave);
PART(renew);
PART(lease);
PART(renew_queue);
PART(take_over);

PART(claim);
PART(track);
PART(look);
PART(settle);
PART(settle_equal);
PART(ack_oldest);
PART(give_back);
PART(held);
PART(held_count);

PART(receipts);
PART(receipt);
PART(vacate);

PART(clean);
PART(finish_pushes);
PART(drained);
PART(stats);
PART(running);

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

PART(scan);
PART(take);
PART(scan_end);
PART(move);
PART(purge);
PART(delete_queue);
#undef PART
bool rmq_key_of(const char *key, size_t len, const char **queue, size_t *n);

/* When messages are due, and since when they have been claimable, in the rows
 * whose numbers of messages are known.  sorted: of each row, whether some of
 * the ready ones are in the priority set. */
int rmq_stats_ages(struct mq_redis *, struct mq_stats *, const bool *sorted);

/* The members of a set of names; *missed: its node is lost, and they are none. */
redisReply *rmq_stats_members(struct mq_redis *, const char *set, bool *missed);
/* Adds the queues with keys, on the nodes that are left; sorted. */
int rmq_find_queues(struct mq_redis *, struct mq_names *);
/* Makes a row for each of them. */
int rmq_stats_list_found(struct mq_redis *, struct mq_stats *);

/* Sets the nodes of the rows, and of connections and what they consume; and what is not
 * known, as a node is lost. */
struct mq_links;
void rmq_stats_nodes(const struct mq_redis *, struct mq_stats *);
void rmq_stats_missed(const struct mq_redis *, struct mq_links *);

/*
 * Adds what all connections have to the rows.  named: only what is in a row is
 * of interest.
 */
int rmq_stats_connections(
    struct mq_redis *, int wanted, bool named, struct mq_stats *);

#endif
