/* --reasons: why the rejected messages of a queue were rejected, in groups. */
#ifndef MQ_STATS_REASONS_H
#define MQ_STATS_REASONS_H

#include <stdbool.h>

#include "grouping.h"

/* The reasons are sorted; limit: how many are shown, -1: all. */
void reasons_print(const struct reasons *, const char *queue, long limit,
    int64_t now_ms, bool json);

#endif
