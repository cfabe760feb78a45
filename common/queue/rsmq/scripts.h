/* The scripts of the rsmq layout; see redis/script.h. */
#ifndef MQ_RSMQ_SCRIPTS_H
#define MQ_RSMQ_SCRIPTS_H

#include "redis/script.h"

extern const struct mq_script rsmq_script_ack;
extern const struct mq_script rsmq_script_adopt;
extern const struct mq_script rsmq_script_claim;
extern const struct mq_script rsmq_script_delete;
extern const struct mq_script rsmq_script_enlist;
extern const struct mq_script rsmq_script_held;
extern const struct mq_script rsmq_script_hidden;
extern const struct mq_script rsmq_script_join;
extern const struct mq_script rsmq_script_lapsed;
extern const struct mq_script rsmq_script_leave;
extern const struct mq_script rsmq_script_move;
extern const struct mq_script rsmq_script_open;
extern const struct mq_script rsmq_script_orphans;
extern const struct mq_script rsmq_script_publish;
extern const struct mq_script rsmq_script_receipt;
extern const struct mq_script rsmq_script_receipts;
extern const struct mq_script rsmq_script_reject;
extern const struct mq_script rsmq_script_renew;
extern const struct mq_script rsmq_script_set;
extern const struct mq_script rsmq_script_settle;
extern const struct mq_script rsmq_script_stats;
extern const struct mq_script rsmq_script_sweep;
extern const struct mq_script rsmq_script_take;
extern const struct mq_script rsmq_script_walk;

#endif
