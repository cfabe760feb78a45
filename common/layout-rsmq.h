/* The parts of the rsmq layout, for its own files only; see layout.h. */
#ifndef MQ_LAYOUT_RSMQ_H
#define MQ_LAYOUT_RSMQ_H

#include <stdbool.h>
#include <stdint.h>

#include "layout.h"

/* What a message is when its queue has been made by its first use. */
#define RSMQ_VT	     30
#define RSMQ_DELAY   0
#define RSMQ_MAXSIZE 65536

/*
 * The id that an element begins with; *n bytes, maybe in *own, which the
 * caller frees.  NULL: it has none, and so is none of ours.
 */
const char *rsmq_id(const char *element, size_t *n, size_t len, char **own);

/* The further headers of a message, as lua/lib/rsmq.lua keeps them, from those
 * of an element; empty: there are none. */
void rsmq_extra(const char *header, size_t len, struct mq_buf *extra);

void rsmq_publish(
    struct mq_command *, const char *queue, const struct mq_publishing *);
void rsmq_publish_add(struct mq_command *, const struct mq_publishing *,
    const char unique[MQ_ID_LEN + 1], const struct mq_buf *header,
    const char *payload, size_t len);
enum mq_published rsmq_published(const redisReply *, int i);
bool rsmq_publish_counts(const struct mq_publishing *);

bool rsmq_join(const struct mq_session *, int step, struct mq_command *);
bool rsmq_leave(const struct mq_session *, int step, struct mq_command *);
bool rsmq_renew(const struct mq_session *, int step, struct mq_command *);
int64_t rsmq_lease(const redisReply *);
void rsmq_tell_running(
    const struct mq_session *, const char *text, size_t n, struct mq_command *);

void rsmq_claim(const struct mq_session *, int queue, int max, size_t bytes,
    struct mq_command *);
bool rsmq_key_of(const char *key, size_t len, const char **queue, size_t *n);
void rsmq_settle(const struct mq_session *, int queue,
    const struct mq_settlement *, struct mq_command *);
void rsmq_ack_all(const struct mq_session *, int queue, int n,
    const struct mq_part *elements, bool holds, struct mq_command *);
void rsmq_held(const struct mq_session *, int queue, struct mq_command *);
void rsmq_held_count(const struct mq_session *, int queue, struct mq_command *);

#endif
