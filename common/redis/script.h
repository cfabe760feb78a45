/*
 * The server-side steps: Lua scripts, kept in lua/NAME.lua of each layout and made
 * into C at build time.  Each is one atomic step; the comment at its head
 * says what it does and what a crash before and after it leaves.
 */
#ifndef MQ_SCRIPT_H
#define MQ_SCRIPT_H

struct mq_script {
	const char *sha; /* 40 hex digits: the SHA-1 of text */
	const char *text;
};

extern const struct mq_script mq_script_ack;
extern const struct mq_script mq_script_ack_equal;
extern const struct mq_script mq_script_adopt;
extern const struct mq_script mq_script_bury;
extern const struct mq_script mq_script_claim;
extern const struct mq_script mq_script_count;
extern const struct mq_script mq_script_delete;
extern const struct mq_script mq_script_due;
extern const struct mq_script mq_script_finish;
extern const struct mq_script mq_script_force;
extern const struct mq_script mq_script_held;
extern const struct mq_script mq_script_lapsed;
extern const struct mq_script mq_script_later;
extern const struct mq_script mq_script_mark;
extern const struct mq_script mq_script_move;
extern const struct mq_script mq_script_orphan;
extern const struct mq_script mq_script_pause;
extern const struct mq_script mq_script_probe;
extern const struct mq_script mq_script_promote;
extern const struct mq_script mq_script_publish;
extern const struct mq_script mq_script_purge;
extern const struct mq_script mq_script_receipt;
extern const struct mq_script mq_script_receipts;
extern const struct mq_script mq_script_reclaim;
extern const struct mq_script mq_script_repair;
extern const struct mq_script mq_script_rsmq_ack;
extern const struct mq_script mq_script_rsmq_adopt;
extern const struct mq_script mq_script_rsmq_claim;
extern const struct mq_script mq_script_rsmq_delete;
extern const struct mq_script mq_script_rsmq_enlist;
extern const struct mq_script mq_script_rsmq_held;
extern const struct mq_script mq_script_rsmq_hidden;
extern const struct mq_script mq_script_rsmq_join;
extern const struct mq_script mq_script_rsmq_lapsed;
extern const struct mq_script mq_script_rsmq_move;
extern const struct mq_script mq_script_rsmq_open;
extern const struct mq_script mq_script_rsmq_orphans;
extern const struct mq_script mq_script_rsmq_publish;
extern const struct mq_script mq_script_rsmq_receipt;
extern const struct mq_script mq_script_rsmq_receipts;
extern const struct mq_script mq_script_rsmq_reject;
extern const struct mq_script mq_script_rsmq_renew;
extern const struct mq_script mq_script_rsmq_set;
extern const struct mq_script mq_script_rsmq_settle;
extern const struct mq_script mq_script_rsmq_stats;
extern const struct mq_script mq_script_rsmq_sweep;
extern const struct mq_script mq_script_rsmq_take;
extern const struct mq_script mq_script_rsmq_vacate;
extern const struct mq_script mq_script_rsmq_walk;
extern const struct mq_script mq_script_settle;
extern const struct mq_script mq_script_since;
extern const struct mq_script mq_script_survey;
extern const struct mq_script mq_script_tick;
extern const struct mq_script mq_script_turn;
extern const struct mq_script mq_script_unlist;
extern const struct mq_script mq_script_vacate;
extern const struct mq_script mq_script_waiting;
extern const struct mq_script mq_script_walk;

#endif
