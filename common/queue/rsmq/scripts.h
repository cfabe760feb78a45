/* The scripts of the rsmq layout; see redis/command.h. */
#ifndef MQ_RSMQ_SCRIPTS_H
#define MQ_RSMQ_SCRIPTS_H

#include "redis/command.h"

extern const struct mq_script rsmq_script_ack, rsmq_script_adopt,
    rsmq_script_claim, rsmq_script_delete, rsmq_script_enlist,
    rsmq_script_give_back, rsmq_script_held, rsmq_script_hidden,
    rsmq_script_holding, rsmq_script_join, rsmq_script_lapsed,
    rsmq_script_leave, rsmq_script_look, rsmq_script_move, rsmq_script_open,
    rsmq_script_orphans, rsmq_script_publish, rsmq_script_receipt,
    rsmq_script_receipts, rsmq_script_reject, rsmq_script_renew,
    rsmq_script_set, rsmq_script_settle, rsmq_script_stats, rsmq_script_sweep,
    rsmq_script_take, rsmq_script_walk;

#endif
