/* The parts of the rsmq layout, for its own files only; see layout.h. */
#ifndef MQ_LAYOUT_RSMQ_H
#define MQ_LAYOUT_RSMQ_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/queue.h"
#include "queue/rights.h"

extern const struct mq_right rsmq_rights[];

/* The attributes of a queue that its first use has made. */
#define RSMQ_VT	     30
#define RSMQ_DELAY   0
#define RSMQ_MAXSIZE 65536

/*
 * The id that an element begins with; *n bytes, maybe in *own, which the
 * caller frees.  NULL: it has none, and so is none of ours.
 */
const char *rsmq_id(const char *element, size_t *n, size_t len, char **own);

/* The further headers of a message, as lua/lib/layout.lua keeps them, from those
 * of an element; empty: there are none. */
void rsmq_extra(const char *header, size_t len, struct mq_buf *extra);

/* The parts of the table, each of the type of its member. */
#define PART(member) __typeof__(*((struct mq_layout *)0)->member) rsmq_##member
PART(publish);
PART(publish_add);
PART(publish_counts);

PART(probe);
PART(join);
PART(leave);
PART(renew);
PART(lease);
PART(lapsed);

PART(claim);
PART(track);
PART(look);
PART(exists);
PART(settle);
PART(ack_oldest);
PART(give_back);
PART(held);
PART(held_count);

PART(receipts);
PART(receipt);
PART(receipt_by_id);
PART(vacate);

PART(clean);
PART(drained);
PART(stats);
PART(running);
PART(scan);
PART(take);
PART(scan_end);
PART(move);
PART(purge);
PART(delete_queue);
#undef PART
bool rsmq_key_of(const char *key, size_t len, const char **queue, size_t *n);

/* Adds the connections, and how many of them consume the queues of the rows.
 * named: only what is in a row is of interest. */
int rsmq_stats_connections(
    struct mq_redis *, int wanted, bool named, struct mq_stats *);

/* The queue whose messages a place has; the caller frees. */
char *rsmq_place_queue(const struct mq_place *);
/* How many messages are there, whoever has them. */
int rsmq_place_count(struct mq_redis *, const struct mq_place *, long *n);
/* The id and the score of item i of a slice, as a walk has found it. */
redisReply **rsmq_walked(const struct mq_scan *, int i);

/* Adds the id of an element as an argument. */
void rsmq_add_id(struct mq_command *, const char *element, size_t len);

#endif
