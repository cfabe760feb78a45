/* The scripts of the rmq layout; see redis/script.h. */
#ifndef MQ_RMQ_SCRIPTS_H
#define MQ_RMQ_SCRIPTS_H

#include "redis/script.h"

extern const struct mq_script rmq_script_ack;
extern const struct mq_script rmq_script_ack_equal;
extern const struct mq_script rmq_script_adopt;
extern const struct mq_script rmq_script_check_locks;
extern const struct mq_script rmq_script_claim;
extern const struct mq_script rmq_script_count_claimable;
extern const struct mq_script rmq_script_delete;
extern const struct mq_script rmq_script_due;
extern const struct mq_script rmq_script_finish;
extern const struct mq_script rmq_script_held;
extern const struct mq_script rmq_script_lapsed;
extern const struct mq_script rmq_script_leave;
extern const struct mq_script rmq_script_mark;
extern const struct mq_script rmq_script_move;
extern const struct mq_script rmq_script_oldest;
extern const struct mq_script rmq_script_orphan;
extern const struct mq_script rmq_script_promote;
extern const struct mq_script rmq_script_publish;
extern const struct mq_script rmq_script_purge;
extern const struct mq_script rmq_script_receipt;
extern const struct mq_script rmq_script_receipts;
extern const struct mq_script rmq_script_reclaim_dead;
extern const struct mq_script rmq_script_repair;
extern const struct mq_script rmq_script_return_unacked;
extern const struct mq_script rmq_script_rotate;
extern const struct mq_script rmq_script_settle;
extern const struct mq_script rmq_script_tick;
extern const struct mq_script rmq_script_unlist;
extern const struct mq_script rmq_script_walk;
extern const struct mq_script rmq_script_walk_sorted;

#endif
