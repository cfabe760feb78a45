/* The sections of the page of --html. */
#ifndef MQ_STATS_SECTIONS_H
#define MQ_STATS_SECTIONS_H

#include "model.h"

void section_queues(const struct model *);
void section_runs(const struct model *);
void section_rejected(const struct model *);
void section_connections(const struct model *);

#endif
