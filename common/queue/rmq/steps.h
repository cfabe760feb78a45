/* The steps of a round of cleaning, in the order of clean.c; see cleaner.h. */
#ifndef MQ_RMQ_STEPS_H
#define MQ_RMQ_STEPS_H

#include "cleaner.h"

/* Finds the dead connections whose programs live. */
int rmq_lapsed(struct rmq_cleaner *);
/* Takes n dead connections apart; or n queues of fewer, sorted, which are now
 * said to be theirs (in a dry run, would be). */
int rmq_reclaim(struct rmq_cleaner *, const struct mq_name *dead, size_t n);
/* Ends transfers to other queues of a cluster that somebody has begun. */
int rmq_underway(struct rmq_cleaner *);
/* Finds what no set lists, and takes care of it.  Unless how->all, that is
 * messages only, and only among some of the keys. */
int rmq_orphans(struct rmq_cleaner *);
/* Adds the known queues that have locks or delayed messages, sorted; behind orphans. */
int rmq_busy_queues(struct rmq_cleaner *, struct mq_names *);
/* Makes ready what is due. */
int rmq_due(struct rmq_cleaner *);
/* Puts locks right, and rejects what has expired. */
int rmq_repair(struct rmq_cleaner *);

/* Of these unacked lists (connection and queue), adopts and reclaims those without
 * a listed connection, and adds them to *adopted. */
int rmq_adopt_some(struct rmq_cleaner *, const struct mq_names *lists,
    struct mq_names *adopted);
/* Returns to their queues what claims of an older version left in these keys (queue, and
 * which key of it). */
int rmq_heal(struct rmq_cleaner *, const struct mq_names *moving);
/* The same of all that a cluster has; and makes known what has messages. */
int rmq_adopt_nodes(struct rmq_cleaner *);
/* The same of all unacked lists that there are. */
int rmq_adopt_all(struct rmq_cleaner *);

#endif
