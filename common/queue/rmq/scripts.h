/* The scripts of the rmq layout; see redis/command.h. */
#ifndef MQ_RMQ_SCRIPTS_H
#define MQ_RMQ_SCRIPTS_H

#include "redis/command.h"

extern const struct mq_script rmq_script_ack, rmq_script_adopt,
    rmq_script_arrive, rmq_script_attach, rmq_script_check_locks,
    rmq_script_claim, rmq_script_count_claimable, rmq_script_delete,
    rmq_script_due, rmq_script_give_back, rmq_script_heal, rmq_script_held,
    rmq_script_lapsed, rmq_script_leave, rmq_script_look, rmq_script_mark,
    rmq_script_move, rmq_script_oldest, rmq_script_orphan, rmq_script_outgoing,
    rmq_script_promote, rmq_script_publish, rmq_script_publish_known,
    rmq_script_purge, rmq_script_receipt, rmq_script_receipts,
    rmq_script_reclaim_dead, rmq_script_repair, rmq_script_rotate,
    rmq_script_settle, rmq_script_settle_equal, rmq_script_take_over,
    rmq_script_unlist, rmq_script_walk;

#endif
