/* Forgetting dead connections, which is the end of rmq_reclaim(). */
#ifndef MQ_RMQ_UNLIST_H
#define MQ_RMQ_UNLIST_H

#include "dead_queue.h"

/* Forgets those of the dead that have not failed, and have no queue any more.  Returns -1
 * only when the connection is lost. */
int rmq_unlist(struct rmq_cleaner *, struct rmq_dead *, size_t n,
    struct rmq_dead_queue *, size_t queue_n);

#endif
