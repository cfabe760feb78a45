/*
 * The outputs.  Each prints a model that collect.h has filled, and knows no other
 * output.
 */
#ifndef MQ_STATS_OUTPUTS_H
#define MQ_STATS_OUTPUTS_H

#include <jansson.h>

#include "find.h"
#include "model.h"
#include "redis/report.h"
#include "table.h"

/* The table of queues, where those that do not fit into so many lines (0: any) are
 * summed up in one, or that of connections.  table_free() frees. */
void tables_fill(
    const struct model *, bool connections, int height, struct table *);

/* --json: everything as one object.  The model has the policy. */
void json_print(const struct model *, bool connections);

/* One queue of the model, as --json has it; a new object. */
json_t *json_queue(const struct model *, const struct mq_queue_stats *);
/* Prints a value as a line, and frees it; on a terminal, text_json_line() must. */
void json_print_line(json_t *);

/* --prometheus: metrics.  The model has connections, all counts, and the policy. */
void prometheus_print(const struct model *);

/* --reasons: why the rejected messages of a queue were rejected, in groups.  The
 * reasons are sorted; limit: how many are shown, -1: all. */
void reasons_print(const struct reasons *, const char *queue, long limit,
    int64_t now_ms, bool json);

/* The same as JSON, up to a number of reasons: a new object. */
json_t *reasons_json(const struct reasons *, const char *queue, int shown);

/* --running: the scripts that run now. */
void running_print(const struct model *, bool json);

/* --id: prints the message, or what is kept of its end; payload: in JSON, too. */
void one_print(const struct found *, bool json, bool payload);

/* Tables of the page.  The model has runs, and what was rejected: why the rejected
 * messages of each queue were, in groups, and the newest of them. */
void running_fill(const struct mq_runs *, int64_t now_ms, struct table *);
void reasons_fill(const struct model *, struct table *);
void rejected_fill(const struct model *, struct table *);

/* --html: everything on one page.  The model has connections, runs, and what was
 * rejected.  refresh: seconds after which the page reads itself again; 0: never.
 * served: by --http, to whose other answers it has links. */
void html_print(const struct model *, long refresh, bool served);

/* --server: the server itself, and what is wrong with it. */
void server_print(const char *name, const struct mq_report *, bool json);

#endif
