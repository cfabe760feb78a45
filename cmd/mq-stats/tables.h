/* The table of queues, and that of connections. */
#ifndef MQ_STATS_TABLES_H
#define MQ_STATS_TABLES_H

#include "model.h"
#include "table.h"

/* Both fill a table, which table_free() frees. */
void queues_table(const struct model *, struct table *);
void connections_table(const struct model *, struct table *);

#endif
