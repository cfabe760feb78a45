/* The table of queues, and that of connections. */
#ifndef MQ_STATS_TABLES_H
#define MQ_STATS_TABLES_H

#include "model.h"
#include "table.h"

/* table_free() frees. */
void tables_fill(const struct model *, bool connections, struct table *);

#endif
