/* --running: the scripts that run now. */
#ifndef MQ_STATS_RUNNING_H
#define MQ_STATS_RUNNING_H

#include "model.h"

void running_print(const struct model *, bool json);

#endif
