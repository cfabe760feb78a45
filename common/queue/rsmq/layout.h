/* The parts of the rsmq layout, for its own files only; see layout.h. */
#ifndef MQ_LAYOUT_RSMQ_H
#define MQ_LAYOUT_RSMQ_H

#include <stdbool.h>
#include <stdint.h>

#include "queue/queue.h"
#include "queue/rights.h"

extern const struct mq_right rsmq_rights[];

/* What a message is when its queue has been made by its first use. */
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

void rsmq_publish(
    struct mq_command *, const char *queue, const struct mq_publishing *);
void rsmq_publish_add(struct mq_command *, const struct mq_publishing *,
    const char unique[MQ_ID_LEN + 1], const struct mq_buf *header,
    const char *payload, size_t len);
bool rsmq_publish_counts(const struct mq_publishing *);

void rsmq_probe(struct mq_command *, const struct mq_session *,
    const char *queue, bool special);
bool rsmq_join(const struct mq_session *, int step, struct mq_command *);
bool rsmq_leave(const struct mq_session *, int step, struct mq_command *);
bool rsmq_renew(const struct mq_session *, int step, struct mq_command *);
int64_t rsmq_lease(const redisReply *);
void rsmq_lapsed(const struct mq_session *, int queue, const char *element,
    size_t len, long attempts, struct mq_command *);

void rsmq_claim(const struct mq_session *, int queue, int max, size_t bytes,
    struct mq_command *);
bool rsmq_key_of(const char *key, size_t len, const char **queue, size_t *n);
void rsmq_exists(const struct mq_session *, int queue, const char *element,
    size_t len, struct mq_command *);
void rsmq_settle(const struct mq_session *, int queue,
    const struct mq_settlement *, struct mq_command *);
void rsmq_ack_all(const struct mq_session *, int queue, const struct mq_acks *,
    struct mq_command *);
void rsmq_held(const struct mq_session *, int queue, struct mq_command *);
void rsmq_held_count(const struct mq_session *, int queue, struct mq_command *);

void rsmq_receipts(const struct mq_session *, const struct mq_part *elements,
    int n, struct mq_command *);
void rsmq_receipt(struct mq_command *, const char *connection,
    const char *queue, const char *number);
int rsmq_receipt_by_id(
    struct mq_redis *, const char *queue, const char *id, struct mq_receipt *);
void rsmq_vacate(const struct mq_session *, struct mq_command *);

int rsmq_clean(struct mq_redis *, const struct mq_clean *, struct mq_cleaned *);
int rsmq_drained(
    struct mq_redis *, const char *const *queues, int count, bool *drained);
int rsmq_stats(struct mq_redis *, const char *const *queues, int count,
    int wanted, struct mq_stats *);
int rsmq_running(struct mq_redis *, struct mq_runs *);
int rsmq_scan(struct mq_redis *, struct mq_scan *);
int rsmq_take(struct mq_redis *, struct mq_scan *, const bool *chosen,
    const char *to, long *taken);
int rsmq_scan_end(struct mq_redis *, struct mq_scan *);
int rsmq_move(struct mq_redis *, const struct mq_place *, long max,
    const char *to, long *moved);
int rsmq_purge(struct mq_redis *, const struct mq_place *, long *removed);
int rsmq_delete_queue(
    struct mq_redis *, const char *queue, struct mq_deletion *);

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
