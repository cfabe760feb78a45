/* The sections of the page of --html. */
#ifndef MQ_STATS_PAGE_H
#define MQ_STATS_PAGE_H

#include "look.h"

/* Opens a section, which the caller closes. */
void page_section(const char *title, long long n);

void page_runs(const struct mq_runs *, int64_t now_ms);
void page_rejected(struct look *, const struct mq_stats *);

#endif
