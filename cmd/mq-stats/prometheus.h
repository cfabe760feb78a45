/* --prometheus: metrics.  The model has connections, all counts, and the policy. */
#ifndef MQ_STATS_PROMETHEUS_H
#define MQ_STATS_PROMETHEUS_H

#include "model.h"

void prometheus_print(const struct model *);

#endif
