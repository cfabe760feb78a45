/* The scripts that serve both layouts; see redis/command.h. */
#ifndef MQ_SCRIPTS_H
#define MQ_SCRIPTS_H

#include "redis/command.h"

extern const struct mq_script mq_script_compete, mq_script_count,
    mq_script_note, mq_script_pass, mq_script_pause, mq_script_probe,
    mq_script_set, mq_script_tick, mq_script_write_when_full;

#endif
