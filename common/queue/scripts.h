/* The scripts that serve both layouts; see redis/command.h. */
#ifndef MQ_SCRIPTS_H
#define MQ_SCRIPTS_H

#include "redis/command.h"

extern const struct mq_script mq_script_compete;
extern const struct mq_script mq_script_count;
extern const struct mq_script mq_script_note;
extern const struct mq_script mq_script_pass;
extern const struct mq_script mq_script_pause;
extern const struct mq_script mq_script_probe;
extern const struct mq_script mq_script_set;
extern const struct mq_script mq_script_tick;
extern const struct mq_script mq_script_write_when_full;

#endif
